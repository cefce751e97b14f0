"""Random expressions; and tests that the fuzzer detects known bugs."""

import inspect
from random import Random

import jax
import jax.numpy as jnp
import optax
import pytest

import steepest

from . import build, Call, check, difference, fuzz, Name, Problem
from ._compare import first_difference
from ._differences import KNOWN
from ._expression import names, smaller
from ._fuzz import shrunk
from ._grammar import Grammar, LEFT_OUT, OPTIMIZERS, TRANSFORMS
from ._problems import DTYPES, TREES
from ._run import ours, Refused, theirs
from ._user import STATEFUL

ONE_NAN = "normal", "normal", "nan", "normal", "normal", "normal"


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions(seed):
    """`python -m tests.fuzz 5000 --seed 1` tries more."""
    report = fuzz(45, seed)
    assert not report.differences, f"\n\n{report}"
    assert report.refused < 0.25 * report.expressions


def _public():
    """The transformations of Optax, by name."""
    for prefix, door in (("", optax), ("contrib.", optax.contrib)):
        for name, x in vars(door).items():
            kind = inspect.isfunction(x) and inspect.signature(x).return_annotation
            if not name.startswith("_") and "GradientTransformation" in str(kind):
                yield prefix + name


def test_every_transformation_of_optax_can_be_drawn():
    random = Random(0)
    drawn = {*OPTIMIZERS, *TRANSFORMS, *LEFT_OUT}
    for _ in range(400):
        drawn.update(names(Grammar(random).case()[0]))
    ways = {"user.inject": "inject_hyperparams", "user.frozen": "stateless"}
    ways |= {"user.measured": "snapshot", "user.monitored": "monitor"}
    ways |= {"user.averaged": "measure_with_ema"}
    drawn.update(ways[name] for name in set(ways) & drawn)
    assert set(_public()) <= drawn
    assert not set(LEFT_OUT) & {*OPTIMIZERS, *TRANSFORMS}


def test_what_is_left_out_and_known_says_why():
    assert all(LEFT_OUT.values())
    assert all(known.reason for known in KNOWN)


@pytest.mark.parametrize("name", STATEFUL)
@pytest.mark.parametrize("eager", [False, True])
def test_a_skipped_step_leaves_what_users_keep(name, eager):
    """Bug A1, for every kind of state."""
    # Skip the first step: the dtypes of the steps cannot represent the initial states.
    problem = Problem(gradients=("nan", "normal", *ONE_NAN[2:]), eager=eager)
    check(Call("apply_if_finite", Call(name), 3), problem)


def _damaging(monkeypatch, damage):
    """Make `apply_if_finite` damage the state of `inner` in a step that it skips."""
    honest = steepest.apply_if_finite

    def apply_if_finite(inner, n):
        tx = honest(inner, n)

        def update(g, state, p=None, **extra):
            u, new = tx.update(g, state, p, **extra)
            skipped = new.notfinite_count > 0
            harm = lambda x: jnp.where(skipped, damage(x), x)
            return u, new._replace(inner_state=jax.tree.map(harm, new.inner_state))

        return steepest.GradientTransformationExtraArgs(tx.init, update)

    monkeypatch.setattr(steepest, "apply_if_finite", apply_if_finite)


def _through(dtype):
    return lambda x: x.astype(dtype).astype(x.dtype)


@pytest.mark.parametrize(
    "name, damage",
    [
        ("user.compared", _through("bool")),
        ("user.rounded", _through("float32")),
        ("user.narrowed", _through("bfloat16")),
    ],
)
def test_a_state_damaged_by_a_skipped_step_is_seen(monkeypatch, name, damage):
    """The old bug A1: the kept state was cast to the dtype that the step computes."""
    _damaging(monkeypatch, damage)
    case = (
        Call("apply_if_finite", Call(name), 3),
        Problem(gradients=("nan", *ONE_NAN[1:])),
    )
    assert "inner_state" in difference(*case)


def test_random_expressions_find_a_damaged_state(monkeypatch):
    """Not only where a test looks for it; and the example is shrunk."""
    _damaging(monkeypatch, lambda x: x + jnp.ones_like(x))
    random, tried = Random(1), 0
    while tried < 60:
        case = Grammar(random).case()
        if "apply_if_finite" not in set(names(case[0])):
            continue
        tried += 1
        try:
            if difference(*case) is None:
                continue
        except Refused:
            continue
        small, _ = shrunk(case)
        assert "apply_if_finite" in set(names(small))
        assert len(repr(small)) <= len(repr(case[0]))
        return
    raise AssertionError("60 expressions with `apply_if_finite`, and nothing was seen")


def test_an_imaginary_part_that_is_dropped_is_seen(monkeypatch):
    """The old bug A2: `cocob` stored its signed sum as if it were a square."""
    case = Call("contrib.cocob"), Problem(dtype="complex64")
    check(*case)
    from steepest.contrib import _cocob

    monkeypatch.setattr(_cocob, "wide_moment", steepest.numerics.second_moment)
    assert "cumulative_gradients" in difference(*case)


