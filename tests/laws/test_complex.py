"""Complex params: as in Optax, as two real arrays, or the zoo says why not.

State that has a sign also has a phase. If it is stored as if it were a square, and so
real, the imaginary part is lost silently. So every row is compared with Optax, or with
its own real and imaginary parts. If it should agree with neither, it must be
equivariant to phase: `u(z g, z p) = z u(g, p)` for `|z| = 1`.
"""

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

from ..zoo import distinct, fed, Row, with_bare_keys, ZOO

STEPS = 2  # the second one uses the state of the first
TURN = np.exp(0.7j)


def _numbers(t):
    """Params for `t = 0`, and a gradient for each other `t`: many phases and sizes."""
    x = np.arange(6).reshape(3, 2)
    w = (0.5 + x / 4) * np.exp(1j * (x + 1.3 * t))
    b = np.array([1.5, 0.75]) * np.exp(-1j * (np.arange(2) + 0.9 * t))
    return {"w": jnp.asarray(w, jnp.complex64), "b": jnp.asarray(b, jnp.complex64)}


def _run(row, tx, update, turn=1.0):
    """The updates of a few steps, each from other params, all multiplied by a phase."""
    turned = lambda tree: jax.tree.map(lambda x: x * jnp.complex64(turn), tree)
    p = turned(_numbers(0))
    state, found = tx.init(p), []
    # A loss that does not depend on the phase.
    extra = {"value": jnp.array(2.0)} if row.wants == ("value",) else {}
    for t in range(1, STEPS + 1):
        u, state = update(turned(_numbers(t)), state, p, **extra)
        p = jax.tree.map(lambda p, u: p + u.astype(p.dtype) / 4, p, u)
        found.append(jax.tree.map(lambda x: np.asarray(x) / turn, u))
    return found


def _same(found, wanted, rounding=1.0):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        scale = np.max(np.abs(b), initial=1e-30)
        np.testing.assert_allclose(a / scale, b / scale, atol=2e-4 * rounding, rtol=0)


def _of_optax(row):
    """The steps of the same transformation in Optax."""
    home = optax.contrib if "contrib" in row.maker.__module__ else optax
    loose = jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow")
    with loose[0], loose[1], warnings.catch_warnings(), jax.disable_jit():
        warnings.simplefilter("ignore")
        tx = getattr(home, row.maker.__name__)(**row.hyper, **row.options)
        tx = optax.with_extra_args_support(tx)
        tx = with_bare_keys(tx) if row.random else tx
        tx = fed(tx, row.wants) if row.wants else tx
        return _run(row, tx, tx.update)


@distinct
def test_complex_params(row: Row):
    _agree(row)


def _agree(row):
    tx = row.make()
    update = jax.jit(tx.update)
    if not row.complex:
        with pytest.raises(ValueError, match=r"is complex\d+, expected a real"):
            _run(row, tx, update)
        return
    found = _run(row, tx, update)
    if row.of_complex == "optax":
        wanted = _of_optax(row)
    elif row.of_complex == "split":
        split = steepest.contrib.split_real_and_imaginary(tx)
        wanted = _run(row, split, split.update)
    else:
        wanted = _run(row, tx, update, TURN)
    _same(found, wanted, row.rounding)


def test_a_sum_without_its_imaginary_part_is_seen(monkeypatch):
    """The old `cocob`: its signed sum was stored as if it were a square."""
    from steepest.contrib import _cocob

    monkeypatch.setattr(_cocob, "wide_moment", steepest.numerics.second_moment)
    (row,) = [row for row in ZOO if row.maker is steepest.contrib.cocob]
    with pytest.raises(AssertionError):
        _agree(dataclasses.replace(row))  # makes it anew
