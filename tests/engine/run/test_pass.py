"""One pass: all rules are applied to each leaf."""

import jax
import jax.numpy as jnp
import numpy as np

import steepest
from steepest.core import EmptyState, gives, Measure, Rule
from steepest.engine.leaves import Leaves, view_through
from steepest.engine.run._pass import Pass
from steepest.numerics import gradient_norm_squared


def _scale(g, *, factor):
    return factor * g


@gives("factor")
def _by_norm(*, total):
    return {"factor": 1 / jnp.sqrt(total)}


NORMALIZE = Rule(
    "normalize", _scale, measure=Measure(gradient_norm_squared), per_step=_by_norm
)
DOUBLE = Rule("double", _scale, numbers={"factor": 2.0})


def _run(rules, tree, masks=None):
    leaves = Leaves(tree)
    masks = masks or [None] * len(rules)
    views = [view_through([], leaves) for _ in rules]
    for view, on in zip(views, masks, strict=True):
        view.on[:] = on or view.on
    none = [None] * len(leaves.arrays)
    states = [EmptyState()] * len(rules)
    return Pass(rules).run(leaves, none, none, states, views, {})


def test_it_measures_first_and_then_runs_all():
    updates, states = _run([NORMALIZE, DOUBLE], [jnp.array([3.0]), jnp.array([4.0])])
    np.testing.assert_allclose(updates, [[1.2], [1.6]], rtol=1e-6)
    assert states == [EmptyState()] * 2


def test_a_rule_measures_only_what_it_sees():
    tree = [jnp.array([3.0]), jnp.array([4.0])]
    updates, _ = _run([NORMALIZE, DOUBLE], tree, [[True, False], None])
    np.testing.assert_allclose(updates, [[2.0], [8.0]], rtol=1e-6)


def test_an_empty_tree_and_none():
    assert _run([NORMALIZE, DOUBLE], [])[0] == []
    assert _run([DOUBLE], [None])[0] == [None]


def test_numbers_are_set_aside_under_jit():
    """Otherwise XLA would compute `b ** t` again for every element."""
    tx, g = steepest.scale_by_adam(), jnp.ones(3)
    text = str(jax.make_jaxpr(tx.update)(g, tx.init(g)))
    assert "optimization_barrier" in text