PYTHON = {
    "schedule with `if`": Call(
        "user.inject", Name("sgd"), learning_rate=Name("user.if_schedule")
    ),
    "schedule that reads a box": Call(
        "user.inject", Name("sgd"), learning_rate=Name("user.box_schedule")
    ),
    "condition with `and`": Call(
        "conditionally_mask", Call("adam", 0.1), Name("user.if_condition")
    ),
    "condition that reads a box": Call(
        "conditionally_transform", Call("adam", 0.1), Name("user.box_condition")
    ),
    "`if` on an extra argument": Call("apply_if_finite", Call("user.if_value"), 2),
    "skip that reads a box": Call(
        "user.multi_steps",
        Call("adam", 0.1),
        2,
        should_skip_update_fn=Name("user.if_skip"),
    ),
}


@pytest.mark.parametrize("expression", PYTHON.values(), ids=PYTHON)
def test_python_in_users_functions(expression):
    """Bug A3: outside `jit` they see numbers and are called in every step."""
    check(expression, Problem(eager=True))


def test_random_expressions_with_python_in_them():
    """The same, with random expressions."""
    report = fuzz(15, 1, concrete=True)
    assert not report.differences, f"\n\n{report}"


def test_what_is_printed_can_be_pasted():
    random = Random(3)
    for _ in range(20):
        expression, problem = Grammar(random, concrete=True).case()
        assert repr(eval(repr(expression))) == repr(expression)
        assert eval(repr(problem)) == problem


def test_smaller_expressions_are_smaller():
    random = Random(4)
    for _ in range(50):
        expression, _ = Grammar(random).case()
        for less in smaller(expression):
            if isinstance(less, Call):
                assert len(repr(less)) <= len(repr(expression))


def test_a_difference_is_made_small(monkeypatch):
    """From a chain in a mask, with a schedule, only the wrong part is left."""
    monkeypatch.setattr(steepest, "sign_sgd", lambda rate: steepest.sgd(rate))
    wrong = Call("sign_sgd", Call("linear_schedule", 0.3, 0.1, 4))
    whole = Call(
        "masked", Call("chain", wrong, Call("ema", 0.9)), Name("user.all_leaves")
    )
    problem = Problem("layers", "bfloat16", ("zero", *ONE_NAN[1:]), eager=True)
    expression, problem = shrunk((whole, problem))
    assert repr(expression) == repr(Call("sign_sgd", 0.1))
    assert problem == Problem()


def test_what_differs_is_said():
    """Names, shapes, dtypes, classes, numbers and NaN, but not rounding."""
    run = lambda name, **how: ours(Call(name, 0.1), Problem(**how))
    adam = run("adam")
    assert first_difference(adam, theirs(Call("adam", 0.1), Problem()), 1e-4) is None
    assert "nu" in first_difference(adam, run("sgd"), 1e-4)
    rough = [{k: x * 1 for k, x in row.items() if k != "classes"} for row in adam]
    for row, old in zip(rough, adam, strict=True):
        row["classes"] = old["classes"]
    path = "['updates']['w']"
    rough[3][path] = adam[3][path] * (1 + 1e-6)
    assert first_difference(rough, adam, 1e-4) is None
    rough[3][path] = adam[3][path] * 1.001
    assert first_difference(rough, adam, 1e-4).startswith(f"step 3, {path}")
    rough[3][path] = adam[3][path] * jnp.nan
    assert first_difference(rough, adam, 1e-4).startswith(f"step 3, {path}")
    rough[3][path] = adam[3][path].astype("float64")
    assert "float64, in Optax float32" in first_difference(rough, adam, 1e-4)
    rough[3][path] = adam[3][path][:1]
    assert "shape (1, 2), in Optax (3, 2)" in first_difference(rough, adam, 1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tree", TREES)
def test_problems_are_what_they_say(tree, dtype):
    problem = Problem(tree, dtype, ("nan", "inf", "zero", "huge", "tiny", "normal"))
    leaves = lambda t: jax.tree.leaves(problem.gradient(t))
    real = [k for k, x in enumerate(leaves(0)) if jnp.issubdtype(x.dtype, jnp.inexact)]
    assert any(jnp.isnan(leaves(0)[k]).any() for k in real)
    assert any(jnp.isinf(leaves(1)[k]).any() for k in real)
    assert not any(x.any() for x in leaves(2))
    for t in (2, 3, 4, 5):
        assert all(bool(jnp.isfinite(x).all()) for x in leaves(t))
    assert {x.dtype.name for x in leaves(5)} <= set(DTYPES[dtype])
    kinds = lambda tree: jax.tree.map(lambda x: (x.shape, x.dtype.name), tree)
    assert kinds(problem.params(0)) == kinds(problem.gradient(0))


def test_both_libraries_build_the_same_expression():
    expression = Call("chain", Call("clip_by_global_norm", 1.0), Call("adam", 0.1))
    assert isinstance(build(optax, expression), optax.GradientTransformationExtraArgs)
    assert isinstance(
        build(steepest, expression), steepest.GradientTransformationExtraArgs
    )
