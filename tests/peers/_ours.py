"""Our optimizers that must move as the peers of `_cases` did.

To add one, move its line from `WAITING` to `OURS`.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import steepest

from ._cases import normals, STEPS

ALL = "."  # decay every leaf, as most peers do


def late(rate: float, decay: float) -> dict[str, float]:
    """For peers that decay after the step: p <- (1 - rate decay) (p - rate u)."""
    keep = 1 - rate * decay
    return {"learning_rate": rate * keep, "weight_decay": decay / keep}


def after_first(rate: float, decay: float) -> dict[str, Any]:
    """As `late`, for peers that do not move in the first step."""
    numbers = late(rate, decay)
    decay = numbers["weight_decay"]
    return {**numbers, "weight_decay": lambda count: jnp.where(count > 0, decay, 0)}


def column(grafts: bool, **options: Any) -> Any:
    """Shampoo of vectors, as matrices of one column, without the root of one number."""
    tx = steepest.scale_by_shampoo(0.9, 0.95, 1e-8, exponent=0.5, **options)
    tall = lambda tree: jax.tree.map(lambda x: x[:, None], tree)

    def length(factors: Any) -> Any:
        # With another method's length, that of ours does not matter.
        return 1 if grafts else jnp.sqrt(factors[1][0, 0] + 1e-8)

    def init(params: Any) -> Any:
        return tx.init(tall(params))

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        u, state = tx.update(tall(updates), state, tall(params))
        flat = lambda x, factors: x[:, 0] * length(factors)
        return jax.tree.map(flat, u, state.factors), state

    return steepest.GradientTransformation(init, update)


def shampoo(weight_decay: float = 0.0, frequency: int = 1, **options: Any) -> Any:
    """Shampoo whose vectors have a factor, too, as those of the peer."""
    options |= {"frequency": frequency, "rolled": False}
    return steepest.chain(
        steepest.partition(
            {
                "matrix": steepest.scale_by_shampoo(0.9, 0.95, 1e-8, **options),
                "vector": column(options.get("graft") != "none", **options),
            },
            lambda p: jax.tree.map(lambda x: ("vector", "matrix")[x.ndim - 1], p),
        ),
        steepest.add_decayed_weights(weight_decay, ALL),
        steepest.scale_by_learning_rate(0.02),
    )


_DION: dict[str, Any] = {"weight_decay_mask": ALL, "coefficients": "standard"}
_MUON = {**_DION, "adam_eps": 1e-10}
_KL: dict[str, Any] = {"factors": "kl", "b1": 0.9, "b2": 0.95, "rolled": False}
_KL |= after_first(0.02, 0.1)
_SOAP: dict[str, Any] = {"b1": 0.9, "b2": 0.95, "rolled": False}
_SMALL: dict[str, Any] = {"b2": 0.99, "adam_b2": 0.99, "adam_eps": 1e-15}
_SMALL |= {"weight_decay_mask": ALL, **late(0.02, 0.1)}


def _decayed(tx: Any) -> Any:
    """The optimizer of a transformation, with weight decay."""
    return steepest.chain(
        tx, steepest.add_decayed_weights(0.1), steepest.scale_by_learning_rate(0.02)
    )


def _psgd(decay: float, **options: Any) -> Any:
    """PSGD for all leaves, and a fit in each step."""
    return steepest.chain(
        steepest.scale_by_psgd(frequency=1, **options),
        steepest.add_decayed_weights(decay),
        steepest.scale_by_learning_rate(0.02),
    )


_SPLUS = {"b2": 0.99, "rolled": False, "frequency": 10, "others": "sign"}

OURS: dict[str, Callable[[], Any]] = {
    "muon": lambda: steepest.muon(0.02, eps=0.0, scale="original", **_MUON),
    "muon_rms": lambda: steepest.muon(0.02, eps=0.0, nesterov=False, **_MUON),
    "soap_f1": lambda: steepest.soap(0.02, frequency=1, weight_decay=0.0, **_SOAP),
    "soap_f10": lambda: steepest.soap(0.02, weight_decay=0.0, **_SOAP),
    "soap_decay": lambda: steepest.soap(**after_first(0.02, 0.1), **_SOAP),
    "soap_shampoo_beta": lambda: steepest.soap(
        0.02, frequency=2, factor_beta=0.8, eps=1e-3, weight_decay=0.0, **_SOAP
    ),
    "soap_one_sided": lambda: steepest.soap(
        0.02, frequency=1, longest=8, weight_decay=0.0, **_SOAP
    ),
    "soap_fresh": lambda: steepest.soap(
        0.02,
        eps=1e-4,
        weight_decay=0.1,
        factor_beta=0.9,
        frequency=1,
        fresh=True,
        bounded=False,
        **_SOAP,
    ),
    "mars_first": lambda: _decayed(steepest.mars(steepest.scale_by_adam(0.95, 0.99))),
    "mars_lion": lambda: _decayed(steepest.mars(steepest.scale_by_lion(0.95, 0.95))),
    "cautious_adamw": lambda: _decayed(
        steepest.cautious(steepest.scale_by_adam(0.9, 0.99, 1e-15), descent=False)
    ),
    "kl_shampoo_f1": lambda: steepest.shampoo(frequency=1, eps=1e-8, **_KL),
    "kl_shampoo_f5": lambda: steepest.shampoo(frequency=5, eps=1e-8, **_KL),
    "kl_soap_f1": lambda: steepest.soap(frequency=1, **_KL),
    "kl_soap_f5": lambda: steepest.soap(frequency=5, **_KL),
    "kl_soap_fresh": lambda: steepest.soap(
        0.02,
        0.9,
        eps=1e-4,
        weight_decay=0.1,
        factors="kl",
        factor_beta=0.9,
        frequency=1,
        rolled=False,
        fresh=True,
        bounded=False,
    ),
    "shampoo_eigh": lambda: shampoo(root="eigh"),
    "shampoo_newton": lambda: shampoo(root="newton"),
    "shampoo_late": lambda: shampoo(0.1, root="eigh", frequency=5),
    "shampoo_sum": lambda: shampoo(root="eigh", factor_beta=1.0, graft="none"),
    "normuon": lambda: steepest.normuon(0.02, eps=1e-7, scale="original", **_MUON),
    "normuon_paper": lambda: steepest.normuon(
        0.02, b2=0.9, eps=1e-10, nesterov=False, **_MUON
    ),
    "adamuon_paper": lambda: steepest.adamuon(
        0.02, b2=0.9, eps=1e-10, nesterov=False, **_MUON
    ),
    "scion": lambda: steepest.scion(0.02, 0.1, 3.0, eps=1e-7, coefficients="standard"),
    "scion_unconstrained": lambda: steepest.scion(
        0.02,
        0.1,
        1.0,
        10.0,
        constrained=False,
        routes={"embed": "colnorm", "query": "rownorm", "mlp/kernel": "colnorm/in"},
    ),
    "adam_mini": lambda: steepest.adam_mini(
        0.02, b2=0.99, weight_decay=0.1, routes={"query": "in out/4"}
    ),
    "fira": lambda: steepest.fira(rank=4, update_proj_gap=40, **_SMALL),
    "apollo": lambda: steepest.apollo(rank=4, update_proj_gap=20, **_SMALL),
    "apollo_mini": lambda: steepest.apollo_mini(update_proj_gap=20, **_SMALL),
    "dion2": lambda: steepest.dion2(0.02, weight_decay=0.1, eps=1e-7, **_DION),
    "dion2_rms": lambda: steepest.dion2(
        0.02, weight_decay=0.1, eps=1e-7, scale="rms", **_DION
    ),
    "psgd_momentum": lambda: _psgd(0.1, fit_rate=0.5),
    "psgd_gradient": lambda: _psgd(
        0.0, fit_rate=0.1, first_fit_rate=0.1, whiten="gradient", max_skew=4.0
    ),
    "kron": lambda: steepest.kron(
        0.02, weight_decay=0.1, rolled=True, frequency=1, rms=1.0
    ),
    "splus": lambda: steepest.splus(0.2, weight_decay=0.0, **_SPLUS),
    "splus_decay": lambda: steepest.chain(
        steepest.splus(**late(0.2 / 16, 0.1), **_SPLUS), steepest.scale(16.0)
    ),
}


def projection(size: int, rank: int, seed: int, turn: Any, dtype: Any) -> Any:
    """APOLLO's random matrix, of the numbers that the peer got."""
    del seed
    turns = np.stack([normals(size, rank, n) for n in range(2)])
    return jnp.asarray(turns, dtype)[turn] / rank**0.5


