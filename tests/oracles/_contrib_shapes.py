"""Cases: optimizers of `contrib` that depend on shapes, or wrap another optimizer."""

from typing import Any

import jax
import jax.numpy as jnp

from ._cases import Case, cosine, many, params

THREE = ((3.4445, -4.775, 2.0315), (3.0, -3.2, 1.2), (2.0, -1.5, 0.5))
# Newton-Schulz amplifies small singular values, and their rounding errors, up to a
# thousand times.
LOOSE = {"tolerance": 1e-4, "tolerance64": 1e-11}


def tensors(dtype: Any) -> Any:
    """Matrices of all shapes, a tensor, and leaves that are neither."""
    waves = lambda *shape: jnp.sin(jnp.arange(1, 1 + jnp.zeros(shape).size)).reshape(
        shape
    )
    tree = {
        "wide": waves(2, 4),
        "tall": waves(4, 2),
        "tensor": waves(2, 3, 4),
        "b": waves(3),
    }
    return jax.tree.map(lambda x: x.astype(dtype), tree)


def numbers(m: Any, **others: Any) -> Any:
    """Dimension numbers, by leaf name."""
    kind = m.contrib.MuonDimensionNumbers
    found = {"wide": kind(), "tall": kind(), "tensor": None, "b": None}
    return {**found, **{name: kind(*axes) for name, axes in others.items()}}


def galore_numbers(m: Any) -> Any:
    kind = m.contrib.GaLoreDimensionNumbers
    axes = {"tensor": kind((0, 1), 2), "wide": kind(1, 0)}
    return {**dict.fromkeys(["tall", "b"]), **axes}


def without_none(dtype: Any) -> Any:
    """Optax's GaLore does not support `None`."""
    return {**params(dtype), "b": params(dtype)["b"][0]}


def pairs(m: Any) -> Any:
    """Dimension numbers as a function of the params."""
    pair = m.contrib.MuonDimensionNumbers(-2, -1)
    return lambda p: jax.tree.map(lambda x: pair if x.ndim > 1 else None, p)


def muon(**options: Any) -> Case:
    """Muon on tensors, with these options; functions are called with the library."""

    def make(m: Any) -> Any:
        known = {k: f(m) if callable(f) else f for k, f in options.items()}
        # Each step is compiled for each leaf: except for the defaults, two steps are
        # enough.
        steps = {"ns_steps": 2} if options else {}
        return m.contrib.muon(**{"learning_rate": 0.1, **steps, **known})

    dtypes = ("float64",) if options else ("float32", "float64")
    return Case(make, params=tensors, dtypes=dtypes, **LOOSE)


def galore(**options: Any) -> Case:
    """GaLore.

    Optax always computes singular vectors in float32, to about 1e-6, and Adam divides
    by small numbers in their directions.
    """
    return Case(
        lambda m: m.contrib.galore(
            0.1, **{k: f(m) if callable(f) else f for k, f in options.items()}
        ),
        params=tensors,
        tolerance=1e-4,
        dtypes=("float32",),
    )


def climb(m: Any) -> Any:
    return m.chain(m.contrib.normalize(), m.sgd(0.05, 0.9))


