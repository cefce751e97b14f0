"""The table of Optax's private names in the docs."""

import inspect
import re
from operator import attrgetter
from pathlib import Path

import jax
import optax
import pytest

import steepest

DOCS = Path(__file__).parent.parent.parent / "docs" / "from-optax.md"
ROWS = re.findall(r"\| `optax\.(_src\.[\w.]+)` \| `([\w.]+)` \|", DOCS.read_text())


@pytest.mark.parametrize("theirs, ours", ROWS)
def test_both_exist(theirs, ours):
    found = attrgetter(theirs)(optax)
    library, _, name = ours.partition(".")
    mine = attrgetter(name)({"steepest": steepest, "jax": jax}[library])
    assert theirs.split(".")[-1] == name.split(".")[-1]
    assert inspect.isroutine(found) == inspect.isroutine(mine)


def test_there_are_some():
    assert len(ROWS) > 30
