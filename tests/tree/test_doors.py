"""All names of `optax.tree` and `optax.tree_utils` lead to the right functions."""

import inspect

import optax

import steepest


def public(module):
    return {name for name in dir(module) if not name.startswith("_")}


def test_the_room_has_all_of_optax_tree():
    functions = {n for n in public(optax.tree) if callable(getattr(optax.tree, n))}
    assert functions <= public(steepest.tree)


def test_the_door_has_optax_names_for_them():
    tree_utils = steepest.tree_utils
    for name in public(steepest.tree_utils) - {"NamedTupleKey"}:
        short = name.removeprefix("tree_")
        assert getattr(tree_utils, name) is getattr(steepest.tree, short)
    names = {n for n in public(optax.tree_utils) if n.startswith("tree_")}
    assert names <= public(tree_utils)


def test_the_arguments_have_the_same_names():
    for name in public(optax.tree):
        theirs, ours = getattr(optax.tree, name), getattr(steepest.tree, name, None)
        if callable(theirs):
            wanted = [*inspect.signature(theirs).parameters]
            found = inspect.signature(ours).parameters
            assert [*found][: len(wanted)] == wanted, name
            new = [*found.values()][len(wanted) :]
            assert all(p.kind is p.KEYWORD_ONLY for p in new), name


def test_everything_says_what_it_takes():
    for name in public(optax.tree):
        f = getattr(steepest.tree, name, None)
        if inspect.isfunction(f):
            doc = inspect.getdoc(f) or ""
            assert all(p in doc for p in inspect.signature(f).parameters), name
