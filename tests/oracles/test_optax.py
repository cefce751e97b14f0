"""Updates and state equal Optax's, step by step."""

import jax
import numpy as np
import optax
import pytest

import steepest

from . import (
    _adaptive,
    _contrib_rates,
    _contrib_shapes,
    _house,
    _layerwise,
    _linesearch,
    _wrappers,
)
from ._cases import Case, loss, params

_FILES = [_house, _adaptive, _wrappers, _layerwise, _contrib_rates, _contrib_shapes]
_FILES += [_linesearch]
CASES = {
    name: case if isinstance(case, Case) else Case(case)
    for file in _FILES
    for name, case in file.CASES.items()
}


class Run:
    """Compiled steps of an actual descent, with either library."""

    def __init__(self, m, case, dtype):
        self.tx, self.params = case.make(m), (case.params or params)(dtype)

        @jax.jit
        def step(p, state):
            value, g = jax.value_and_grad(loss)(p)
            known = {"value": value, "grad": g, "value_fn": loss, "obj_fn": loss}
            extra = {name: known[name] for name in case.wants}
            u, state = self.tx.update(g, state, p, **extra)
            return u, state, m.apply_updates(p, jax.tree.map(lambda x: x / 10, u))

        self.step = step

    def begin(self, steps=20):
        """Updates, states and params of every step, from the start."""
        return self.go_on(self.params, self.tx.init(self.params), steps)

    def go_on(self, p, state, steps=10):
        """The same, continuing from another run."""
        rows = []
        for _ in range(steps):
            u, state, p = self.step(p, state)
            rows.append((u, state, p))
        return rows


def _both():
    """Every case in float64; the first of each optimizer also in float32."""
    begun = set()
    for name, case in CASES.items():
        maker = name.split(",")[0]
        once = maker in begun or maker.startswith("scale_by_")
        for dtype in case.dtypes[-1:] if once else case.dtypes:
            yield pytest.param(case, dtype, id=f"{name}-{dtype}")
        begun.add(maker)


@pytest.mark.parametrize("case, dtype", list(_both()))
def test_same_as_optax(case, dtype):
    """Twenty steps: the same updates, and the same state in the same places.

    A run may also switch libraries: ten steps with one and ten with the other equal
    twenty with either.
    """
    loose = jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow")
    with jax.enable_x64(dtype == "float64"):
        ours = Run(steepest, case, dtype)
        rows = ours.begin()
        with loose[0], loose[1]:
            theirs = Run(optax, case, dtype)
            want = theirs.begin()
            _, state, p = rows[9]
            moved_there = theirs.go_on(p, steepest.to_optax(state))
        _, state, p = want[9]
        moved_here = ours.go_on(p, steepest.from_optax(state))
    assert _skeleton(rows[0]) == _skeleton(want[0])
    tolerance = case.tolerance if dtype == "float32" else case.tolerance64
    if case.in_float32 or "cosine" in case.make.__code__.co_names:
        tolerance = max(tolerance, 1e-6)
    _same(rows, want, tolerance)
    _same(moved_here, rows[10:], tolerance)
    _same(moved_there, want[10:], tolerance)
    assert jax.tree.structure(moved_here) == jax.tree.structure(rows[10:])


def _same(rows, want, tolerance):
    rows, want = map(steepest.tree.unwrap_random_key_data, (rows, want))
    for a, b in zip(jax.tree.leaves(rows), jax.tree.leaves(want), strict=True):
        assert a.dtype == b.dtype
        if 0 in (a.size, b.size):  # GaLore: one zero where Optax has an empty array
            assert a.size <= 1 and b.size <= 1 and not np.any(a) and not np.any(b)
            continue
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 10)


def _skeleton(tree):
    """The structure of a tree and the names of its classes, from either library."""
    return str(jax.tree.structure(tree))
