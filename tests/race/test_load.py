"""Problems by name: the built-in ones, and the user's own."""

import sys
from textwrap import dedent

import pytest

from steepest.race import Problem
from steepest.race.problems import load

OWN = """
    import jax.numpy as jnp
    from steepest.race import Problem

    def made():
        return Problem(init=lambda key: jnp.zeros(3), loss=lambda p, b: jnp.sum(p))

    def broken():
        return 1 / 0

    problem = made()
    called = Problem(init=problem.init, loss=problem.loss, name="by its name")
    number = 3

    class shelf:
        problem = problem

    import sys
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a module in it."""
    (tmp_path / "own_problems.py").write_text(dedent(OWN))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.mark.parametrize(
    "where", ["own_problems", "own_problems.py", "./own_problems.py"]
)
@pytest.mark.parametrize(
    "attribute, name",
    [
        ("problem", "problem"),
        ("made", "made"),
        ("called", "by its name"),
        ("shelf.problem", "shelf.problem"),
    ],
)
def test_a_users_problem(folder, where, attribute, name):
    result = load(f"{where}:{attribute}")
    assert isinstance(result, Problem) and result.name == name


def test_a_file_elsewhere_sees_its_neighbours(folder, monkeypatch):
    (folder / "deeper").mkdir()
    (folder / "deeper" / "neighbour_of_mine.py").write_text(
        "from own_problems import made"
    )
    (folder / "deeper" / "mine.py").write_text("from neighbour_of_mine import made")
    assert load("deeper/mine.py:made").name == "made"


@pytest.mark.parametrize(
    "text, error, says",
    [
        ("digit", ValueError, "Did you mean `digits`.*`bytes`.*`module:attribute`"),
        ("Least-Squares", ValueError, "Did you mean `least_squares`"),
        ("nothing_like_it", ValueError, "no problem 'nothing_like_it'. Built-in"),
        ("own_problems.py", ValueError, "`own_problems.py:problem`"),
        (":problem", ValueError, "`module:attribute`"),
        ("own_problems:", ValueError, "`module:attribute`"),
        ("own_problems:a b", ValueError, "`module:attribute`"),
        ("not_there:problem", ModuleNotFoundError, "no module `not_there` in "),
        ("own_problems.sub:problem", ModuleNotFoundError, "own_problems"),
        ("not/there.py:problem", FileNotFoundError, "no file not/there.py"),
        ("own_problems:probelm", AttributeError, "Did you mean `problem`.*called"),
        ("own_problems:number", TypeError, "number is an int, expected a .*Problem"),
        ("own_problems:shelf", TypeError, "shelf is a type"),
        ("own_problems:broken", TypeError, r"own_problems.py, line 9: ZeroDivision"),
        (
            "own_problems:sys.exit",
            TypeError,
            r"fails\. SystemExit\(\) ended the program",
        ),
        (3, TypeError, "is a int|is an int"),
    ],
    ids=lambda x: x if isinstance(x, str) and ":" in x else None,
)
def test_errors_say_what_is_wrong(folder, as_users_do, text, error, says):
    with pytest.raises(error, match=f"^race: .*{says}"):
        load(text)


@pytest.mark.parametrize("where", ["fails", "fails.py"])
@pytest.mark.parametrize(
    "source, says",
    [
        (
            "x = 1\nimport not_installed",
            r"line 2: ModuleNotFoundError: .*not_installed",
        ),
        ("x = 1\ny = x / 0", r"line 2: ZeroDivisionError: division by zero"),
        ("x = = 1", r"SyntaxError: invalid syntax \(fails.py, line 1\)"),
        (
            "import argparse\nargparse.ArgumentParser().parse_args(['--lr'])",
            r"line 2: SystemExit\(2\) ended the program.*`if __name__ == ",
        ),
    ],
    ids=["import", "raises", "syntax", "exits"],
)
def test_a_module_that_fails_says_where(folder, where, source, says):
    (folder / "fails.py").write_text(source)
    with pytest.raises(ImportError, match=f"^race: cannot import the .*{says}"):
        load(f"{where}:problem")
    assert "fails" not in sys.modules
