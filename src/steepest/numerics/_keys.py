"""Random keys."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..core import warn


def key_from(name: str, key: Any, seed: int | None = None) -> Array:
    """The key that a user meant.

    Args:
        name: name used in error messages.
        key: a key as `jax.random.key` makes it, or as `jax.random.PRNGKey` does, or a
            number to make one of.
        seed: the same, as it was once called.
    """
    if key is not None and seed is not None:
        raise ValueError(
            f"{name}: got both `key` and `seed`, expected one. Pass `key` alone."
        )
    if seed is not None:
        said = f"{name}: `seed` is deprecated. Pass it as `key`."
        warn(said, DeprecationWarning)
        key = seed
    if key is None:
        said = f"{name}: got no `key`, and takes 0. Pass `key=0` to say so."
        warn(said, UserWarning)
        key = 0
    if not _is_key_or_whole(key):
        raise TypeError(
            f"{name}: key is {key!r}, expected a whole number or a key. Make one with "
            "`jax.random.key(0)`."
        )
    key = jnp.asarray(key)
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
