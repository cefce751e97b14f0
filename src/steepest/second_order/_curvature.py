"""Curvature of a loss: Hessian-vector products, Hessian and Fisher diagonals.

Pearlmutter, Fast exact multiplication by the Hessian, 1994,
doi:10.1162/neco.1994.6.1.147
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike, Inexact, PyTree

from .. import check
from ..numerics import abs_sq
from ..tree import differentiable

Loss = Callable[..., ArrayLike]  # (params, inputs, targets) -> number


def hvp(
    loss: Loss, v: PyTree, params: PyTree, inputs: object, targets: object
) -> PyTree:
    """`H v`, the Hessian of the loss in the params times a vector, as a tree.

        H v = d/dt grad(params + t v)  at t = 0

    It costs about two gradients, and the matrix `H` is never formed.

    Args:
        loss: a function of params, inputs and targets that returns a number.
        v: a tree like the params; or one vector with the entries of all leaves, as made
            by `ravel_pytree`.
        params: a tree of arrays.
        inputs: second argument of the loss.
        targets: third argument of the loss.

    >>> import jax.numpy as jnp
    >>> loss = lambda p, x, y: jnp.sum(x * p**3)
    >>> hvp(loss, jnp.ones(2), jnp.array([1.0, 2.0]), 1.0, None).tolist()
    [6.0, 12.0]
    """
    gradient, params = _gradient("hvp", "loss", loss, params, inputs, targets)
    tangent = _like(params, v)
    return jax.jvp(gradient, (params,), (tangent,))[1]


def hessian_diag(
    loss: Loss, params: PyTree, inputs: object, targets: object
) -> Inexact[Array, " n"]:
    """The diagonal of the Hessian of the loss in the params, as one vector.

    It takes one Hessian-vector product for each entry of the params, 64 at a time.

    Args:
        loss: a function of params, inputs and targets that returns a number.
        params: a tree of arrays.
        inputs: second argument of the loss.
        targets: third argument of the loss.
    """
    gradient, params = _gradient("hessian_diag", "loss", loss, params, inputs, targets)
    flat, unravel = _ravel(params)
    if flat.size == 0:
        return flat

    def entry(k: Array) -> Array:
        v = unravel(jnp.zeros_like(flat).at[k].set(1))
        return _ravel(jax.jvp(gradient, (params,), (v,))[1])[0][k]

    return jax.lax.map(entry, jnp.arange(flat.size), batch_size=min(flat.size, 64))


def fisher_diag(
    negative_log_likelihood: Loss, params: PyTree, inputs: object, targets: object
) -> Inexact[Array, " n"]:
    """The squared gradient of the loss in the params, as one vector.

    For one observation it is the diagonal of the observed Fisher information. For a
    batch, `vmap` it over inputs and targets and take the mean.

    Args:
        negative_log_likelihood: a function of params, inputs and targets that returns a
            number.
        params: a tree of arrays.
        inputs: second argument of the loss.
        targets: third argument of the loss.
    """
    argument = "negative_log_likelihood"
    gradient, params = _gradient(
        "fisher_diag", argument, negative_log_likelihood, params, inputs, targets
    )
    return abs_sq(_ravel(gradient(params))[0])


def _gradient(
    name: str,
    argument: str,
    loss: Loss,
    params: PyTree,
    inputs: object,
    targets: object,
) -> tuple[Callable[[PyTree], PyTree], PyTree]:
    """The gradient of the loss as a function of the params; the params as arrays."""
    check.function(name, **{argument: loss})
    differentiable(name, params=params)
    value = lambda p: check.one_number(name, argument, loss(p, inputs, targets))
    return jax.grad(value), jax.tree.map(jnp.asarray, params)


def _like(params: PyTree, v: PyTree) -> PyTree:
    """`v` in the structure, shapes and dtypes of the params."""
    flat, unravel = _ravel(params)
    structure = jax.tree.structure(params)
    if jax.tree.structure(v) == jax.tree.structure(0) and jnp.shape(v) == flat.shape:
        v = unravel(jnp.asarray(v).astype(flat.dtype))
    shapes = [jnp.shape(x) for x in jax.tree.leaves(v)]
    wanted = [x.shape for x in jax.tree.leaves(params)]
    if jax.tree.structure(v) != structure or shapes != wanted:
        raise check.WrongArgument(
            f"hvp: v has shapes {shapes}, expected a tree like the params, with shapes "
            f"{wanted}, or one vector of {flat.size} numbers."
        )
    return jax.tree.map(lambda t, p: jnp.asarray(t).astype(p.dtype), v, params)


def _ravel(tree: PyTree) -> tuple[Array, Callable[[Array], PyTree]]:
    with jax.numpy_dtype_promotion("standard"):
        return ravel_pytree(tree)