def probe(seed: int, t: Any, shape: tuple[int, int], dtype: Any) -> Any:
    """Kron's random matrix, of the numbers that the peer got."""
    del seed
    n, m = shape  # the peer has the transpose
    steps = np.stack([normals(m, n, k).T for k in range(STEPS)])
    return jnp.asarray(steps, dtype)[t]


# What ours gets instead of its random numbers: a name -> another value.
GIVEN: dict[str, tuple[str, Any]] = {
    name: ("steepest.matrix._apollo.random_projection", projection)
    for name in ("apollo", "apollo_mini")
}
GIVEN["kron"] = "steepest.matrix._kron.probe", probe
for name in ("psgd_momentum", "psgd_gradient"):
    exact = lambda a: jnp.linalg.norm(a, 2)
    GIVEN[name] = "steepest.numerics._spectral._power_method", exact


def unsorted_basis(a: Any, basis: Any) -> Any:
    """One step of orthogonal iteration, with the columns in any order."""
    return jnp.linalg.qr(a @ basis)[0]


for _name in ("kl_soap_f1", "kl_soap_f5", "kl_shampoo_f1", "kl_shampoo_f5"):
    GIVEN[_name] = ("steepest.matrix._sides.iterated_basis", unsorted_basis)
# The peer begins with eigenvalues of eps.
GIVEN["kl_soap_fresh"] = ("steepest.matrix._kl.FIRST", 1e-4)

# The runs that no optimizer of ours is compared with -> why.
WAITING: dict[str, str] = {
    "soap_vector": "its first step moves no vector either",
    "adamuon": "the peer takes no signs, and corrects the bias",
    "mars": "the peer starts with a gradient of zero",
    "fira_alpha": "there is no option like alpha",
    "shampoo_blocks": "its blocks share a step count; see `blocked`",
}
