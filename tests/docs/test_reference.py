"""The reference has one entry for every public name."""

import importlib
import inspect
import pkgutil
import re
import types
from collections import Counter

import pytest
from _ext.markdown import paragraphs, references
from _ext.reference import GROUPS, page_of, pages, state_of
from _ext.surface import doors, links, things

import steepest

ENTRY = re.compile(r"^`+\{py:(?:function|class|data)\} ([\w.]+)", re.M)


def _doors():
    """All public modules, found by importing them."""
    yield steepest
    for info in pkgutil.walk_packages(steepest.__path__, "steepest."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            yield importlib.import_module(info.name)


def test_every_public_name_has_an_entry():
    """Here found by importing the modules, there by reading them."""
    every = {full for x in things().values() for full in [x.name, *x.others]}
    for door in _doors():
        assert door.__name__ in doors()
        for name in dir(door):
            is_module = isinstance(getattr(door, name), types.ModuleType)
            if not name.startswith("_") and not is_module:
                assert f"{door.__name__}.{name}" in every


def test_each_entry_is_there_once():
    entries = Counter(name for text in pages().values() for name in ENTRY.findall(text))
    assert entries == Counter(list(things()))


def test_each_thing_has_one_entry():
    """Two names of one object are not two entries."""
    for name, thing in things().items():
        module, _, short = name.rpartition(".")
        x = getattr(importlib.import_module(module), short)
        if inspect.isfunction(x) or inspect.isclass(x):
            original = getattr(importlib.import_module(thing.module), x.__name__, x)
            assert x is original


def test_every_name_is_listed_by_module():
    text = pages()["names"]
    for thing in things().values():
        for full in [thing.name, *thing.others]:
            short = full.rpartition(".")[2]
            assert f"{{py:obj}}`{short} <{links()[full]}>`" in text


def test_every_page_is_in_a_table_of_contents():
    listed = {*GROUPS, "index", "names", "optimizers/index"}
    own = {page_of(x) for x in things().values() if x.is_optimizer}
    assert listed | own == set(pages())
    for page in own:
        name = page.removeprefix("optimizers/")
        assert re.search(rf"^{re.escape(name)}$", pages()["optimizers/index"], re.M)


@pytest.mark.parametrize(
    "name, size",
    [("sgd", 0), ("adamw", 8), ("lion", 4), ("contrib.schedule_free_adamw", 8)],
)
def test_bytes_per_parameter(name, size):
    leaves = state_of(things()[f"steepest.{name}"])
    assert sum(leaf.bytes for leaf in leaves) / 1e6 == pytest.approx(size, abs=1e-4)


def test_adamw_shows_its_formula_its_state_and_its_paper():
    text = pages()["optimizers/adamw"]
    assert "nu <- b2 nu + (1 - b2) |g|^2" in text
    assert "| `ScaleByAdamState` | `mu` | `float32[1000, 1000]` |" in text
    assert "eps: Real=1e-8, " in text
    assert "**8 bytes per parameter**" in text
    assert "[arXiv:1711.05101](<https://arxiv.org/abs/1711.05101>)" in text


def test_every_optimizer_has_its_paper():
    """From the docstring of its file."""
    for page, text in pages().items():
        if page.startswith("optimizers/") and page != "optimizers/index":
            assert "\n## References\n" in text, page


def test_a_docstring_becomes_markdown():
    doc = """Multiply *all*.

    u = 2 g

    v = u

With `b`.

Args:
    a: one
        line more.
    *b: `two_`.

>>> 1 + 1
2"""
    assert paragraphs(doc) == "\n\n".join(
        [
            r"Multiply \*all\*.",
            "```text\nu = 2 g\n\nv = u\n```",
            "With `b`.",
            ":param a: one\n    line more.\n:param \\*b: `two_`.",
            "```pycon\n>>> 1 + 1\n2\n```",
        ]
    )


def test_references_may_take_several_lines():
    doc = """A title.

One, A paper of several lines,
2018, arXiv:1801.00001 (and a
remark)
Two, Another, 1983
Three, With an address, 2006,
doi:10.1/x(y)
"""
    one, two, three = references(doc)
    assert one.endswith("](<https://arxiv.org/abs/1801.00001>) (and a remark)")
    assert two == "Two, Another, 1983"
    assert three.endswith("[doi:10.1/x(y)](<https://doi.org/10.1/x(y)>)")
