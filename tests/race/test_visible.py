"""Text from users is shown literally: nothing is interpreted or lost."""

import io
import re
import xml.etree.ElementTree as xml
from dataclasses import replace

import pytest
from rich.text import Text

from steepest.race import race, write_report
from steepest.race._visible import visible
from steepest.race.terminal._command import main
from steepest.race.terminal._console import _Console, console_for
from steepest.race.terminal._progress import Bars
from steepest.race.terminal._stop import Stop
from steepest.race.terminal._table import print_outcome

from .outcomes import digits, sweep
from .small import LINE

# Clears the screen, sets the title, reverses the direction, ends a line, is not a
# character.
EVIL = "\x1b[2J\x1b]0;owned\x07\x00\r\x7f\x9b31m\u202e\u2028\ufffe\ud800"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028]")


def _evil():
    """A race with it in every text."""
    result = digits()
    sweeps = tuple(replace(s, name=f"{s.name}{EVIL}") for s in result.sweeps)
    missing = ((f"lbfgs{EVIL}", f"no value{EVIL}"),)
    texts = ("problem", "about", "measure", "machine")
    changed = {key: f"{key}{EVIL}" for key in texts}
    return replace(result, sweeps=sweeps, missing=missing, **changed)


def test_what_is_seen_stays_as_it_is():
    for text in ("adamw(b2=0.95)", "Käse ± 🧀", "two\nlines\tand a tab", "👩‍🔬"):
        assert visible(text) == text


def test_the_rest_is_written_out():
    assert visible("\x1b[0m") == r"\x1b[0m"
    assert visible("a\ud800b\u202e") == r"a\ud800b\u202e"
    assert not OBEYED.search(visible(EVIL)) and visible(EVIL).isprintable()
    assert visible(visible(EVIL)) == visible(EVIL)


def test_nothing_gets_into_a_file(tmp_path):
    write_report(_evil(), tmp_path)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 7
    for path in files:
        text = path.read_bytes().decode()
        assert not OBEYED.search(text), path.name
        assert "1b[2J" in text or path.suffix == ".svg"
        if path.suffix == ".svg":
            xml.fromstring(text)


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def _plain(text):
    """Without the terminal's own colors and cursor movements."""
    return re.sub(r"\x1b\[[0-9;]*[mKA]|\x1b\[\?25[lh]|\r", "", text)


@pytest.mark.parametrize("kind", [io.StringIO, _Terminal], ids=["pipe", "terminal"])
def test_nothing_gets_to_the_terminal(kind):
    file = kind()
    print_outcome(console_for(file), _evil())
    result = _plain(file.getvalue())
    assert not OBEYED.search(result) and r"\x1b[2J" in result
    result.encode()


def test_nothing_gets_into_the_bars():
    file = _Terminal()
    console = _Console(file=file, force_terminal=True, width=200, legacy_windows=False)
    name = f"adamw{EVIL}"
    with Bars(Stop(), replace(LINE, name=f"line{EVIL}"), console) as bars:
        bars.begins([name], 3, 12)
        bars.evaluates(sweep(name))
        bars.fails(name, f"why{EVIL}")
    result = _plain(file.getvalue())
    assert r"\x1b[2J" in result and not OBEYED.search(result)


def test_nothing_gets_into_an_error(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for command in (
        ["race", f"{EVIL}:problem"],
        ["race", "--optimizers", f"sgd{EVIL}"],
        ["race", "--out", f"{EVIL[:-1]}", "--resume"],
    ):
        if "\0" in "".join(command):
            command = [word.replace("\0", "") for word in command]
        assert main(command) == 2
        err = capsys.readouterr().err
        assert err.startswith("error: ") and not OBEYED.search(err)


def test_styles_are_still_drawn():
    file = _Terminal()
    console = _Console(file=file, force_terminal=True, color_system="standard")
    console.print(Text("bold", "bold"))
    assert file.getvalue() == "\x1b[1mbold\x1b[0m\n"


def test_one_bad_character_does_not_break_a_race(tmp_path):
    odd = replace(LINE, name="lone\udcff", about=f"about{EVIL}", measure="l\ud800ss")
    outcome = race(odd, ["sgd"], seeds=1, learning_rates=[0.1], folder=tmp_path)
    page = write_report(outcome, tmp_path).read_text()
    assert r"lone\udcff" in page and r"l\ud800ss" in page
    again = race(odd, folder=tmp_path, resume=True)
    assert [s.name for s in again.sweeps] == ["sgd"]
