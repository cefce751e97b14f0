"""Which memory is kept in stacks."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.core import Matrix, Rule
from steepest.engine import plan_of
from steepest.engine.leaves import Leaves, LowBits, Stacked
from steepest.engine.run._first_memory import first_memory, layout_of


def _rule(**changes):
    (link,) = plan_of("test", "tx", steepest.scale_by_soap()).links
    matrix = link.body.matrix._replace(reshard=("data",))
    return replace(link.body, matrix=matrix, **changes)


def _leaves(**shapes):
    return Leaves({k: np.ones(s, np.float32) for k, s in shapes.items()})


def test_matrices_of_equal_shape_share_a_stack():
    leaves = _leaves(a=(4, 6), b=(6, 4), c=(4, 6), layers=(2, 4, 6), one=(5, 5))
    layout = layout_of(_rule(), None, leaves)
    assert layout.stacks == ((0, 2, 3),)  # `b` has other memory, as it is not turned
    assert layout.counts(0) == [1, 1, 2]
    assert layout.whole == [1, 4] and layout.devices == 1


def test_other_dtypes_and_empty_leaves_are_apart():
    leaves = Leaves(
        [jnp.ones((4, 6)), jnp.ones((4, 6), jnp.bfloat16), None, jnp.ones((0, 6))] * 2
    )
    assert layout_of(_rule(), None, leaves).stacks == ((0, 4), (1, 5))


def test_without_reshard_or_equal_matrices_there_are_no_stacks():
    rule = _rule()
    plain = replace(rule, matrix=rule.matrix._replace(reshard=()))
    assert layout_of(plain, None, _leaves(a=(4, 6), b=(4, 6))) is None
    assert layout_of(rule, None, _leaves(a=(4, 6), b=(4, 7))) is None
    memory = first_memory(rule, None, _leaves(a=(4, 6), b=(4, 7)))
    assert memory["mu"]["a"].shape == (4, 6)


def test_memory_is_that_of_each_leaf():
    rule, leaves = _rule(), _leaves(a=(4, 6), b=(4, 6), c=(2, 2))
    memory = first_memory(rule, None, leaves)
    for k, p in leaves.tree.items():
        for name, x in rule.begin(p).items():
            assert isinstance(memory[name], Stacked)
            plain = memory[name].plain[k]
            jax.tree.map(np.testing.assert_array_equal, plain, x)


def test_memory_in_few_bits():
    """The codes of a stack; a leaf that stays wide is in another."""
    leaves = _leaves(a=(64, 64), c=(64, 64), embed=(64, 64), norm=(64, 64))
    layout = layout_of(_rule(), LowBits("int8"), leaves)
    assert layout.stacks == ((0, 1), (2, 3))
    memory = first_memory(_rule(), LowBits("int8"), leaves)
    assert memory["mu"].stacks[0].codes.shape == (2, 64, 64)
    assert memory["mu"].stacks[1].dtype == jnp.float32
    assert memory["factors"].stacks[0][0].dtype == jnp.float32


@pytest.mark.parametrize("uses_p", [False, True])
def test_a_formula_of_the_param_is_not_computed_elsewhere(uses_p):
    """If it shares memory with the matrix formula, the memory is kept for each leaf."""
    with_p = lambda g, p, mu: (g + p, mu)
    without = lambda g, mu: (g, mu)
    rule = Rule(
        "both",
        with_p if uses_p else without,
        steepest.ScaleByPolarState,
        memory={"mu": jnp.zeros_like},
        matrix=Matrix(lambda g, mu: (g, mu), reshard=("data",)),
    )
    assert rule.stacked == (() if uses_p else ("mu",))
    assert rule.formula_is_stacked == (not uses_p)
