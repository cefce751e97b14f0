"""Compare a function with its counterpart in Optax: structures, dtypes and numbers."""

import contextlib
import warnings

import jax
import numpy as np

RTOL = {2: 2e-3, 4: 1e-5, 8: 1e-12}  # by the bytes of a real number


@contextlib.contextmanager
def loose():
    """Optax combines numbers of different dtypes and ranks, and warns."""
    with (
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def called(f, *args, **kwargs):
    """The result of a function of Optax."""
    with loose():
        return f(*args, **kwargs)


def assert_same(found, wanted, atol=1e-7, rtol=None):
    """Equal structure, shapes and dtypes, and numbers as close as the dtype allows."""
    paths = [
        [
            jax.tree_util.keystr(path)
            for path, _ in jax.tree_util.tree_leaves_with_path(x)
        ]
        for x in (found, wanted)
    ]
    assert paths[0] == paths[1]
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        bytes_ = np.real(y).dtype.itemsize
        near = dict(
            rtol=rtol or RTOL.get(bytes_, 0), atol=atol if bytes_ < 8 else 1e-13
        )
        kind = np.complex128 if np.iscomplexobj(y) else np.float64
        np.testing.assert_allclose(x.astype(kind), y.astype(kind), **near)


def assert_alike(ours, theirs, *args):
    """Two functions return equal structures, shapes and dtypes; not executed."""
    found, wanted = (
        jax.tree_util.tree_leaves_with_path(x)
        for x in (jax.eval_shape(ours, *args), called(jax.eval_shape, theirs, *args))
    )
    shown = lambda rows: [(jax.tree_util.keystr(p), x.shape, x.dtype) for p, x in rows]
    assert shown(found) == shown(wanted)
