"""Optimizers of the user: functions, objects and `module:attribute`."""

import sys
from dataclasses import replace
from textwrap import dedent

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest.race import find_lr, race
from steepest.race.entrants import code_of, entrant, Own, transformation_of
from steepest.race.report import notes
from steepest.race.report._again import command
from steepest.race.terminal._command import main

from .small import LINE

OPTIONS = {"learning_rates": [1e-3, 1e-1], "seeds": 2, "steps": 4}
MODULE = """
    import optax
    import steepest
    from tests.race.small import LINE as problem

    def mine(rate, weight_decay=0.0):
        clip = steepest.clip_by_global_norm(1.0)
        return steepest.chain(clip, steepest.adamw(rate, weight_decay=weight_decay))

    def keyword(b1=0.9, *, learning_rate):
        return optax.adam(learning_rate, b1=b1)

    def fixed(b1=0.9):
        return optax.adam(0.1, b1=b1)

    made = optax.sgd(0.1)
    number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a module in it."""
    (tmp_path / "own_optimizers.py").write_text(dedent(MODULE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("own_optimizers", None)


def same(rate):
    return steepest.adamw(rate)


def _metrics(outcome):
    return {sweep.name: sweep.metric.tolist() for sweep in outcome.sweeps}


def test_all_kinds_in_one_race():
    """A function gets every learning rate; an object runs once."""
    optimizers = {
        "adamw": "adamw",
        "same": same,
        "clipped": lambda rate: optax.chain(optax.clip(1.0), optax.adam(rate)),
        "base": steepest.adamw(1e-1),
        "object": optax.adamw(1e-1),
        "fixed": lambda: steepest.sgd(0.1),
    }
    with jax.numpy_dtype_promotion("standard"):  # Optax needs it
        outcome = race(LINE, optimizers, **OPTIONS)
    assert outcome.missing == ()
    rates = {sweep.name: sweep.rates for sweep in outcome.sweeps}
    swept = {"adamw", "same", "clipped"}
    assert rates == {k: (1e-3, 1e-1) if k in swept else (None,) for k in optimizers}
    metrics = _metrics(outcome)
    assert metrics["same"] == metrics["adamw"]
    np.testing.assert_allclose(metrics["base"][0], metrics["adamw"][1], rtol=1e-5)
    np.testing.assert_allclose(metrics["object"][0], metrics["adamw"][1], rtol=1e-5)


def test_a_schedule_is_passed_to_a_function():
    schedule = "cosine_decay_schedule(rate, steps)"
    optimizers = {"adamw": "adamw", "mine": lambda lr: steepest.adamw(lr)}
    metrics = _metrics(race(LINE, optimizers, schedule=schedule, **OPTIONS))
    assert metrics["mine"] == metrics["adamw"]
    plain = lambda rate: steepest.sgd(0.1 * rate)
    with pytest.raises(TypeError, match=r"rate is a schedule, to pass on.*MadeSched"):
        race(LINE, {"mine": plain}, schedule=schedule, **OPTIONS)


def test_schedule_free_optimizers_of_optax_are_evaluated_at_their_averages():
    both = ["contrib.schedule_free_sgd", optax.contrib.schedule_free_sgd]
    first, second = _metrics(race(LINE, both, **OPTIONS)).values()
    np.testing.assert_allclose(first, second, rtol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda library: library.lbfgs(),
        lambda library: library.lookahead(library.sgd(0.1), 2, 0.5),
        lambda library: library.chain(
            library.clip(1.0), library.lookahead(library.sgd(0.1), 2, 0.5)
        ),
    ],
    ids=["lbfgs", "lookahead", "lookahead in a chain"],
)
def test_line_searches_and_lookahead_of_optax_race_as_steepest_s(make):
    both = {"ours": make(steepest), "theirs": make(optax)}
    with jax.numpy_dtype_promotion("standard"):  # Optax needs it
        outcome = race(LINE, both, **OPTIONS)
    assert outcome.missing == ()
    ours, theirs = _metrics(outcome).values()
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


@pytest.mark.parametrize("where", ["own_optimizers", "own_optimizers.py"])
@pytest.mark.parametrize(
    "text, swept, code",
    [
        ("mine", True, "mine(1e-2)"),
        ("mine(0.5)", False, "mine(0.5)"),
        ("mine(weight_decay=0.5)", True, "mine(1e-2, weight_decay=0.5)"),
        ("keyword", True, "keyword(learning_rate=1e-2)"),
        ("keyword(0.5)", True, "keyword(0.5, learning_rate=1e-2)"),
        ("fixed(b1=0.5)", False, "fixed(b1=0.5)"),
        ("made", False, "made"),
    ],
)
def test_by_the_name_of_a_module(folder, where, text, swept, code):
    one = entrant(f"{where}:{text}", steps=4)
    assert one.swept is swept and one.name == f"{where}:{text}"
    tx = one.make(jnp.float32(0.1))
    assert isinstance(tx, steepest.GradientTransformation)
    written = code_of(f"{where}:{text}", rate=1e-2, steps=4)
    assert written == f"own_optimizers.{code}"
    exec(f"import own_optimizers; {written}.init({{}})")


def test_the_code_has_the_schedule(folder):
    schedule = "linear_schedule(rate, 0, steps)"
    code = code_of("own_optimizers:mine", rate=1e-2, steps=4, schedule=schedule)
    assert code == "own_optimizers.mine(steepest.linear_schedule(1e-2, 0, 4))"


def test_describe_knows_them(folder):
    tx = transformation_of("own_optimizers:mine")
    assert repr(tx).startswith("chain(")


@pytest.mark.parametrize(
    "text, error, says",
    [
        ("not_there:mine", ModuleNotFoundError, "no module `not_there`"),
        ("own_optimizers:mien", AttributeError, "`mine`.* Its optimizers are made."),
        ("own_optimizers:number", TypeError, "is an int, expected an optimizer, or a"),
        ("own_optimizers:made()", TypeError, "is an optimizer, expected a function"),
        ("own_optimizers:mine(b1=0.9)", TypeError, "'b1'. The arguments.*rate, weight"),
    ],
)
def test_errors_of_names(folder, text, error, says):
    with pytest.raises(error, match=f"^race: .*{says}"):
        entrant(text, steps=4)


@pytest.mark.parametrize(
    "text, says",
    [
        ("own_optimizers:mine(**{})", "the arguments of your own function must be"),
        ("own_optimizers:mine(adamw)", "the arguments of your own function must be"),
        ("own-optimizers:mine", "`my_module:mine`, and cannot be a part"),
        ("lookahead(own_optimizers:mine)", "`my_module:mine`, and cannot be a part"),
    ],
)
def test_errors_of_texts(folder, text, says):
    with pytest.raises(ValueError, match=f"^optimizers: .*{says}"):
        entrant(text, steps=4)


def _needs_a_number(rate):
    return steepest.sgd(rate) if rate > 0.1 else steepest.adam(rate)


@pytest.mark.parametrize(
    "function, says",
    [
        (_needs_a_number, r"`its`.* as `its\(rate\)`, where rate is a traced.*`jnp.wh"),
        (lambda rate: steepest.sgd(float(rate)), "under `jax.jit`.*Concretization"),
        (lambda rate: steepest.sgd(np.sqrt(rate)), "under `jax.jit`.*TracerArray"),
        (lambda rate: 1 / 0, r"traced array. .*test_own.py, line \d+: ZeroDivision"),
        (lambda rate: None, "returns nothing, expected an optimizer: a pair with"),
        (lambda rate: rate, "returns a.* expected an optimizer"),
        (lambda rate, b1: steepest.adam(rate, b1), "is missing `b1`, expected a func"),
    ],
)
def test_errors_of_functions(function, says):
    with pytest.raises(TypeError, match=f"^race: the .*{says}"):
        entrant(Own("its", function), steps=4)


def test_a_function_that_needs_a_number_in_update_says_so():
    def inner(rate):
        tx = steepest.sgd(rate)
        update = lambda g, s, p=None: (g, s) if rate > 1 else tx.update(g, s, p)
        return optax.GradientTransformation(tx.init, update)

    (missing,) = race(LINE, {"its": inner}, **OPTIONS).missing
    assert missing[0] == "its" and "bool[]. All learning rates are one" in missing[1]


@pytest.mark.parametrize(
    "function",
    [
        lambda *args: steepest.sgd(*args),
        lambda lr=0.1: steepest.sgd(lr),
        lambda b1=0.9, *, rate=0.1: steepest.adam(rate, b1),
        lambda anything, /: steepest.sgd(anything),
        lambda x, **more: steepest.sgd(x, **more),
    ],
)
def test_where_the_learning_rate_goes(function):
    assert entrant(Own("its", function), steps=4).swept


def test_a_sweep_of_arguments(folder):
    optimizers = {
        "a": lambda rate, weight_decay=0: steepest.adamw(rate, weight_decay=0),
        "any": lambda rate, **more: steepest.adamw(rate, **more),
        "base": "adamw(b1=0.8)",
        "own_optimizers:mine": "own_optimizers:mine",
        "none": lambda rate: steepest.sgd(rate),
        "object": optax.sgd(0.1),
    }
    sweep = {"weight_decay": [0.5, 1], "b1": [0.5]}
    outcome = race(LINE, optimizers, sweep=sweep, **OPTIONS)
    assert [sweep.name for sweep in outcome.sweeps] == [
        *("a(weight_decay=0.5)", "a(weight_decay=1)"),
        *("any(weight_decay=0.5, b1=0.5)", "any(weight_decay=1, b1=0.5)"),
        *("base(weight_decay=0.5)", "base(weight_decay=1)"),
        "own_optimizers:mine(weight_decay=0.5)",
        "own_optimizers:mine(weight_decay=1)",
        *("none", "object"),
    ]
    assert outcome.remarks == (
        "`b1` is not swept for a, own_optimizers:mine, none, object: no such argument.",
        "`b1` is not swept for base: it is set already.",
        "`weight_decay` is not swept for none, object: no such argument.",
    )
    assert outcome.remarks[0] in notes(outcome)
    assert outcome.written["base(weight_decay=1)"] == "adamw(b1=0.8, weight_decay=1)"
    with pytest.raises(TypeError, match=r"`any\(rate, weight_decy=1\)`, where rate is"):
        race(LINE, optimizers, sweep={"weight_decy": [1]}, **OPTIONS)
    del optimizers["any"]
    with pytest.raises(ValueError, match=r"no such argument.*Did you mean `weight_d"):
        race(LINE, optimizers, sweep={"weight_decy": [1]}, **OPTIONS)
    with pytest.raises(ValueError, match=r"make two optimizers base.b2=0.5."):
        two = {"base": "adamw", "base(b2=0.5)": "sgd"}
        race(LINE, two, sweep={"b2": [0.5]}, **OPTIONS)


def test_the_recommendation_has_code_where_there_is_some(folder):
    names = ["own_optimizers:mine"]
    advice = race(LINE, names, **OPTIONS).recommendation()
    assert str(advice).endswith("\n    tx = own_optimizers.mine(0.1)")
    # The library has an `adamw` too, but this is another one.
    advice = race(LINE, {"adamw": lambda rate: optax.sgd(rate)}, **OPTIONS)
    assert str(advice.recommendation()).startswith("Use adamw at 0.1: ")
    assert advice.recommendation().first.code is None
    advice = race(LINE, {"base": steepest.adamw(0.1)}, **OPTIONS).recommendation()
    assert advice.first.title == "base" and advice.first.code == "steepest.adamw(0.1)"


def test_the_command_to_race_again(folder):
    problem = replace(LINE, source="own_optimizers:problem")
    optimizers = {"base": "adamw", "same": optax.adam}
    words = command(race(problem, optimizers, **OPTIONS)).split()
    assert words[words.index("--optimizers") + 1] == "adamw,optax:adam"
    optimizers["own"] = optax.sgd(0.1)
    assert command(race(problem, optimizers, **OPTIONS)) is None


def test_a_resumed_race_needs_the_same_functions(tmp_path):
    optimizers = {"mine": lambda rate: steepest.sgd(rate), "base": "adamw"}
    resume = {"folder": tmp_path, "resume": True}
    outcome = race(LINE, optimizers, folder=tmp_path, **OPTIONS)
    again = race(LINE, optimizers, **resume)
    assert [s.seconds for s in again.sweeps] == [s.seconds for s in outcome.sweeps]
    with pytest.raises(ValueError, match="`mine` of the race to resume was passed fr"):
        race(LINE, **resume)
    with pytest.raises(ValueError, match="`mine` of the race to resume was passed fr"):
        race(LINE, ["mine", "base"], **resume)
    for name, other in (
        ("mine", lambda rate: steepest.sgd(2 * rate)),
        ("mine", lambda: steepest.sgd(0.1)),
    ):
        with pytest.raises(ValueError, match=r"Changed since .*: the optimizer's prog"):
            race(LINE, optimizers | {name: other}, **resume)
    for name, other in (("mine", steepest.sgd(0.1)), ("base", "adamw(b1=0.8)")):
        with pytest.raises(ValueError, match=f"`{name}` is .*, but it .* to resume"):
            race(LINE, optimizers | {name: other}, **resume)
    only = race(LINE, ["base"], **resume)  # its text is in the file
    assert only.sweeps[0].seconds == outcome.sweeps[1].seconds


def test_on_the_command_line(folder, capsys):
    text = "own_optimizers:mine(weight_decay=0.5)"
    words = ["race", "own_optimizers:problem", "--optimizers", f"sgd,{text}"]
    words += ["--steps", "4", "--seeds", "2", "--out", "results"]
    assert main(words) == 0
    assert text.split("(")[0] in capsys.readouterr().out
    again = ["race", "--resume", "--out", "results"]
    assert main(again) == 0
    assert "importing own_optimizers:mine" in capsys.readouterr().err
    (folder / "race.toml").write_text(f'optimizers = ["{text}"]')
    words = ["race", "own_optimizers:problem", "--config", "race.toml", "--steps", "2"]
    assert main(words) == 0
    assert main(["race", "rosenbrock", "--optimizers", "own_optimizers:mien"]) == 2
    assert "Did you mean `mine`?" in capsys.readouterr().err


def test_find_lr_takes_the_name_of_a_module(folder):
    with jax.numpy_rank_promotion("allow"):
        found = find_lr(LINE, "own_optimizers:mine", steps=100, seeds=2)
    assert found.optimizer == "own_optimizers:mine"
