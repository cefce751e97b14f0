"""Whoever hovers over a public function in an editor sees every argument explained."""

import inspect
import re

import pytest

import steepest
import steepest.experimental

DOORS = (
    steepest,
    steepest.assignment,
    steepest.contrib,
    steepest.decoupled,
    steepest.experimental,
    steepest.experimental.aggregating,
    steepest.losses,
    steepest.microbatching,
    steepest.perturbations,
    steepest.projections,
    steepest.second_order,
)
HEAD = re.compile(r"    (\w+(?:, \w+)*): \S")  # of an entry: one name, or several


def _public_functions():
    """Every public function, once."""
    seen = set()
    for door in DOORS:
        for name, f in inspect.getmembers(door):
            if inspect.isfunction(f) and name[0] != "_" and f not in seen:
                seen.add(f)
                yield pytest.param(f, id=f"{door.__name__}.{name}")


def _section(doc: str) -> list[str]:
    """The lines of the Args section of a docstring, indented."""
    _, _, rest = f"\n{doc}\n".partition("\nArgs:\n")
    lines = []
    for line in rest.splitlines():
        if line and not line.startswith("    "):
            break
        lines.append(line)
    return lines


def _explained(doc: str) -> list[str]:
    """The names of the arguments in the Args section, in order."""
    heads = (HEAD.match(line) for line in _section(doc))
    return [name for head in heads if head for name in head[1].split(", ")]


@pytest.mark.parametrize("f", list(_public_functions()))
def test_every_argument_is_explained_in_its_place(f):
    doc = inspect.getdoc(f)
    assert doc
    assert sorted(_explained(doc)) == sorted(inspect.signature(f).parameters)


@pytest.mark.parametrize("f", list(_public_functions()))
def test_no_explanation_is_elsewhere(f):
    """ "As for `masked`" would send the reader to another docstring."""
    section = " ".join(" ".join(_section(inspect.getdoc(f) or "")).split())
    assert not re.search(r"\bas (for|in|of) `", section, re.IGNORECASE)


def test_the_section_is_read():
    doc = "Do.\n\nArgs:\n    x, y: two\n        lines: here.\n    z: one.\n\nMore: no."
    assert _explained(doc) == ["x", "y", "z"]
