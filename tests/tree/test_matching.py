"""Selecting leaves by path."""

import jax
import jax.numpy as jnp
import pytest

from steepest import MaskedNode, matching, not_matching
from steepest.core import Recent
from steepest.tree import _matching, as_patterns, first_matches

TREE = {"a": [1.0, None], "b": {"bias": 2.0, "scale": MaskedNode()}}


def test_what_matches_and_what_does_not():
    """In the structure of the params: `None` and masked leaves do not change."""
    assert matching("bias|0")(TREE) == {
        "a": [True, None],
        "b": {"bias": True, "scale": MaskedNode()},
    }
    assert not_matching("bias$")(TREE) == {
        "a": [True, None],
        "b": {"bias": False, "scale": MaskedNode()},
    }


def test_shapes_and_tracers_have_paths_too():
    shapes = jax.eval_shape(lambda: {"w": jnp.ones(2), "b": jnp.ones(2)})
    wanted = {"w": True, "b": False}
    assert matching("w")(shapes) == wanted
    seen = []
    jax.jit(lambda p: seen.append(matching("w")(p)))(wanted)
    assert seen == [wanted]


def test_which_is_first():
    patterns = as_patterns("test", ["b/", "^a", "a"])
    assert first_matches(patterns, TREE) == (1, 0)
    assert first_matches(patterns, {"c": 1.0}) == (None,)


def test_not_all_trees_are_remembered(monkeypatch):
    known = Recent(2)
    monkeypatch.setattr(_matching, "_KNOWN", known)
    for k in range(5):
        assert matching("1")([0.0] * k) == [i == 1 for i in range(k)]
        assert 0 < len(known) <= 2


@pytest.mark.parametrize("f", [matching, not_matching])
@pytest.mark.parametrize(
    "pattern, kind, message",
    [
        ("a[b", ValueError, "the pattern 'a[b' is invalid at position 1: unterminated"),
        (
            None,
            TypeError,
            "a pattern is None, a NoneType, expected a regular expression",
        ),
        (True, TypeError, "a pattern is True, a bool, expected a regular expression"),
    ],
    ids=["malformed", "none", "boolean"],
)
def test_what_is_no_pattern_is_refused_at_once(f, pattern, kind, message, as_users_do):
    with pytest.raises(kind) as error:
        f(pattern)
    assert str(error.value).startswith(f"{f.__name__}: {message}")
