"""Our optimizers that must move as the peers of `_cases` did.

To add one, move its line from `WAITING` to `OURS`.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import steepest

from ._cases import normals

ALL = "."  # decay every leaf, as most peers do


def late(rate: float, decay: float) -> dict[str, float]:
    """For peers that decay after the step: p <- (1 - rate decay) (p - rate u)."""
    keep = 1 - rate * decay
    return {"learning_rate": rate * keep, "weight_decay": decay / keep}


_DION = {"weight_decay_mask": ALL, "coefficients": "standard"}
_MUON = {**_DION, "adam_eps": 1e-10}
_SPLUS = {"b2": 0.99, "rolled": False, "frequency": 10, "others": "sign"}

OURS: dict[str, Callable[[], Any]] = {
    "muon": lambda: steepest.muon(0.02, eps=0.0, scale="original", **_MUON),
    "muon_rms": lambda: steepest.muon(0.02, eps=0.0, nesterov=False, **_MUON),
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


# What ours gets instead of its random numbers: the name of a function -> another one.
GIVEN: dict[str, tuple[str, Callable[..., Any]]] = {
    name: ("steepest.matrix._apollo.random_projection", projection)
    for name in ("apollo", "apollo_mini")
}

# The runs that no optimizer of ours is compared with yet -> what to write. Where it is
# an expression, it was tried.
WAITING: dict[str, str] = {
    "soap_f1": "soap(0.02, 0.9, 0.95, weight_decay=0), a refresh at every step",
    "soap_f10": "the same, a refresh after 10 steps",
    "soap_vector": "the same; the peer's first step moves no vector either",
    "soap_decay": "soap(b1=0.9, b2=0.95, **late(0.02, 0.1)), a refresh after 10 steps",
    "soap_shampoo_beta": "a refresh after 2 steps, factors' decay rate 0.8, eps=1e-3",
    "soap_one_sided": "as soap_f1, with no factor for an axis longer than 8",
    "soap_fresh": (
        "soap(0.02, 0.9, 0.95, eps=1e-4, weight_decay=0.1), factors first, their decay "
        "rate 0.9 with bias correction, a refresh at every step, the first by eigh"
    ),
    "kl_soap_fresh": "the same for kl_soap, eigenvalues of the factors >= eps",
    "normuon": 'steepest.normuon(0.02, eps=1e-10, scale="original", **_MUON)',
    "normuon_paper": (
        "steepest.normuon(0.02, b2=0.9, eps=1e-10, nesterov=False, **_MUON)"
    ),
    "adamuon": "none: the peer takes no signs, and corrects the bias",
    "adamuon_paper": (
        "steepest.adamuon(0.02, b2=0.9, eps=1e-10, nesterov=False, **_MUON)"
    ),
    "scion": ("steepest.scion(0.02, 0.1, 3.0, eps=1e-7, coefficients='standard')"),
    "scion_unconstrained": (
        "steepest.scion(0.02, 0.1, 1.0, 10.0, constrained=False, routes={'embed': "
        "'colnorm', 'query': 'rownorm', 'mlp/kernel': 'colnorm/in'})"
    ),
    "mars": "none: the peer starts with a gradient of zero",
    "mars_first": (
        "steepest.chain(steepest.mars(steepest.scale_by_adam(0.95, 0.99)), "
        "steepest.add_decayed_weights(0.1), steepest.scale_by_learning_rate(0.02))"
    ),
    "mars_lion": (
        "steepest.chain(steepest.mars(steepest.scale_by_lion(0.95, 0.95)), "
        "steepest.add_decayed_weights(0.1), steepest.scale_by_learning_rate(0.02))"
    ),
    "adam_mini": (
        "steepest.adam_mini(0.02, 0.9, 0.99, weight_decay=0.1, "
        "routes={'query': 'in out/4'})"
    ),
    "cautious_adamw": (
        "steepest.chain(steepest.cautious(steepest.scale_by_adam(0.9, 0.99, 1e-15), "
        "descent=False), steepest.add_decayed_weights(0.1), "
        "steepest.scale_by_learning_rate(0.02))"
    ),
    "kl_shampoo_f1": "kl_shampoo(b1=0.9, b2=0.95, **late(0.02, 0.1)), every step",
    "kl_shampoo_f5": "the same, a refresh after 5 steps",
    "kl_soap_f1": "kl_soap(b1=0.9, b2=0.95, **late(0.02, 0.1)), every step",
    "kl_soap_f5": "the same, a refresh after 5 steps",
    "fira": (
        "steepest.fira(rank=4, b2=0.99, weight_decay_mask=ALL, update_proj_gap=40, "
        "adam_b2=0.99, adam_eps=1e-15, **late(0.02, 0.1))"
    ),
    "fira_alpha": "the same with alpha=0.25, if there is such an option",
    "apollo": (
        "steepest.apollo(rank=4, b2=0.99, weight_decay_mask=ALL, update_proj_gap=20, "
        "adam_b2=0.99, adam_eps=1e-15, **late(0.02, 0.1))"
    ),
    "apollo_mini": (
        "steepest.apollo_mini(b2=0.99, weight_decay_mask=ALL, update_proj_gap=20, "
        "adam_b2=0.99, adam_eps=1e-15, **late(0.02, 0.1))"
    ),
    "shampoo_eigh": "shampoo(0.02, 0.9, 0.95), eps=1e-8, Adam's norm, roots by eigh",
    "shampoo_newton": "the same, roots by coupled Newton",
    "shampoo_late": "weight_decay=0.1, roots after 5, 10, ... steps, Adam before that",
    "shampoo_blocks": "as shampoo_eigh, in blocks of 8",
    "shampoo_sum": "as shampoo_eigh, factors are sums (b2=1), no other norm",
    "dion2": "steepest.dion2(0.02, weight_decay=0.1, eps=1e-7, **_DION)",
    "dion2_rms": (
        'steepest.dion2(0.02, weight_decay=0.1, eps=1e-7, scale="rms", **_DION)'
    ),
    "psgd_momentum": "inverse-free PSGD; replace its norm by the exact one",
    "psgd_gradient": "the same, whitens gradients, max_skew=4",
    "kron": "classic PSGD; give it the probes `normals(out, in, step)`, transposed",
}
