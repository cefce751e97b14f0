"""One cycle: its corners, and Optax at every step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from .optax_at_every_step import LAST, same_at_every_step, same_for_any_count

BOTH = ["linear_onecycle_schedule", "cosine_onecycle_schedule"]
OPTIONS = {
    "plain": dict(transition_steps=100, peak_value=1.0),
    "short": dict(transition_steps=7, peak_value=2.0),
    "one step": dict(transition_steps=1, peak_value=1.0),
    "two steps": dict(transition_steps=2, peak_value=1.0),
    "half steps": dict(transition_steps=50.5, peak_value=1.0),
    "no way up": dict(transition_steps=60, peak_value=1.0, pct_start=0.0),
    "only up": dict(transition_steps=60, peak_value=1.0, pct_start=1.0),
    "late": dict(transition_steps=60, peak_value=1.0, pct_start=0.9),
    "factors": dict(
        transition_steps=80, peak_value=3.0, div_factor=5.0, final_div_factor=10.0
    ),
    "downhill": dict(transition_steps=80, peak_value=-1.0, div_factor=2.0),
}
names = pytest.mark.parametrize("name", BOTH)


@pytest.mark.parametrize(
    "name, options",
    [*((BOTH[0], x) for x in OPTIONS), *((BOTH[1], x) for x in ("plain", "factors"))],
)
def test_same_as_optax_at_every_step(name, options):
    given = dict(OPTIONS[options])
    if name == BOTH[0] and given.get("pct_start", 0) > 0.85:
        given["pct_final"] = given["pct_start"]  # it may not fall before it has risen
    same_at_every_step(name, given)


def test_same_as_optax_where_the_fall_comes_early():
    same_at_every_step(BOTH[0], dict(**OPTIONS["plain"], pct_start=0.5, pct_final=0.5))


@names
def test_same_as_optax_for_any_count(name):
    same_for_any_count(name, dict(transition_steps=20, peak_value=1.0))


@names
def test_at_its_ends(name):
    schedule = getattr(steepest, name)(100, 2.0, div_factor=4.0, final_div_factor=10.0)
    found = [float(schedule(t)) for t in (0, 30, 100, LAST)]
    np.testing.assert_allclose(found, [0.5, 2, 0.05, 0.05], rtol=1e-5)


@names
@pytest.mark.parametrize("argument", ["peak_value", "div_factor", "final_div_factor"])
def test_hyperparameters_may_be_mapped_over(name, argument):
    def value(x):
        options = {**OPTIONS["plain"], argument: x}
        return getattr(steepest, name)(**options)(93)

    values = [0.5, 2.0]
    at_once = jax.vmap(value)(jnp.array(values))
    np.testing.assert_allclose(at_once, [value(x) for x in values], rtol=1e-4)


@names
@pytest.mark.parametrize(
    "change",
    [
        dict(transition_steps=0),
        dict(transition_steps=-1),
        dict(transition_steps=float("inf")),
        dict(peak_value=float("inf")),
        dict(pct_start=1.5),
        dict(pct_start=float("nan")),
        dict(div_factor=0.0),
        dict(div_factor=float("inf")),
        dict(final_div_factor=-1.0),
    ],
    ids=str,
)
def test_impossible_arguments_are_refused_by_name(name, change):
    ((argument, value),) = change.items()
    said = f"^{name}: {argument} is {value}, .*number "
    with pytest.raises(ODD, match=said):
        getattr(steepest, name)(**{**OPTIONS["plain"], **change})


def test_the_fall_comes_after_the_rise():
    said = "linear_onecycle_schedule: pct_start is 0.7 and pct_final is 0.4"
    with pytest.raises(ValueError, match=said):
        steepest.linear_onecycle_schedule(100, 1.0, pct_start=0.7, pct_final=0.4)


@pytest.mark.parametrize("name", BOTH)
def test_before_step_0_it_has_its_initial_value(name):
    """In Optax it is 0 there."""
    schedule = getattr(steepest, name)(100, 1.0)
    assert float(schedule(-1)) == float(schedule(-50)) == float(schedule(0))
