"""Formulas of adjacent rules, fused into one compiled function."""

import jax
import jax.numpy as jnp
import pytest

from steepest.core import Rule
from steepest.engine.run._formula import COMPILED, joined, measuring, part_of, result


def _double(g):
    return 2 * g


def _add(g, *, much):
    return g + much


def _weighted_sum(g, *, c):
    return jnp.sum(g) * c


def _part(formula, operands=False, **numbers):
    rule = Rule(formula.__name__, formula, numbers=numbers)
    return part_of(rule, formula, numbers, operands=operands)[0]


ARRAY = jnp.array(5.0)
DOUBLE, ADD = _part(_double), _part(_add, much=ARRAY)


def test_one_after_the_other():
    both = joined((DOUBLE, ADD), (True, True), None)
    (u, row), _ = both([(jnp.ones(2), None, ()), (jnp.zeros(3), None, ())], (ARRAY,))
    assert u.tolist() == [7, 7] and row == ()


def test_what_is_not_applied_still_has_its_numbers():
    one = joined((ADD, DOUBLE), (False, True), None)
    ((u, _),) = one([(jnp.ones(2), None, ())], (ARRAY,))
    assert u.tolist() == [2, 2]


def test_a_leaf_comes_back_in_the_dtype_that_is_wanted():
    f = joined((DOUBLE,), (True,), jnp.dtype(jnp.bfloat16))
    ((u, _),) = f([(jnp.ones(2, jnp.bfloat16), None, ())], ())
    assert u.dtype == jnp.bfloat16
    wide = joined((DOUBLE,), (True,), None)
    assert wide([(jnp.ones(2, jnp.bfloat16), None, ())], ())[0][0].dtype == jnp.float32


def test_a_measure_is_summed():
    total = measuring(_part(_weighted_sum, c=ARRAY))
    jobs = [(jnp.ones(2), None, ()), (jnp.ones(3), None, ())]
    assert float(total(jobs, (10.0,))) == 50


def test_the_rules_have_their_names_in_the_program():
    """For the profiler."""
    f = joined((DOUBLE, ADD), (True, True), None)
    lowered = jax.jit(lambda g: f([(g, None, ())], (ARRAY,))).lower(jnp.ones(2))
    assert "_double" in lowered.as_text(debug_info=True)


def test_one_thing_alone_is_a_tuple_too():
    assert result(1) == (1,) and result((1, 2)) == (1, 2)


@pytest.mark.parametrize(
    "numbers, constants",
    [
        ({"learning_rate": 0.1, "eps": 0.2}, {"eps": 0.2}),
        ({"learning_rate": ARRAY, "eps": ARRAY}, {}),
        ({"learning_rate": 0.1, "eps": None}, {"eps": None}),
    ],
    ids=["python", "arrays", "none"],
)
def test_what_is_a_constant_of_the_program(numbers, constants):
    formula = lambda g, *, learning_rate, eps: g
    rule = Rule("mine", formula, numbers=numbers)
    part, given = part_of(rule, formula, numbers, operands=True)
    assert dict(part.constants.values) == constants
    assert part.arguments == tuple(k for k in numbers if k not in constants)
    assert len(given) == len(part.arguments)
    # Inside `jit` every Python number is a constant.
    inside, _ = part_of(rule, formula, numbers, operands=False)
    arrays = tuple(k for k, x in numbers.items() if x is ARRAY)
    assert inside.arguments == arrays


def test_equal_rules_share_a_program():
    one, other = _part(_add, much=2.0), _part(_add, much=2.0)
    assert joined((one,), (True,), None) is joined((other,), (True,), None)
    third = _part(_add, much=3.0)
    assert joined((one,), (True,), None) is not joined((third,), (True,), None)


def test_the_cache_is_bounded():
    """A search over ten thousand values of `b1` must not fill the memory."""
    for k in range(COMPILED + 9):
        joined((_part(_add, much=float(k)),), (True,), None)
    assert joined.cache_info().currsize <= COMPILED
