"""Random keys."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from ..core import called_by_user, passed, warn


def key_from(name: str, key: object, seed: int | None = None) -> Array:
    """A typed key from a key or a seed.

    Args:
        name: name used in error messages.
        key: a key from `jax.random.key` or `jax.random.PRNGKey`, or a whole number to
            make one from.
        seed: the deprecated name of `key`.
    """
    caller = called_by_user(name)
    if key is not None and seed is not None:
        raise ValueError(
            f"{caller}: got both `key` and `seed`, expected one. Pass `key` only."
        )
    if seed is not None:
        message = f"{caller}: `seed` is deprecated. Pass it as `key`."
        warn(message, DeprecationWarning)
        key = seed
    if key is None:
        message = f"{caller}: got no `key`, using 0. Pass `key=0` to silence this."
        warn(message, UserWarning)
        key = 0
    if not _is_key_or_whole(key):
        raise TypeError(
            f"{passed(name, 'key', key)} is {key!r}, expected a whole number or a key. "
            "Make one with `jax.random.key(0)`."
        )
    if isinstance(key, Tracer):
        return _typed(key)
    with jax.ensure_compile_time_eval():  # it may be used outside of this `jit`
        return _typed(jnp.asarray(key))


def _typed(key: Array) -> Array:
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    if key.dtype == jnp.uint32 and key.ndim == 1:
        return jax.random.wrap_key_data(key)
    return jax.random.key(key)


def _is_key_or_whole(key: Any) -> bool:
    if isinstance(key, bool) or not (isinstance(key, int) or hasattr(key, "dtype")):
        return False
    dtype = jnp.result_type(key)
    is_key = jnp.issubdtype(dtype, jax.dtypes.prng_key)
    old = dtype == jnp.uint32 and np.ndim(key) == 1
    return is_key or old or (jnp.issubdtype(dtype, jnp.integer) and np.ndim(key) == 0)
