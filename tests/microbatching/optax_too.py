"""The same call to both libraries."""

import jax
import numpy as np
import optax.microbatching

import steepest.microbatching


def same(call, rtol=1e-6):
    """The results of `call` with each library, which must have equal types."""
    ours = call(steepest.microbatching)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        theirs = call(optax.microbatching)
    ours, theirs = jax.tree.flatten(ours), jax.tree.flatten(theirs)
    assert len(ours[0]) == len(theirs[0])
    for a, b in zip(ours[0], theirs[0], strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=rtol)
    return ours[0]
