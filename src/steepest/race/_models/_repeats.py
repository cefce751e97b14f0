"""What repeats in the batches of a loader: whole batches, or single rows."""

import hashlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import PyTree


def period(batches: PyTree) -> int:
    """The number of batches after which all repeat exactly; all of them if none does.

    Args:
        batches: stacked along the first axis.
    """
    seen = _digests(batches)
    for many in range(1, len(seen)):
        if seen[many] == seen[0] and seen[many:] == seen[:-many]:
            return many
    return len(seen)


def shared_rows(some: PyTree, others: PyTree) -> int:
    """How many rows of one set of arrays are also in another one, bit for bit.

    Args:
        some: arrays with the rows to count.
        others: arrays with the rows to compare them with.
    """
    known = set(_digests(others))
    return sum(row in known for row in _digests(some))


def _digests(arrays: PyTree) -> Sequence[bytes]:
    """A digest of each row, over all arrays."""
    leaves = [np.ascontiguousarray(_numbers(x)) for x in jax.tree.leaves(arrays)]
    join = lambda k: b"".join(x[k].tobytes() for x in leaves)
    digest = lambda row: hashlib.blake2b(row, digest_size=16).digest()
    return [digest(join(k)) for k in range(len(leaves[0]))]


def _numbers(x: ArrayLike) -> ArrayLike:
    """An array, which may hold random keys, as numbers."""
    is_key = jnp.issubdtype(jax.typeof(x).dtype, jax.dtypes.prng_key)
    return jax.random.key_data(x) if is_key else x
