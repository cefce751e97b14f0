"""Check that a function can be differentiated with respect to a tree."""

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from .. import check


def differentiable(name: str, **trees: PyTree) -> None:
    """Raise an error if a leaf is not an array of real or complex numbers.

    Args:
        name: name used in error messages.
        trees: the trees, by the names used for them in error messages.
    """
    for label, tree in trees.items():
        for path, x in jax.tree_util.tree_leaves_with_path(tree):
            if check.is_number(x) and jnp.issubdtype(jnp.result_type(x), jnp.inexact):
                continue
            where = jax.tree_util.keystr(path) or "(the tree itself)"
            raise TypeError(
                f"{name}: leaf {where} of the {label} {check.kind(x)}, expected "
                "real or complex numbers, to differentiate with respect to them. "
                "Convert it with `.astype(float)`, or leave it out."
            )
