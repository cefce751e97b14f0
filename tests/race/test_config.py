"""Race options in a TOML file."""

from pathlib import Path

import pytest

from steepest.race.entrants import entrant
from steepest.race.terminal._config import read


@pytest.fixture
def reading(tmp_path):
    """The options in a file with this text."""

    def of(text, encoding="utf-8"):
        path = tmp_path / "race.toml"
        path.write_bytes(text.encode(encoding))
        return read(path)

    return of


WHOLE = """
problem = "digits"
optimizers = ["adamw", "lookahead(adamw, 5, 0.5)"]
learning-rates = [1e-3, 1, "1e-3:1e-1:3"]
steps = 1_000
seeds = [0, 1, 7]
target = 1
schedule = "cosine_decay_schedule(rate, steps)"
time-budget = "1h30m"
sweep = {weight_decay = [0, 0.1]}
halving = true
at-once = 8
out = "runs/digits"
resume = false
json = "-"
log = "wandb"
"""
READ = {
    "problem": "digits",
    "optimizers": ["adamw", "lookahead(adamw, 5, 0.5)"],
    "learning_rates": [1e-3, 1.0, 1e-3, 1e-2, 1e-1],
    "steps": 1000,
    "seeds": [0, 1, 7],
    "target": 1.0,
    "schedule": "cosine_decay_schedule(rate, steps)",
    "time_budget": 5400.0,
    "sweep": {"weight_decay": [0, 0.1]},
    "halving": True,
    "at_once": 8,
    "out": Path("runs/digits"),
    "resume": False,
    "json": Path("-"),
    "log": "wandb",
}


def test_every_option_can_be_there(reading):
    assert reading(WHOLE) == READ


def test_keys_may_be_in_a_table_and_have_underscores(reading):
    assert reading("[race]\n" + WHOLE.replace("-rates", "_rates")) == READ


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        (
            "optimizers = 'adamw, sgd(momentum=0.9)'",
            "optimizers",
            ["adamw", "sgd(momentum=0.9)"],
        ),
        ("learning_rates = '1e-2:1:3'", "learning_rates", [0.01, 0.1, 1.0]),
        ("learning_rates = 0.1", "learning_rates", [0.1]),
        ("seeds = 5", "seeds", 5),
        ("seeds = [5]", "seeds", [5]),
        ("seeds = '5,'", "seeds", [5]),
        ("time_budget = 90", "time_budget", 90.0),
    ],
)
def test_as_on_the_command_line(reading, line, key, value):
    assert reading(line) == {key: value}


def test_other_tools_save_it_in_their_way(reading):
    """With a byte order mark, and with CRLF line endings."""
    assert reading("\r\n".join(WHOLE.split("\n")), "utf-8-sig") == READ


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps = 3\nseeds = = 4", "race.toml: this is not valid TOML: .*line 2"),
        ("learning-rate = [1]", "option `learning-rate`. Did you mean `learning-rates"),
        ("colour = 1", "unknown option `colour`. Options: problem, optimizers, "),
        ("[rcae]\nsteps = 3", "unknown option `rcae`"),
        ("race = 3", "`race` is 3, expected a table"),
        ("steps = 3\n[race]\nsteps = 4", "`steps` is set twice"),
        ("time-budget = 3\ntime_budget = 4", "`time_budget` is set twice"),
        ("time_budget = 'soon'", "`time_budget`: 'soon' is not a time, expected `90s`"),
        ("learning_rates = '1:2'", "`learning_rates`: '1:2' is not a grid, expected"),
        ("optimizers = 'adamw('", "`optimizers`: .*never closed"),
    ],
)
def test_errors_say_what_is_wrong(reading, text, message):
    with pytest.raises(ValueError, match=message):
        reading(text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("steps = '1000'", "`steps` is '1000', expected a whole number"),
        ("steps = 1.5", "`steps` is 1.5, expected a whole number"),
        ("steps = true", "`steps` is True, expected a whole number"),
        ("seeds = [0, 1.0]", "expected a whole number, or a list of them"),
        ("target = '1'", "`target` is '1', expected a number"),
        ("resume = 1", "`resume` is 1, expected true or false"),
        ("optimizers = [['adamw']]", "expected a list of strings"),
        ("learning_rates = 2020-01-01", "expected a list of numbers, or a string"),
        ("problem = ['digits']", "`problem` is .*, expected a string"),
    ],
)
def test_kinds_are_checked(reading, line, message):
    with pytest.raises(TypeError, match=message):
        reading(line)


BOMBS = {
    "nested lists": "steps = " + "[" * 9000,
    "nested tables": "steps = " + "{a = " * 5000,
    "a key of many parts": ".".join("a" * 20_000) + " = 1",
    "a table of many parts": "[" + ".".join("a" * 20_000) + "]",
    "a deep value": "optimizers." + ".".join("a" * 900) + " = 1",
    "many digits": "steps = " + "9" * 40_000,
    "too many digits": "steps = " + "9" * 10**6,
    "a long text": "optimizers = '" + "x" * 40_000 + "'",
    "a long number": "learning-rates = '" + "9" * 40_000 + "x'",
    "a long time": "time-budget = '" + "9" * 40_000 + "x'",
    "a long key": "k" * 40_000 + " = 1",
    "quotes": "optimizers = '" + '"\\' * 20_000 + "'",
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused_with_a_short_message(reading, text):
    with pytest.raises((ValueError, TypeError)) as refused:
        reading(text)
        entrant("x" * 40_000, steps=1)  # strings are checked as optimizers
    assert len(str(refused.value)) < 500


def test_an_endless_file_is_not_read_to_its_end():
    with pytest.raises(ValueError, match="expected at most 50000 bytes"):
        read(Path("/dev/zero"))


def test_binary_files_are_refused(reading):
    with pytest.raises(ValueError, match="not UTF-8 text"):
        reading(WHOLE, "utf-16")
