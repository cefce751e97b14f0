"""A skipped step leaves the state unchanged, bit for bit.

Bytes, dtypes, weak types and shapes; eager and compiled; for all kinds of user states,
and for every optimizer.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import contrib

from ..fuzz import build, Call
from ..fuzz._user import STATEFUL
from ..zoo import few_params, gradients, optimizers, Row, ZOO


@dataclass(frozen=True)
class Holds:
    """A wrapper that skips its third step."""

    make: Callable[[Any], Any]
    at: str  # the field of its state with the inner state
    spoilt: bool = False  # whether it skips only for a NaN


def _but_third(step):
    return step != 2


def _third(updates, step, params):
    return step == 2, ()


HOLDS = {
    "apply_if_finite": Holds(
        lambda tx: steepest.apply_if_finite(tx, 3), "inner_state", spoilt=True
    ),
    "guard": Holds(steepest.guard, "inner_state", spoilt=True),
    "conditionally_mask": Holds(
        lambda tx: steepest.conditionally_mask(tx, _but_third), "inner_state"
    ),
    "conditionally_transform": Holds(
        lambda tx: steepest.conditionally_transform(tx, _but_third), "inner_state"
    ),
    "MultiSteps": Holds(lambda tx: steepest.MultiSteps(tx, 2), "inner_opt_state"),
    "MultiSteps, skip_not_finite": Holds(
        lambda tx: steepest.MultiSteps(
            tx, 1, should_skip_update_fn=steepest.skip_not_finite
        ),
        "inner_opt_state",
        spoilt=True,
    ),
    "MultiSteps, own skip": Holds(
        lambda tx: steepest.MultiSteps(tx, 1, should_skip_update_fn=_third),
        "inner_opt_state",
    ),
    "sam": Holds(
        # The first of two steps climbs, and does not run the optimizer.
        lambda tx: contrib.sam(tx, steepest.sgd(0.1), reset_state=False),
        "opt_state",
    ),
}
# Functions that take a transformation and run it in every step.
RUNS = {
    "chain": "all of them",
    "to_config": "it takes no step",
    "restore_as": "it takes no step",
    "init": "it takes no step",
    "shardings": "it takes no step",
    "zero": "over shards",
    "named_chain": "all of them",
    "flatten": "over one vector",
    "masked": "has no state for masked leaves",
    "partition": "each group sees its own leaves",
    "route": "as `partition`",
    "selective_transform": "as `masked`",
    "lookahead": "may reset: see below",
    "blocked": "over blocks of matrices",
    "cautious": "and masks its updates",
    "compensated": "over wider params",
    "stochastic_rounding": "and rounds the params",
    "offload": "and moves its state",
    "hyperball": "and restores norms",
    "mars": "with corrected gradients",
    "inject_hyperparams": "with other numbers",
    "inject_stateful_hyperparams": "as `inject_hyperparams`",
    "watched": "and measures",
    "keeping": "in other dtypes",
    "packed": "over one vector",
    "monitor": "only measures",
    "with_extra_args_support": "as it is",
    "describe": "makes no transformation",
    "metrics": "makes no transformation",
    "to_optax": "runs it in every step, in other classes",
    "from_optax": "runs it in every step, in other classes",
    "from_torch": "makes no transformation",
    "to_torch": "makes no transformation",
    "read": "makes no transformation",
    "lbfgs": "the line search, in every step",
    "sophia": "the estimator, in every step",
    "repack": "makes no transformation",
    "pack": "makes no transformation",
    "make_step": "makes no transformation",
    "make_train_step": "makes no transformation",
    "optimizer": "takes a function that makes one",
    "mechanize": "with another learning rate",
    "schedule_free": "at other params",
    "schedule_free_eval_params": "makes no transformation",
    "split_real_and_imaginary": "over real arrays",
    "galore": "over projections",
    "scale_by_galore": "over projections",
}


def _takers():
    """The public functions that take a transformation."""
    for door in (steepest, contrib):
        for name, x in inspect.getmembers(door):
            if name.startswith("_") or not callable(x) or x in _TYPES:
                continue
            try:
                given = inspect.signature(x).parameters.values()
            except ValueError:
                continue
            if any("Transformation" in str(one.annotation) for one in given):
                yield getattr(x, "__name__", name)


_TYPES = {steepest.GradientTransformation, steepest.GradientTransformationExtraArgs}


def test_every_wrapper_is_in_one_list():
    held = {name.split(",")[0] for name in HOLDS}
    assert set(_takers()) <= held | set(RUNS)
    assert not held & set(RUNS)


def _bits(tree):
    """Everything known about the leaves of a tree, and the tree structure."""

    def bits(x):
        x = jnp.asarray(x)
        kind = x.dtype, x.shape, getattr(x, "weak_type", False)  # keys have none
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            x = jax.random.key_data(x)
        return *kind, np.asarray(x).tobytes()

    leaves, treedef = jax.tree.flatten(tree)
    return [bits(x) for x in leaves], treedef


def _spoil(g):
    return jax.tree.map(lambda x: x * jnp.nan, g)


def _is_held(holds, inner, p, *, compiled, before):
    """Some steps, followed by a skipped one, which must not change the inner state."""
    tx = holds.make(inner)
    update = jax.jit(tx.update) if compiled else tx.update
    state = tx.init(p)
    g = gradients(p)
    for _ in range(before):
        _, state = update(g, state, p)
    held = lambda state: _bits(getattr(state, holds.at))
    old = held(state)
    _, state = update(_spoil(g) if holds.spoilt else g, state, p)
    assert held(state) == old
    return state


ways = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])
# Some can skip the first step, when the state still comes from `init`.
AT_ONCE = [name for name in HOLDS if HOLDS[name].spoilt or name == "MultiSteps"]


@ways
@pytest.mark.parametrize("name", AT_ONCE)
def test_what_users_begin_with(name, compiled):
    """From casts, comparisons, rounding; integers, booleans, keys, empty arrays."""
    inner = build(steepest, Call("chain", *map(Call, STATEFUL)))
    _is_held(HOLDS[name], inner, few_params(), compiled=compiled, before=0)


@ways
@pytest.mark.parametrize("name", HOLDS)
def test_what_users_keep(name, compiled):
    """The same, after two steps."""
    inner = build(steepest, Call("chain", *map(Call, STATEFUL)))
    _is_held(HOLDS[name], inner, few_params(), compiled=compiled, before=2)


@pytest.mark.parametrize("name", ["apply_if_finite", "guard"])
@pytest.mark.parametrize("kind", STATEFUL)
def test_each_that_users_keep(kind, name):
    """One at a time, to see which one fails."""
    inner = build(steepest, Call(kind))
    _is_held(HOLDS[name], inner, few_params(), compiled=True, before=0)


@optimizers
def test_every_optimizer(row: Row):
    """Each in one of the wrappers, eight compiled and eight eager, in rotation."""
    turn, k = divmod(ZOO.index(row), len(HOLDS))
    holds = list(HOLDS.values())[k]
    _is_held(holds, row.make(), few_params(), compiled=turn % 2 == 0, before=2)


@ways
def test_lookahead_keeps_what_it_does_not_reset(compiled):
    """Between synchronizations, the state is the one that the inner step computed."""
    inner = build(steepest, Call("chain", *map(Call, STATEFUL)))
    fast = few_params()
    p = steepest.LookaheadParams.init_synced(fast)
    tx = steepest.lookahead(inner, 3, 0.5, reset_state=True)
    update = jax.jit(tx.update) if compiled else tx.update
    _, state = update(gradients(fast), tx.init(p), p)
    _, wanted = inner.update(gradients(fast), inner.init(fast), fast)
    assert _bits(state.fast_state) == _bits(wanted)


@pytest.mark.parametrize("damage", ["value", "dtype", "weak", "key"])
def test_damage_would_be_detected(damage):
    state = {"x": jnp.ones(3), "k": jax.random.key(0), "n": jnp.array(1)}
    other = {
        "value": {**state, "x": state["x"].at[0].add(1e-7)},
        "dtype": {**state, "n": state["n"].astype("int16")},
        "weak": {**state, "x": jnp.asarray(1.0)},
        "key": {**state, "k": jax.random.key(1)},
    }[damage]
    assert _bits(dict(state)) == _bits(state)
    assert _bits(other) != _bits(state)
