"""Sweeping a second hyperparameter."""

import numpy as np
import pytest

from steepest.race import race, standings
from steepest.race._settings import settings_of
from steepest.race.entrants import entrant, given, swept as swept_by_name
from steepest.race.report import notes
from steepest.race.terminal import _run
from steepest.race.terminal._command import main
from steepest.race.terminal._config import read
from steepest.race.terminal._options import sweep as parse

from .outcomes import digits
from .small import LINE


def swept(texts, sweep):
    """The names of the entrants, and the remarks."""
    entrants, remarks = swept_by_name(given(texts), sweep)
    assert [*entrants] == [*entrants.values()]
    return tuple(entrants), remarks


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("adamw", "adamw(weight_decay=0.1)"),
        ("adamw()", "adamw(weight_decay=0.1)"),
        ("steepest.adamw(b1=0.8, )", "steepest.adamw(b1=0.8, weight_decay=0.1)"),
        ("adamw(3 * rate)", "adamw(3 * rate, weight_decay=0.1)"),
        ("contrib.prodigy", "contrib.prodigy(weight_decay=0.1)"),
        ("lookahead(adamw, 5, 0.5)", "lookahead(adamw(weight_decay=0.1), 5, 0.5)"),
        (
            "chain(clip(1.0), masked(lion(b1=0.8), {'é': True}))",
            "chain(clip(1.0), masked(lion(b1=0.8, weight_decay=0.1), {'é': True}))",
        ),
        (
            "chain(masked(sgd, {'é': True}), adamw)",
            "chain(masked(sgd, {'é': True}), adamw(weight_decay=0.1))",
        ),
    ],
)
def test_where_the_argument_goes(text, wanted):
    assert swept([text], {"weight_decay": [0.1]}) == ((wanted,), ())


def test_the_text_is_an_optimizer():
    (name,) = swept(["lookahead(adamw)"], {"mu_dtype": ["bfloat16"]})[0]
    assert name == "lookahead(adamw(mu_dtype='bfloat16'))"
    assert entrant(name, steps=3).swept


def test_several_arguments_are_combined_and_nothing_runs_twice():
    sweep = {"b1": [0.8, 0.9], "nesterov": [True, False]}
    names, _ = swept(["adam", "adam(b1=0.8, nesterov=True)"], sweep)
    assert names == (
        "adam(b1=0.8, nesterov=True)",
        "adam(b1=0.8, nesterov=False)",
        "adam(b1=0.9, nesterov=True)",
        "adam(b1=0.9, nesterov=False)",
    )


def test_others_run_once_and_a_remark_says_why():
    two = "chain(adamw, lion)"
    texts = ["sgd", "adamw", "adam", "lion(weight_decay=1)", two]
    names, remarks = swept(texts, {"weight_decay": [0]})
    assert names == ("sgd", "adamw(weight_decay=0)", *texts[2:])
    assert remarks == (
        "`weight_decay` is not swept for sgd, adam: no such argument.",
        "`weight_decay` is not swept for lion(weight_decay=1): it is set already.",
        f"`weight_decay` is not swept for {two}: several functions take it.",
    )
    assert swept(texts, {}) == (tuple(texts), ())


