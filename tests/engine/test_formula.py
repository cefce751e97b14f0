"""Formulas of neighbouring rules, as one compiled function of a leaf."""

import jax
import jax.numpy as jnp

from steepest.core import EmptyState, Rule
from steepest.engine._formula import joined, measuring, result
from steepest.engine._leaves import Leaves
from steepest.engine._masks import view_through
from steepest.engine._sweep import Sweep

DOUBLE = Rule("double", EmptyState, lambda n, g, p: 2 * g)
ADD = Rule("add", EmptyState, lambda n, g, p: g + n.much)


def test_one_after_the_other():
    both = joined([DOUBLE, ADD], ((), ("much",)), (True, True), None)
    (u, row), _ = both([(jnp.ones(2), None, ()), (jnp.zeros(3), None, ())], (5.0,))
    assert u.tolist() == [7, 7] and row == ()


def test_what_is_not_applied_still_has_its_numbers():
    one = joined([ADD, DOUBLE], (("much",), ()), (False, True), None)
    ((u, _),) = one([(jnp.ones(2), None, ())], (5.0,))
    assert u.tolist() == [2, 2]


def test_a_leaf_comes_back_in_the_dtype_that_is_wanted():
    f = joined([DOUBLE], ((),), (True,), jnp.dtype(jnp.bfloat16))
    ((u, _),) = f([(jnp.ones(2, jnp.bfloat16), None, ())], ())
    assert u.dtype == jnp.bfloat16
    wide = joined([DOUBLE], ((),), (True,), None)
    assert wide([(jnp.ones(2, jnp.bfloat16), None, ())], ())[0][0].dtype == jnp.float32


def test_a_measure_is_summed():
    total = measuring(lambda n, g, p: jnp.sum(g) * n.c, ("c",))
    jobs = [(jnp.ones(2), None, ()), (jnp.ones(3), None, ())]
    assert float(total(jobs, (10.0,))) == 50


def test_the_rules_have_their_names_in_the_program():
    """For the profiler."""
    f = joined([DOUBLE, ADD], ((), ("much",)), (True, True), None)
    lowered = jax.jit(lambda g: f([(g, None, ())], (5.0,))).lower(jnp.ones(2))
    assert "double" in lowered.as_text(debug_info=True)


def test_one_thing_alone_is_a_tuple_too():
    assert result(1) == (1,) and result((1, 2)) == (1, 2)


def test_what_one_sweep_keeps_is_bounded(monkeypatch):
    """Masks that change make other combinations; so may a user's rule, by its names."""
    monkeypatch.setattr("steepest.engine._sweep._KINDS", 3)
    names = iter("abcdefgh")
    prepare = lambda step: {next(names): jnp.zeros(())}
    sweep = Sweep([Rule("fresh", EmptyState, lambda n, g, p: g, prepare=prepare)])
    g = Leaves([jnp.ones(3)])
    for _ in range(8):
        views = [view_through([], g)]
        sweep.run(g, [None], [None], [EmptyState()], views, {})
        assert 0 < len(sweep._formulas) <= 3
