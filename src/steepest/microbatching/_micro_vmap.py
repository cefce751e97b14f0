"""Results and gradients for each example, a few examples at a time."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from .. import check
from ..core import Real
from ..tree import differentiable
from ._accumulators import AccumulationType, aggregate_for
from ._checks import check_axes, check_call, check_tree, integers
from ._microbatch import in_pieces, Way


class Aux(NamedTuple):
    """Second result of `micro_grad`, with one entry for each example."""

    values: PyTree  # values of the function
    metrics: PyTree  # results of `metrics_fn`
    aux: PyTree  # auxiliary results of the function


def micro_vmap(
    fun: Callable[..., PyTree],
    in_axes: int | Sequence[PyTree] = 0,
    out_axes: object = 0,
    *,
    microbatch_size: int | None = None,
    vmap_fn: Callable[..., Callable[..., PyTree]] = jax.vmap,
    accumulator: Way = AccumulationType.CONCAT,
    num_real_microbatches: Real | None = None,
) -> Callable[..., PyTree]:
    """`jax.vmap`, a few examples at a time.

    Args:
        fun: a function of one example. Keyword arguments are mapped over axis 0.
        in_axes: the axis of the examples: one number for all positional arguments, or a
            tuple with one entry for each. An entry is a number, `None` for an argument
            without examples, or a tree of these that is a prefix of the argument.
        out_axes: 0; other values are not supported.
        microbatch_size: number of examples at a time; `None` for all.
        vmap_fn: maps over the examples: `(fun, in_axes, out_axes) -> function`.
        accumulator: how to combine the results: an `AccumulationType`, an
            `Accumulator`, or a tree of them that is a prefix of the result of `fun`.
        num_real_microbatches: number of microbatches to run; the others are padding.

    >>> import jax.numpy as jnp
    >>> micro_vmap(lambda x: x * x, microbatch_size=2)(jnp.arange(4)).tolist()
    [0, 1, 4, 9]
    """
    return _mapped(
        "micro_vmap",
        fun,
        in_axes,
        out_axes,
        microbatch_size,
        vmap_fn,
        accumulator,
        num_real_microbatches,
    )


def _mapped(
    name: str,
    fun: Callable[..., PyTree],
    in_axes: int | Sequence[PyTree],
    out_axes: object,
    microbatch_size: int | None,
    vmap_fn: Callable[..., Callable[..., PyTree]],
    accumulator: Way,
    num_real_microbatches: Real | None,
) -> Callable[..., PyTree]:
    """`micro_vmap`, with the name used in error messages."""
    check_call(name, fun, microbatch_size, num_real_microbatches)
    check.function(name, vmap_fn=vmap_fn)
    if not (isinstance(out_axes, int) and out_axes == 0):
        raise NotImplementedError(
            f"{name}: out_axes is {out_axes!r}, expected 0. Move the axes of the "
            "result with `jnp.moveaxis`."
        )

    @functools.wraps(fun)
    def wrapped(*args: PyTree, **kwargs: PyTree) -> PyTree:
        axes = _axes(name, in_axes, len(args))
        if not args and not kwargs:
            raise ValueError(f"{name}: got no arguments, expected a batch.")
        check_axes(name, axes, args)
        mapped = vmap_fn(fun, axes, 0)

        def run(*args: PyTree, **kwargs: PyTree) -> PyTree:
            stacked = mapped(*args, **kwargs)
            check_tree(name, "accumulator", accumulator, "result", stacked)
            one = lambda way, part: aggregate_for(name, way)(part)
            return jax.tree.map(one, accumulator, stacked)

        batches = [i for i, axis in enumerate(axes) if axis is not None]
        return in_pieces(
            name,
            run,
            batches,
            microbatch_size,
            accumulator,
            tuple(kwargs),
            [axes[i] for i in batches] + [0] * len(kwargs),
            num_real_microbatches,
        )(*args, **kwargs)

    return wrapped


def _axes(name: str, in_axes: int | Sequence[PyTree], count: int) -> tuple[PyTree, ...]:
    """One entry of `in_axes` for each of the positional arguments."""
    if not isinstance(in_axes, int | list | tuple):
        raise TypeError(
            f"{name}: in_axes is {in_axes!r}, expected a whole number or a tuple with "
            "one entry for each positional argument."
        )
    axes = (in_axes,) * count if isinstance(in_axes, int) else tuple(in_axes)
    if len(axes) != count:
        raise ValueError(
            f"{name}: in_axes has {len(axes)} entries, expected one for each of the "
            f"{count} positional arguments."
        )
    return axes


def micro_grad(
    fun: Callable[..., PyTree],
    has_aux: bool = False,
    argnums: int | Sequence[int] = 0,
    *,
    batch_argnums: int | Sequence[int] = 1,
    keep_batch_dim: bool = True,
    microbatch_size: int | None = None,
    accumulator: Way = AccumulationType.SUM,
    transform_fn: Callable[[PyTree], PyTree] = lambda grads: grads,
    metrics_fn: Callable[[PyTree], PyTree] = lambda grads: None,
    num_real_microbatches: Real | None = None,
) -> Callable[..., tuple[PyTree, Aux]]:
    """The gradient for each example, transformed and accumulated over the batch.

    Args:
        fun: a function that returns a loss, or with `has_aux` a loss and auxiliary
            results.
        has_aux: whether `fun` also returns auxiliary results.
        argnums: the arguments to differentiate with respect to.
        batch_argnums: which positional arguments are batches, along axis 0. Keyword
            arguments are batches too.
        keep_batch_dim: whether `fun` gets a batch of one example, or the example.
        microbatch_size: number of examples at a time; `None` for all.
        accumulator: how to combine the gradients: an `AccumulationType`, an
            `Accumulator`, or a tree of them that is a prefix of the gradients.
        transform_fn: applied to the gradient of each example, for instance clipping.
        metrics_fn: metrics of the gradient of each example, before `transform_fn`.
        num_real_microbatches: number of microbatches to run; the others are padding.

    Returns:
        A function that returns the gradients and, for each example, an `Aux`.

    >>> import jax.numpy as jnp
    >>> grads, aux = micro_grad(lambda w, x: jnp.sum(w * x))(2.0, jnp.arange(4.0))
    >>> float(grads), aux.values.tolist()
    (6.0, [0.0, 2.0, 4.0, 6.0])
    """
    name = "micro_grad"
    check_call(name, fun, microbatch_size, num_real_microbatches)
    check.function(name, transform_fn=transform_fn, metrics_fn=metrics_fn)
    by = integers(name, argnums=argnums)
    numbers = integers(name, batch_argnums=batch_argnums)
    loss = _checked_loss(name, fun, has_aux)
    value_and_grad = jax.value_and_grad(loss, argnums, has_aux=has_aux)

    def one(*args: PyTree, **kwargs: PyTree) -> tuple[PyTree, Aux]:
        values, grads = value_and_grad(*args, **kwargs)
        values, aux = values if has_aux else (values, None)
        return transform_fn(grads), Aux(values, metrics_fn(grads), aux)

    @functools.wraps(fun)
    def wrapped(*args: PyTree, **kwargs: PyTree) -> tuple[PyTree, Aux]:
        if not all(-len(args) <= n < len(args) for n in by):
            raise TypeError(
                f"{name}: argnums is {argnums}, but there are {len(args)} positional "
                "arguments. Pass the params by position."
            )
        differentiable(name, **{f"argument {n}": args[n] for n in by})
        batches = {n if n >= 0 else n + len(args) for n in numbers}
        if not batches <= set(range(len(args))):
            raise IndexError(
                f"{name}: batch_argnums is {batch_argnums}, but there are "
                f"{len(args)} positional arguments. Pass the batch by position."
            )
        check_axes(name, [0 if i in batches else None for i in range(len(args))], args)
        if keep_batch_dim:
            keep = lambda x: jnp.expand_dims(x, 1)
            args = tuple(
                jax.tree.map(keep, x) if i in batches else x for i, x in enumerate(args)
            )
        return _mapped(
            name,
            one,
            tuple(0 if i in batches else None for i in range(len(args))),
            0,
            microbatch_size,
            jax.vmap,
            (accumulator, AccumulationType.CONCAT),
            num_real_microbatches,
        )(*args, **kwargs)

    return wrapped


def _checked_loss(
    name: str, fun: Callable[..., PyTree], has_aux: bool
) -> Callable[..., PyTree]:
    """`fun`, with a check that it returns a loss, or with `has_aux` a pair."""

    def loss(*args: PyTree, **kwargs: PyTree) -> PyTree:
        result = fun(*args, **kwargs)
        if has_aux and not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(
                f"{name}: fun does not return a pair, expected the loss and auxiliary "
                "results. Pass `has_aux=False` if there are none."
            )
        check.one_number(name, "fun", result[0] if has_aux else result)
        return result

    return loss