def test_an_argument_that_no_optimizer_has():
    with pytest.raises(ValueError) as error:
        swept(["sgd", "adamw(b1=0.8)"], {"weight_decy": [0]})
    assert str(error.value).startswith(
        "race: `sweep` has 'weight_decy', but it applies to no optimizer of the race: "
        "no such argument. Did you mean `weight_decay`? Arguments to sweep: momentum, "
    )
    assert "learning_rate" not in str(error.value) and "b1" not in str(error.value)
    with pytest.raises(
        ValueError, match="race: it is set already, or no such argument"
    ):
        swept(["adamw(b1=0.8)", "sgd"], {"b1": [0]})


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ([0.1], "`sweep` is .0.1., expected a dict"),
        ({3: [0.1]}, "`sweep` is .3: "),
        ({"b1": []}, "`sweep` of `b1` is .., expected a list"),
        ({"b1": {0.1}}, "`sweep` of `b1` is .0.1., expected a list"),
        ({"b1": [0.9, [0.1]]}, "a value of `sweep` of `b1` is .0.1., expected"),
        ({"b1": [float("nan")]}, "a value of `sweep` of `b1` is nan"),
        ({"b1": [0.9, 0.9]}, "`sweep of b1` has 0.9 twice"),
        ({"learning_rate": [0.9]}, "Pass `learning_rates` instead"),
    ],
)
def test_bad_sweeps_are_refused(sweep, message):
    with pytest.raises(ValueError, match=message):
        settings_of("line", LINE, {"sweep": sweep}, {})


def test_values_of_numpy_are_plain():
    sweep = {"b1": np.array([0.5, 0.25]), "b2": [np.float64(0.5)], "eps": 1}
    settings = settings_of("line", LINE, {"optimizers": "adam", "sweep": sweep}, {})
    assert settings.sweep == {"b1": (0.5, 0.25), "b2": (0.5,), "eps": (1,)}
    assert next(iter(settings.entrants)) == "adam(b1=0.5, b2=0.5, eps=1)"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("weight_decay=0,0.01,1e-1", {"weight_decay": [0, 0.01, 0.1]}),
        ("b1 = -1, b2=None,True", {"b1": [-1], "b2": [None, True]}),
        ("mu_dtype=bfloat16,'float32'", {"mu_dtype": ["bfloat16", "float32"]}),
    ],
)
def test_the_command_line_and_the_file(text, wanted, monkeypatch, tmp_path, capsys):
    assert parse(text) == wanted
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(_run, "race", lambda *_, **x: asked.append(x) or digits())
    monkeypatch.setattr(_run, "write_report", lambda *_: "report.html")
    assert main(["race", "rosenbrock", "--sweep", text]) == 0
    assert asked[0]["sweep"] == wanted


def test_a_table_in_the_file(tmp_path):
    path = tmp_path / "race.toml"
    for text in (
        "sweep = {b1 = [0.8, 0.9]}",
        "sweep = 'b1=0.8,0.9'",
        "[race.sweep]\nb1 = [0.8, 0.9]",
    ):
        path.write_text(text)
        assert read(path) == {"sweep": {"b1": [0.8, 0.9]}}
    path.write_text("sweep = 3")
    with pytest.raises(TypeError, match="`sweep` is 3, expected a table"):
        read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.1", "'0.1' is not a sweep, expected `name=values`"),
        ("b1=0.1,b1=0.2", "`b1` is set twice"),
        ("b1=0.1.2", "'0.1.2' is not a value"),
        ("b1=", "'' is not a value"),
    ],
)
def test_bad_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_a_race_with_a_sweep_and_a_resumed_one(tmp_path):
    options = {"learning_rates": [0.1], "seeds": 2, "steps": 2}
    one, two = "adam(b1=0.5)", "adam(b1=0.75)"
    outcome = race(LINE, sweep={"b1": [0.5]}, folder=tmp_path, **options)
    assert [s.name for s in outcome.sweeps] == ["sgd", one]
    assert outcome.remarks[-1] in notes(outcome) and "for sgd" in outcome.remarks[-1]
    again = race(LINE, folder=tmp_path, resume=True)  # the same sweep
    assert [s.seconds for s in again.sweeps] == [s.seconds for s in outcome.sweeps]
    more = race(LINE, sweep={"b1": [0.5, 0.75]}, folder=tmp_path, resume=True)
    assert [s.name for s in more.sweeps] == ["sgd", one, two]
    assert more.sweeps[1].seconds == outcome.sweeps[1].seconds
    assert not np.array_equal(more.sweeps[1].metric, more.sweeps[2].metric)
    assert {row.name for row in standings(more)} == {"sgd", one, two}
