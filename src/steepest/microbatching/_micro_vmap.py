"""Results and gradients for each example, a few examples at a time."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ._accumulators import AccumulationType, aggregate_for
from ._microbatch import microbatch, Way


class Aux(NamedTuple):
    """What `micro_grad` returns beside the gradients, for each example."""

    values: PyTree  # of the function
    metrics: PyTree  # of `metrics_fn`
    aux: PyTree  # what the function returned beside its value


def micro_vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    microbatch_size: int | None = None,
    vmap_fn: Callable[..., Any] = jax.vmap,
    accumulator: Way = AccumulationType.CONCAT,
    num_real_microbatches: Any = None,
) -> Callable[..., Any]:
    """`jax.vmap` that maps over a few examples at a time.

    Args:
        fun: a function of one example. Keyword arguments are mapped over axis 0.
        in_axes: as for `jax.vmap`.
        out_axes: 0; others are not supported.
        microbatch_size: how many examples at a time; `None` for all.
        vmap_fn: what maps over them: `(fun, in_axes, out_axes) -> function`.
        accumulator, num_real_microbatches: as for `microbatch`.

    >>> import jax.numpy as jnp
    >>> micro_vmap(lambda x: x * x, microbatch_size=2)(jnp.arange(4)).tolist()
    [0, 1, 4, 9]
    """
    if not (isinstance(out_axes, int) and out_axes == 0):
        raise NotImplementedError(
            f"micro_vmap: out_axes is {out_axes!r}, and only 0 is supported. Move the "
            "axes of the result."
        )

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        axes = in_axes
        if isinstance(axes, int):
            axes = (axes,) * len(args)
        axes = tuple(axes)
        if len(axes) != len(args):
            raise ValueError(
                f"micro_vmap: in_axes has {len(axes)} entries, and there are "
                f"{len(args)} positional arguments: one for each is wanted."
            )
        mapped = vmap_fn(fun, axes, 0)

        def run(*args: Any, **kwargs: Any) -> Any:
            stacked = mapped(*args, **kwargs)
            one = lambda way, part: aggregate_for(way)(part)
            return jax.tree.map(one, accumulator, stacked)

        batches = [i for i, axis in enumerate(axes) if axis is not None]
        return microbatch(
            run,
            batches,
            microbatch_size,
            accumulator,
            argnames=tuple(kwargs),
            in_axes=[axes[i] for i in batches] + [0] * len(kwargs),
            num_real_microbatches=num_real_microbatches,
        )(*args, **kwargs)

    return wrapped


def micro_grad(
    fun: Callable[..., Any],
    has_aux: bool = False,
    argnums: int | Sequence[int] = 0,
    *,
    batch_argnums: int | Sequence[int] = 1,
    keep_batch_dim: bool = True,
    microbatch_size: int | None = None,
    accumulator: Way = AccumulationType.SUM,
    transform_fn: Callable[[PyTree], PyTree] = lambda grads: grads,
    metrics_fn: Callable[[PyTree], PyTree] = lambda grads: None,
    num_real_microbatches: Any = None,
) -> Callable[..., tuple[PyTree, Aux]]:
    """The gradient for each example, changed, and then accumulated over the batch.

    Args:
        fun: a loss, and with `has_aux` something beside it.
        has_aux: whether it returns something beside it.
        argnums: by which arguments to differentiate.
        batch_argnums: which positional arguments are batches, along axis 0. Keyword
            arguments are batches too.
        keep_batch_dim: whether `fun` sees a batch of one example, or the example.
        microbatch_size: how many examples at a time; `None` for all.
        accumulator: as for `microbatch`, for the gradients.
        transform_fn: what to do with the gradient of one example, such as clipping.
        metrics_fn: what to report of it, as it was before.
        num_real_microbatches: as for `microbatch`.

    Returns:
        A function that returns the gradients and, for each example, an `Aux`.

    >>> import jax.numpy as jnp
    >>> grads, aux = micro_grad(lambda w, x: jnp.sum(w * x))(2.0, jnp.arange(4.0))
    >>> float(grads), aux.values.tolist()
    (6.0, [0.0, 2.0, 4.0, 6.0])
    """
    value_and_grad = jax.value_and_grad(fun, argnums, has_aux=has_aux)
    numbers = (batch_argnums,) if isinstance(batch_argnums, int) else batch_argnums

    def one(*args: Any, **kwargs: Any) -> tuple[PyTree, Aux]:
        values, grads = value_and_grad(*args, **kwargs)
        values, aux = values if has_aux else (values, None)
        return transform_fn(grads), Aux(values, metrics_fn(grads), aux)

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> tuple[PyTree, Aux]:
        batches = {n if n >= 0 else n + len(args) for n in numbers}
        if not batches <= set(range(len(args))):
            raise IndexError(
                f"micro_grad: batch_argnums is {batch_argnums}, and there are "
                f"{len(args)} positional arguments. Pass the batch by position."
            )
        if keep_batch_dim:
            keep = lambda x: jnp.expand_dims(x, 1)
            args = tuple(
                jax.tree.map(keep, x) if i in batches else x for i, x in enumerate(args)
            )
        return micro_vmap(
            one,
            in_axes=tuple(0 if i in batches else None for i in range(len(args))),
            microbatch_size=microbatch_size,
            accumulator=(accumulator, AccumulationType.CONCAT),
            num_real_microbatches=num_real_microbatches,
        )(*args, **kwargs)

    return wrapped
