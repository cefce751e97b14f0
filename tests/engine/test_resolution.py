"""A warning where half-precision weights cannot register the steps."""

import warnings

import jax
import jax.numpy as jnp
import pytest

import steepest
from steepest.engine import unresolved

HALF = {"w": jnp.full((4, 3), 0.5, jnp.bfloat16), "b": jnp.zeros(3, jnp.bfloat16)}


def _loss(p, x):
    return x * jnp.sum(p["w"].astype(jnp.float32) ** 2)


def test_the_first_call_of_a_train_step_warns():
    p, tx = jax.tree.map(jnp.copy, HALF), steepest.adamw(1e-4)
    step, state = steepest.make_train_step(_loss, tx), tx.init(HALF)
    text = r"make_train_step: .*'w'.* is bfloat16 with an rms of 0.5.* steps of 1e-05"
    with pytest.warns(steepest.UnusualValueWarning, match=text) as seen:
        p, state, _ = step(p, state, 1.0)
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q, _, _ = step(p, state, 1.0)
    # It is true: they stay.
    assert (q["w"] == HALF["w"]).all()


def test_describe_shows_it():
    known = steepest.describe(steepest.adamw(1e-4), HALF)
    assert len(known.warnings) == 1
    assert "warning: ['w'] is bfloat16" in str(known)
    assert "Use `compensated` or `stochastic_rounding`" in str(known)
    shapes = jax.eval_shape(lambda: HALF)
    assert not steepest.describe(steepest.adamw(1e-4), shapes).warnings


WARM = steepest.warmup_cosine_decay_schedule(0.0, 1e-4, 100, 1000)
LARGE = steepest.warmup_cosine_decay_schedule(0.0, 1.0, 100, 1000)


@pytest.mark.parametrize(
    "tx",
    [
        steepest.lion(1e-4),
        steepest.adam(WARM),
        steepest.guard(steepest.chain(steepest.clip(1.0), steepest.adamw(1e-4))),
        steepest.MultiSteps(steepest.adam(1e-4), 2),
        steepest.partition({"x": steepest.adam(1e-4)}, {"w": "x", "b": "x"}),
    ],
    ids=lambda tx: repr(tx)[:20],
)
def test_reported(tx):
    assert [x.path for x in unresolved(tx, HALF)] == ["['w']"]


@pytest.mark.parametrize(
    "tx",
    [
        steepest.adamw(0.1),  # large enough
        steepest.adam(LARGE),
        steepest.sgd(1e-4),  # its steps depend on the gradient
        steepest.chain(steepest.adam(1e-4), steepest.scale(100.0)),
        steepest.inject_hyperparams(steepest.adam)(learning_rate=1e-4),
        steepest.scale_by_adam(),
        steepest.compensated(steepest.adamw(1e-4)),
        steepest.guard(steepest.stochastic_rounding(steepest.adam(1e-4), key=0)),
        steepest.adam(jnp.asarray(0.1)),
        steepest.contrib.mechanize(steepest.adam(1e-4)),
        steepest.adam(0.0),
    ],
    ids=lambda tx: repr(tx)[:20],
)
def test_not_reported(tx):
    assert not unresolved(tx, HALF)


def test_only_leaves_in_half_precision_whose_values_are_known():
    tx = steepest.adam(1e-4)
    assert not unresolved(tx, jax.tree.map(lambda x: x.astype(float), HALF))
    assert not unresolved(tx, {"none": None, "empty": jnp.ones(0, jnp.bfloat16)})
    jax.jit(lambda p: [] == unresolved(tx, p) or 1 / 0)(HALF)
    small = {"w": jnp.full(3, 1e-4, jnp.bfloat16), "h": jnp.ones(3, jnp.float16)}
    assert [x.path for x in unresolved(tx, small)] == ["['h']"]
