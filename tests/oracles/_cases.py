"""The form of a case, and the parts of cases."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Case:
    """A transformation, made with either library, and how closely they agree."""

    make: Callable[[Any], Any]  # library -> transformation
    wants: tuple[str, ...] = ()  # which of value, grad, value_fn, obj_fn to pass
    in_float32: bool = False  # Optax computes part of it in float32, also under x64
    tolerance: float = 1e-5  # in float32
    tolerance64: float = 1e-12  # in float64
    params: Callable[[Any], Any] | None = None  # dtype -> params, if not the default
    dtypes: tuple[str, ...] = field(default=("float32", "float64"))


def many(p: Any) -> Any:
    """A mask: the leaves with two axes or more."""
    return jax.tree.map(lambda x: x.ndim > 1, p)


def cosine(m: Any) -> Any:
    """A schedule that rises and falls. Optax always computes it in float32."""
    return m.warmup_cosine_decay_schedule(0.01, 0.1, 4, 15, 0.001)


def params(dtype: Any) -> Any:
    """A matrix, a vector, a scalar, and a `None`."""
    return {
        "w": jnp.linspace(-1.0, 1.0, 6, dtype=dtype).reshape(3, 2),
        "b": [jnp.array([0.5, -2.0], dtype), None],
        "s": jnp.array(3.0, dtype),
    }


def loss(p: Any) -> Any:
    """Wavy, on top of a bowl."""
    leaves = jax.tree.leaves(p)
    return sum(jnp.sum(jnp.sin(3 * x) / 3 + x * x / 4) for x in leaves)
