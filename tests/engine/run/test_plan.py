"""Chains become one pass, and only their states are nested."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest.core import gives, Measure, Rule
from steepest.engine import plan_of

P = {"w": jnp.ones((3, 2)), "b": jnp.array([1.0, -1.0])}

RATE = "scale_by_learning_rate"


def _passes(tx):
    """The names of the rules, pass by pass; `None` for a detour."""
    segments = plan_of("test", "tx", tx)._segments
    rows = [getattr(segment, "passes", [None]) for segment in segments]
    return [s and [rule.name for rule in s.rules] for row in rows for s in row]


def _opaque():
    return steepest.stateless(lambda updates, params: updates)


def test_nested_chains_are_one_pass():
    tx = steepest.chain(
        steepest.clip_by_global_norm(1.0),
        steepest.chain(steepest.identity(), steepest.chain(steepest.adamw(1e-3))),
    )
    rules = ["clip_by_global_norm", "scale_by_adam", "add_decayed_weights", RATE]
    assert _passes(tx) == [rules]


def test_a_rule_that_measures_begins_a_pass():
    tx = steepest.chain(
        steepest.scale_by_adam(), steepest.clip_by_global_norm(1.0), steepest.scale(-1)
    )
    assert _passes(tx) == [["scale_by_adam"], ["clip_by_global_norm", "scale"]]


def test_a_mask_does_not_break_a_pass():
    tx = steepest.adamw(1e-3, mask={"w": True, "b": False})
    assert _passes(tx) == [["scale_by_adam", "add_decayed_weights", RATE]]


def test_opaque_transformations_separate_passes():
    tx = steepest.chain(steepest.scale(2), _opaque(), steepest.sgd(0.1, 0.9))
    assert _passes(tx) == [["scale"], None, ["trace", RATE]]


def test_a_pair_with_another_init_is_not_looked_into():
    """Replacing one of the two functions makes a different transformation."""
    trace = steepest.trace(0.9)
    warm = trace._replace(init=lambda p: steepest.TraceState(p))
    assert _passes(warm) == [None]
    u, _ = steepest.chain(warm).update(P, steepest.chain(warm).init(P), P)
    np.testing.assert_allclose(u["w"], 1.9 * P["w"], rtol=1e-6)


def test_the_state_is_nested_as_in_optax():
    make = lambda m: m.chain(
        m.clip_by_global_norm(1), m.chain(m.adamw(1e-3), m.masked(m.trace(0.9), True))
    )
    ours, theirs = make(steepest).init(P), make(optax).init(P)
    assert str(jax.tree.structure(ours)) == str(jax.tree.structure(theirs))
    assert ours[1][0][0]._fields == theirs[1][0][0]._fields


def test_a_state_of_optax_is_understood():
    """It has the same fields; the new state is in our classes."""
    tx, theirs = steepest.adamw(0.1), optax.adamw(0.1)
    u, state = tx.update(P, theirs.init(P), P)
    want, _ = tx.update(P, tx.init(P), P)
    jax.tree.map(np.testing.assert_array_equal, u, want)
    assert isinstance(state[0], steepest.ScaleByAdamState)


def test_transformations_of_optax_are_links():
    """Also rules with extra arguments."""
    heard = {}

    def update(updates, state, params=None, **extra_args):
        heard.update(extra_args)
        return updates, state

    listener = optax.GradientTransformationExtraArgs(optax.init_empty_state, update)
    tx = steepest.chain(optax.scale(2.0), steepest.scale(3.0), listener)
    u, _ = tx.update(P, tx.init(P), P, value=7.0)
    np.testing.assert_array_equal(u["b"], 6 * P["b"])
    assert heard == {"value": 7.0}


def test_a_chain_of_rules_is_the_rules_one_by_one():
    parts = [steepest.clip_by_global_norm(0.5), steepest.scale_by_adam()]
    parts += [steepest.add_decayed_weights(0.1), steepest.trace(0.9, True)]
    tx = steepest.chain(*parts)
    g = jax.tree.map(lambda x: 3 * x, P)
    u, state = tx.update(g, tx.init(P), P)
    for part, kept in zip(parts, state, strict=True):
        g, want = part.update(g, part.init(P), P)
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-6), kept, want)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-6), u, g)


def test_updates_may_change_structure_on_a_detour():
    """Rules before `lookahead` see the fast gradients, rules after it both updates."""
    look = steepest.lookahead(steepest.sgd(1.0), 5, 0.5)
    tx = steepest.chain(steepest.clip(0.5), look, steepest.scale(2.0))
    both = steepest.LookaheadParams.init_synced(P)
    u, _ = tx.update(P, tx.init(both), both)
    np.testing.assert_array_equal(u.fast["b"], [-1.0, 1.0])
    np.testing.assert_array_equal(u.slow["b"], [0.0, 0.0])


def test_a_rule_may_need_an_extra_argument():
    """It is an error if it is missing, and other rules ignore it."""
    formula = lambda g, *, value: value * g
    rule = steepest.Rule("scale_by_value", formula, extra=("value",))
    tx = steepest.chain(steepest.lift(rule), steepest.scale(2.0))
    u, _ = tx.update(P, tx.init(P), P, value=3.0, other=None)
    np.testing.assert_array_equal(u["b"], 6 * P["b"])
    with pytest.raises(ValueError, match="scale_by_value: `update` needs `value` and"):
        tx.update(P, tx.init(P), P)


def test_a_rule_may_measure_several_things():
    """The sum is over the selected leaves; for an empty tree it is zero."""
    mean = lambda *, total: {"mean": total["sum"] / (total["size"] + 1e-9)}
    rule = steepest.Rule(
        "by_mean",
        lambda g, *, mean: g - mean,
        per_step=gives("mean")(mean),
        measure=Measure(lambda g: {"sum": jnp.sum(g), "size": jnp.asarray(g.size)}),
    )
    tx = steepest.lift(rule)
    u, _ = tx.update({"a": jnp.ones(3), "b": jnp.array([5.0])}, tx.init(P))
    np.testing.assert_allclose(u["b"], 3.0, rtol=1e-6)
    assert tx.update({}, tx.init({}))[0] == {}


BAD = {
    "another structure in params": (
        lambda tx, s: tx.update({"w": P["w"]}, s, P),
        "adamw: leaf ['b'] is in the params and not in the updates",
    ),
    "another structure in state": (
        lambda tx, s: tx.update(P, steepest.adamw(0.1).init({"w": P["w"]}), P),
        "adamw: leaf ['b'] is in the updates and not in the state's `mu`",
    ),
    "another shape in params": (
        lambda tx, s: tx.update(P, s, {**P, "w": jnp.ones((2, 3))}),
        "leaf ['w'] has shape (3, 2) in the updates and shape (2, 3) in the params",
    ),
    "another shape in state": (
        lambda tx, s: tx.update(P, tx.init({**P, "w": jnp.ones((3, 1))}), P),
        "leaf ['w'] has shape (3, 2) in the updates and shape (3, 1) in the state's",
    ),
    "a param that is none": (
        lambda tx, s: tx.update(P, s, {**P, "w": None}),
        "leaf ['w'] has shape (3, 2) in the updates and nothing in the params",
    ),
    "a leaf unknown to the state": (
        lambda tx, s: tx.update(P, tx.init({**P, "w": None}), P),
        "leaf ['w'] has shape (3, 2) in the updates and nothing in the state's `mu`",
    ),
    "a leaf that is a tree": (
        lambda tx, s: tx.update(P, s, {**P, "w": [P["w"]]}),
        "leaf ['w'] is in the updates and not in the params",
    ),
    "no params": (
        lambda tx, s: tx.update(P, s),
        "adamw: `update` needs `params` and was called without it",
    ),
    "another state": (
        lambda tx, s: tx.update(P, (s[1], s[0], s[2]), P),
        "adamw: the state is a EmptyState, expected a ScaleByAdamState",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_belong_together_is_refused(name):
    bad, message = BAD[name]
    tx = steepest.adamw(0.1)
    with pytest.raises((ValueError, TypeError)) as error:
        bad(tx, tx.init(P))
    assert message in str(error.value)


class _Travelled(NamedTuple):
    far: Any  # distance from the start so far
    begin: Any


def test_a_rule_may_measure_what_it_remembers():
    """The distance from the start, with numbers from the state before the step."""
    tx = steepest.lift(
        Rule(
            "travelled",
            lambda g, *, way: g * way,
            _Travelled,
            memory={"begin": lambda p: jnp.asarray(p)},
            shared={"far": lambda: jnp.ones(())},
            measure=Measure(
                lambda g, p, begin, *, unit: unit * jnp.sum((p - begin) ** 2),
                before=gives("unit")(lambda far: {"unit": 2 * far}),
            ),
            per_step=gives("way")(lambda far, *, total: ({"way": total}, total)),
        )
    )
    p = {"a": jnp.array([1.0, 2.0]), "b": jnp.array(3.0, jnp.bfloat16)}
    state = tx.init(p)
    moved = jax.tree.map(lambda x: x + 1, p)
    u, state = jax.jit(tx.update)(p, state, moved)
    assert float(state.far) == 2 * 3
    assert float(u["b"]) == 18 and u["b"].dtype == jnp.bfloat16
    _, state = tx.update({}, _Travelled(state.far, {}), {})
    assert float(state.far) == 0


class _Sums(NamedTuple):
    sums: Any  # for each leaf, one vector for each of its axes


def test_a_rule_may_remember_several_arrays_of_a_leaf():
    def begin(p):
        return [jnp.zeros((size,), p.dtype) for size in p.shape]

    def formula(g, sums):
        axes = range(g.ndim)
        others = [tuple(j for j in axes if j != i) for i in axes]
        return g, [s + jnp.sum(g, o) for s, o in zip(sums, others, strict=True)]

    tx = steepest.lift(
        Rule("sums", formula, _Sums, memory={"sums": begin}, kind="whole")
    )
    p = {"w": jnp.ones((2, 3), jnp.bfloat16), "s": jnp.array(1.0), "n": None}
    _, state = jax.jit(tx.update)(p, tx.init(p), p)
    rows, columns = state.sums["w"]
    assert rows.tolist() == [3, 3] and columns.tolist() == [2, 2, 2]
    assert rows.dtype == jnp.bfloat16
    assert state.sums["s"] == [] and state.sums["n"] is None


class _Two(NamedTuple):
    z: Any
    a: Any


def test_what_is_shared_goes_by_its_names():
    tx = steepest.lift(
        Rule(
            "two",
            lambda g, *, old: g * old,
            _Two,
            shared={"z": lambda: jnp.array(2.0), "a": lambda: jnp.array(3.0)},
            per_step=gives("old")(lambda a, z: ({"old": z}, a + 1, z)),
        )
    )
    u, state = tx.update(jnp.ones(1), tx.init(jnp.ones(1)))
    assert float(u[0]) == 2 and (float(state.z), float(state.a)) == (2, 4)


@pytest.mark.parametrize(
    "make",
    [steepest.adam, steepest.sgd, steepest.contrib.muon],
    ids=lambda f: f.__name__,
)
def test_updates_that_are_none_are_an_error(make, as_users_do):
    tx, p = make(0.1), {"w": jnp.ones((2, 2))}
    with pytest.raises(
        ValueError, match=r"the updates are None, expected a tree like the"
    ):
        tx.update(None, tx.init(p), p)


def test_none_is_a_tree_without_leaves(as_users_do):
    """Also for one leaf without a gradient, as in Optax."""
    tx = steepest.adam(0.1)
    assert tx.update(None, tx.init(None), None)[0] is None
    p = jnp.ones(3)
    u, state = tx.update(None, tx.init(p), p)
    assert u is None and state[0].mu.shape == (3,)
    with pytest.raises(ValueError, match="the updates are None"):
        tx.update(None, tx.init({"w": p}))
