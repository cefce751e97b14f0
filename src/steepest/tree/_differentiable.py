"""Trees by which a function is differentiated."""

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from .. import check


def differentiable(who: str, **trees: PyTree) -> None:
    """Refuse trees with leaves by which nothing can be differentiated.

    Args:
        who: who speaks in the error.
        trees: the trees, by the names they have in the error.
    """
    for name, tree in trees.items():
        for path, x in jax.tree_util.tree_leaves_with_path(tree):
            if check.is_number(x) and jnp.issubdtype(jnp.result_type(x), jnp.inexact):
                continue
            where = jax.tree_util.keystr(path) or "(the tree itself)"
            raise TypeError(
                f"{who}: leaf {where} of the {name} {check.said_of(x)}, expected real "
                "or complex numbers: it is differentiated by them. Convert it with "
                "`.astype(float)`, or leave it out."
            )
