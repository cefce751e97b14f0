"""How much a transformation computes for each leaf."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import steepest
from steepest.engine import flops

from ..zoo import few_params, PARTS, ZOO


def _flops(tx: Any, *shape: int) -> Any:
    (found,) = flops(tx, [jax.ShapeDtypeStruct(shape, jnp.float32)])
    return found


def test_work_of_muon_is_that_of_its_products():
    """30 d^3 for five steps of three products; 8 r + 28 in the Gram form."""
    tx = steepest.muon(0.1)
    assert _flops(tx, 256, 256) == pytest.approx(30 * 256**3, rel=0.02)
    assert _flops(tx, 64, 128) == pytest.approx((8 * 2 + 28) * 64**3, rel=0.05)
    stacked = steepest.muon(0.1, stacked=".")
    assert _flops(stacked, 3, 64, 128) == pytest.approx(3 * _flops(tx, 64, 128))


def test_work_of_expensive_changes_is_shared_among_the_steps():
    """Products of 16 d^3 in every step, and bases in some."""
    d = 256
    work = lambda **options: _flops(steepest.soap(0.1, **options), d, d) / d**3
    always, sometimes, never = (work(frequency=k) for k in (1, 10, 10**6))
    assert never == pytest.approx(16, rel=0.02)
    assert sometimes - never == pytest.approx((always - never) / 10, rel=1e-3)
    paper = work(frequency=10, rolled=False)
    assert never < paper < never + 3


def test_work_of_elements():
    assert _flops(steepest.scale(2.0), 5, 7) == 35
    assert flops(steepest.scale(2.0), {"a": None, "b": jnp.ones(3)}) == [0, 3]


def test_work_inside_wrappers_is_counted():
    plain, wrapped = steepest.adam(0.1), steepest.guard(steepest.adam(0.1))
    assert _flops(wrapped, 5, 7) == _flops(plain, 5, 7)


def test_transformations_of_others_are_traced():
    tx = steepest.GradientTransformation(
        lambda params: (),
        lambda updates, state, params=None: ([2 * x for x in updates], state),
    )
    assert _flops(tx, 5, 3) == 15


def test_it_is_known_for_every_optimizer():
    p = few_params()
    for row in ZOO + PARTS:
        assert None not in flops(row.make(), p), row.name
