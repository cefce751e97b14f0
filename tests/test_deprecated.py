"""Names that Optax has deprecated work here too, with a warning."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

from .oracles._calls import called

TREE = {"a": jnp.array([3.0, -4.0]), "b": jnp.array([[0.5]])}
CALLS = {
    "tree_utils.tree_scalar_mul": lambda f: f(2.0, TREE),
    "tree_utils.tree_add_scalar_mul": lambda f: f(TREE, 2.0, TREE),
    "tree_utils.tree_l1_norm": lambda f: f(TREE),
    "tree_utils.tree_l2_norm": lambda f: f(TREE, squared=True),
    "tree_utils.tree_linf_norm": lambda f: f(TREE),
    "dpsgd": lambda f: _step(f(0.1, 1.0, 0.0, 0)),
    "differentially_private_aggregate": lambda f: _step(f(1.0, 0.0, 0)),
    "DifferentiallyPrivateAggregateState": lambda f: f(jnp.ones(2))._asdict(),
}


def _step(tx):
    g = jnp.array([[3.0, 4.0], [0.6, 0.8]])
    return tx.update(g, tx.init(jnp.zeros(2)))[0]


def _find(module, name):
    *rooms, name = name.split(".")
    for room in rooms:
        module = getattr(module, room)
    with pytest.warns(DeprecationWarning, match="is deprecated"):
        return getattr(module, name)


@pytest.mark.parametrize("name", CALLS)
def test_it_works_and_warns(name):
    ours = CALLS[name](_find(steepest, name))
    theirs = called(CALLS[name], _find(optax, name))
    for key in ours if isinstance(ours, dict) else [...]:
        np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-6)


def test_no_name_is_missing():
    names = {f"tree_utils.{x}" for x in optax.tree_utils._deprecations}
    working = {k for k, (_, found) in optax._deprecations.items() if found is not None}
    assert names | working == set(CALLS)


def test_other_names_are_not_there():
    with pytest.raises(
        AttributeError, match="module 'steepest' has no attribute 'adm'"
    ):
        steepest.adm  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'tree_ad'"):
        from steepest.tree_utils import tree_ad  # noqa: F401  # pyright: ignore


def test_a_plain_import_does_not_warn():
    """Warnings are errors here, and this accesses every name."""
    for module in (steepest, steepest.tree_utils):
        for name in dir(module):
            getattr(module, name)
