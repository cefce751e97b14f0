"""What a rule computes once per step."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from steepest.core import At, gives, Measure, Rule
from steepest.engine.run._per_step import at_count, begin_step, end_step
from steepest.numerics import zero_count


class _State(NamedTuple):
    count: object
    far: object


@gives("unit")
def _before(far):
    return {"unit": 2 * far}


@gives("rate")
def _after(count, far, *, base, total, unit):
    return {"rate": base * total / unit}, count + 1, far + total


def _rule(**numbers):
    return Rule(
        "mine",
        lambda g, *, rate: rate * g,
        _State,
        shared={"count": zero_count, "far": lambda: jnp.ones(())},
        numbers={"base": 3.0, **numbers},
        measure=Measure(lambda g, *, unit: unit * jnp.sum(g), _before),
        per_step=_after,
    )


STATE = _State(jnp.asarray(4, jnp.int32), jnp.array(5.0))


def test_before_and_after_the_measure():
    step = begin_step(_rule(), STATE, {})
    assert step.numbers == {"base": 3.0, "unit": 10.0}
    assert step.before == {"unit": 10.0}
    done = end_step(step, jnp.array(20.0))
    assert done.numbers["rate"] == 6
    assert (int(done.shared["count"]), float(done.shared["far"])) == (5, 25.0)
    assert done.begun["count"] == 4


def test_schedules_have_their_values():
    rule = _rule(other=lambda t: t / 8, third=At("far", lambda x: 2 * x), last=0.5)
    numbers = at_count(rule, STATE._asdict())
    assert float(numbers["other"]) == 0.5
    assert float(numbers["third"]) == 10
    assert numbers["last"] == 0.5
    assert numbers["other"].dtype == jnp.float32


def test_a_rule_that_only_counts():
    class Counted(NamedTuple):
        count: object

    rule = Rule("mine", lambda g: g, Counted, shared={"count": zero_count})
    step = end_step(begin_step(rule, Counted(jnp.asarray(2)), {}), None)
    assert step.shared["count"] == 3


def test_only_the_extra_arguments_it_names():
    rule = Rule("mine", lambda g, *, value: value * g, extra=("value",))
    step = begin_step(rule, (), {"value": 2.0, "other": 3.0})
    assert step.numbers == {"value": 2.0}


@pytest.mark.parametrize("inside", [False, True], ids=["eager", "jit"])
def test_numbers_for_the_measure_are_set_aside_under_jit(inside):
    """So that XLA computes them once, not for every element."""
    f = lambda state: begin_step(_rule(), state, {}).before["unit"]
    text = str(jax.make_jaxpr(f)(STATE)) if inside else ""
    assert ("optimization_barrier" in text) == inside
    assert float(f(STATE)) == 10
