"""The arguments of a rule are matched by name; wrong names are immediate errors."""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import gives, lift, Rule
from steepest.numerics import increment, zero_count


class _State(NamedTuple):
    count: object
    a: object
    b: object


@gives("c")
def _per_step(count, *, decay):
    t = increment(count)
    return {"c": 1 - decay ** t.astype(float)}, t


def _formula(g, b, a, *, c, decay):
    """Takes its memory in another order than the rule lists it."""
    return a + 2 * b + c * g, b + 1, decay * a


def _rule(**fields):
    parts = {
        "memory": {"a": jnp.ones_like, "b": jnp.zeros_like},
        "shared": {"count": zero_count},
        "numbers": {"decay": 0.5},
        "per_step": _per_step,
    }
    return Rule("mine", _formula, _State, **{**parts, **fields})


def test_the_order_of_a_dict_does_not_matter():
    g = jnp.array([1.0, 2.0])
    one = _rule()
    other = _rule(memory={"b": jnp.zeros_like, "a": jnp.ones_like})
    for rule in (one, other):
        tx = lift(rule)
        state = tx.init(g)
        for _ in range(2):
            u, state = tx.update(g, state)
        np.testing.assert_allclose(u, 0.5 + 2 + 0.75 * g)
        np.testing.assert_allclose(state.a, [0.25, 0.25])
        np.testing.assert_allclose(state.b, [2.0, 2.0])
        assert state.count == 2


def test_a_formula_is_an_ordinary_function():
    u, b, a = _formula(3.0, 1.0, 2.0, c=1.0, decay=0.5)
    assert (u, b, a) == (7.0, 2.0, 1.0)


def _misspelt(g, a, b, *, deccay):
    return g, a, b


def _no_memory(g, aa):
    return g


@gives("c")
def _asks_for_total(count, *, total):
    return {"c": total}, count


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"formula": _misspelt}, "_misspelt asks for deccay, expected keyword-only"),
        ({"formula": _no_memory}, "_no_memory asks for aa, expected positional"),
        ({"numbers": {}}, "_formula asks for decay, expected keyword-only"),
        ({"per_step": None}, "_formula asks for c, expected keyword-only"),
        ({"per_step": _asks_for_total}, "_asks_for_total asks for total, expected"),
        ({"per_step": lambda count: {}}, "per_step is a function, expected a function"),
        ({"formula": 3}, "formula is a int, expected a function."),
        ({"memory": {"a": 0.0}}, "a is a float, expected a function."),
        ({"shared": {}}, "State has the fields ('count', 'a', 'b'), but the rule"),
        (
            {"kind": "matrix"},
            "kind is 'matrix', expected one of: elementwise, whole",
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_wrong_name_is_an_error_at_construction(fields, said, as_users_do):
    with pytest.raises((TypeError, ValueError)) as caught:
        replace(_rule(), **fields)
    assert str(caught.value).startswith(f"mine: {said}")


def test_a_formula_that_returns_too_little_is_named():
    tx = lift(replace(_rule(), formula=lambda g, a, b: (g, a)))
    with pytest.raises(
        TypeError, match=r"mine: .* returns 1 arrays of memory, expected"
    ):
        tx.update(jnp.ones(2), tx.init(jnp.ones(2)))


def test_required_arguments_follow_from_the_signature():
    optional = lambda g, p=None: g
    needs = lambda formula, **fields: Rule("mine", formula, **fields).needs
    assert needs(lambda g: g) == ()
    assert needs(lambda g, p: g) == ("params",)
    assert needs(optional) == ()
    assert needs(lambda g, *, value: g, extra=("value",)) == ("value",)
    assert needs(lambda g, *, value=0.0: g, extra=("value",)) == ()


def test_an_extra_argument_is_a_number():
    tx = lift(Rule("mine", lambda g, *, value: value * g, extra=("value",)))
    u, _ = tx.update(jnp.ones(2), tx.init(jnp.ones(2)), value=3.0)
    np.testing.assert_array_equal(u, [3.0, 3.0])
    with pytest.raises(TypeError, match="mine: `update` needs `value`"):
        tx.update(jnp.ones(2), tx.init(jnp.ones(2)))


def _scaled(g, *, factor):
    return factor * g


class _Counted(NamedTuple):
    count: object


def test_a_schedule_among_the_numbers_counts():
    rule = Rule("mine", _scaled, numbers={"factor": 2.0}, counted=_Counted)
    assert lift(rule).init(1.0) == steepest.EmptyState()
    tx = lift(replace(rule, numbers={"factor": lambda t: 1 + t}))
    state = tx.init(jnp.ones(1))
    for t in range(3):
        u, state = tx.update(jnp.ones(1), state)
        assert u[0] == 1 + t
    assert state.count == 3


def test_a_schedule_without_a_count_is_an_error():
    rule = Rule("mine", _scaled, numbers={"factor": lambda t: 1.0})
    with pytest.raises(TypeError, match="mine: factor is a schedule, but the rule has"):
        lift(rule)


def test_memory_may_begin_with_a_number():
    def started(p, *, decay):
        return jnp.full_like(p, decay)

    tx = lift(_rule(memory={"a": started, "b": jnp.zeros_like}))
    np.testing.assert_array_equal(tx.init(jnp.zeros(2)).a, [0.5, 0.5])


def test_arrays_among_its_numbers_are_leaves():
    rule = Rule("mine", _scaled, numbers={"factor": jnp.array(2.0)})
    assert jax.tree.leaves(rule) == [2.0]
    traces = []

    @jax.jit
    def step(tx, g):
        traces.append(1)
        return tx.update(g, tx.init(g))[0]

    for factor in (2.0, 3.0):
        tx = lift(replace(rule, numbers={"factor": jnp.array(factor)}))
        assert step(tx, jnp.ones(1))[0] == factor
    assert len(traces) == 1