CASES = {
    "muon": muon(),
    "muon, dion": muon(ns_coeffs="dion", ns_steps=5),
    "muon, fewer polynomials than steps": muon(ns_coeffs=THREE, ns_steps=5),
    "muon, spectral": muon(preconditioning="spectral"),
    "muon, aol": muon(preconditioning="aol"),
    "muon, schatten": muon(preconditioning="schatten"),
    "muon, adaptive": muon(adaptive=True, learning_rate=0.01),
    "muon, other numbers": muon(
        nesterov=False, beta=0.5, eps=1e-2, adam_b1=0.5, adam_b2=0.6, adam_eps_root=0.01
    ),
    "muon, decay": muon(
        weight_decay=0.1,
        weight_decay_mask=lambda m: many,
        adam_weight_decay=0.2,
        adam_learning_rate=0.03,
    ),
    "muon, scheduled": Case(
        lambda m: m.contrib.muon(cosine(m), weight_decay=cosine(m)), **LOOSE
    ),
    "muon, turned": muon(
        muon_weight_dimension_numbers=lambda m: numbers(m, wide=(1, 0))
    ),
    "muon, tensors": muon(
        muon_weight_dimension_numbers=lambda m: numbers(m, tensor=((0, 1), 2)),
        preconditioning="aol",
    ),
    "muon, stacks": muon(
        muon_weight_dimension_numbers=lambda m: numbers(m, tensor=(2, 0)),
        adaptive=True,
        learning_rate=0.01,
    ),
    "muon, numbers from the params": muon(
        muon_weight_dimension_numbers=pairs, consistent_rms=0.3
    ),
    "scale_by_muon": Case(
        lambda m: m.contrib.scale_by_muon(beta=0.8),
        params=lambda dtype: tensors(dtype)["wide"],
        **LOOSE,
    ),
    "scale_by_muon, numbers": Case(
        lambda m: m.contrib.scale_by_muon(
            weight_dimension_numbers={"w": m.contrib.MuonDimensionNumbers(1, (0, 2))}
        ),
        params=lambda dtype: {"w": tensors(dtype)["tensor"]},
        **LOOSE,
    ),
    "galore": galore(rank=2),
    "galore, thin": galore(rank=1, update_proj_gap=3, scale=0.5, weight_decay=0.1),
    "galore, mask": galore(rank=1, weight_decay=0.1, mask=lambda m: many),
    "galore, momentum": galore(rank=2, base_optimizer=lambda m: m.trace(0.9)),
    "galore, numbers": galore(rank=2, weight_dimension_numbers=galore_numbers),
    "scale_by_galore": Case(
        lambda m: m.contrib.scale_by_galore(rank=1),
        params=without_none,
        tolerance=1e-4,
        tolerance64=1e-4,
    ),
    "mechanize": lambda m: m.contrib.mechanize(m.adam(1.0), s_init=1e-2),
    "mechanize, sgd": lambda m: m.contrib.mechanize(m.sgd(0.1), s_init=0.1),
    "mechanize, other numbers": lambda m: m.contrib.mechanize(
        m.adamw(1.0), weight_decay=0.1, eps=1e-6, s_init=0.01, num_betas=3
    ),
    "schedule_free": lambda m: m.contrib.schedule_free(m.adam(0.1, b1=0.0), 0.1),
    "schedule_free, other numbers": lambda m: m.contrib.schedule_free(
        m.chain(m.clip_by_global_norm(1.0), m.sgd(0.3)), 0.3, 0.6, 0.5
    ),
    "schedule_free, scheduled": lambda m: m.contrib.schedule_free(
        m.sgd(cosine(m)), cosine(m)
    ),
    "schedule_free_adamw": lambda m: m.contrib.schedule_free_adamw(0.1),
    "schedule_free_adamw, other numbers": Case(
        lambda m: m.contrib.schedule_free_adamw(0.1, 5, 0.8, 0.9, 1e-3, 0.1, 1.0),
        in_float32=True,
    ),
    "schedule_free_sgd": lambda m: m.contrib.schedule_free_sgd(0.3),
    "schedule_free_sgd, other numbers": Case(
        lambda m: m.contrib.schedule_free_sgd(0.3, 5, 0.8, 0.1, 1.0), in_float32=True
    ),
    "sam": lambda m: m.contrib.sam(m.adam(0.1), climb(m)),
    "sam, three": lambda m: m.contrib.sam(m.sgd(0.1, 0.9), climb(m), 3),
    "sam, remembering": lambda m: m.contrib.sam(m.adamw(0.1), climb(m), 3, False),
    "normalize": lambda m: m.contrib.normalize(),
    "reduce_on_plateau": Case(
        lambda m: m.contrib.reduce_on_plateau(0.5, 1, cooldown=1), wants=("value",)
    ),
    "reduce_on_plateau, other numbers": Case(
        lambda m: m.chain(
            m.adam(0.3), m.contrib.reduce_on_plateau(0.5, 2, 0.2, 0.1, 0, 3, 0.3)
        ),
        wants=("value",),
    ),
}
