"""A condition that remains one under `vmap`."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, PyTree

T = TypeVar("T")


def cond_under_vmap(
    condition: Bool[Array, ""],
    yes: Callable[..., T],
    no: Callable[..., T],
    *operands: PyTree,
) -> T:
    """`jax.lax.cond`, which computes `yes` only if it is needed, also under `vmap`.

    `vmap` turns a `jax.lax.cond` into a choice between two results, and computes both
    in every step. Here the condition of a batch is whether it holds for any member.
    Sweeps over learning rates or seeds take their expensive steps together, so the
    steps between them stay cheap.

    Derivatives do not flow through it.

    Args:
        condition: whether to call `yes`.
        yes: a function of the operands.
        no: a function of the operands that returns arrays of the same shapes.
        operands: the arguments of both. Neither may use other traced arrays.
    """

    @custom_vmap
    def choose(condition: Array, *operands: PyTree) -> T:
        return jax.lax.cond(condition, yes, no, *operands)

    @choose.def_vmap
    def _(
        size: int, batched: Sequence[PyTree], condition: Array, *operands: PyTree
    ) -> tuple[T, PyTree]:
        mine, *rest = batched
        axes = tuple(jax.tree.map(lambda x: 0 if x else None, rest))
        many_yes, many_no = (jax.vmap(f, axes, axis_size=size) for f in (yes, no))
        if not mine:
            result = cond_under_vmap(condition, many_yes, many_no, *operands)
            return result, jax.tree.map(lambda x: True, result)

        def some(condition: Array, *operands: PyTree) -> T:
            pick = jax.vmap(jax.lax.select)
            both = many_yes(*operands), many_no(*operands)
            return jax.tree.map(lambda a, b: pick(condition, a, b), *both)

        def none(condition: Array, *operands: PyTree) -> T:
            return many_no(*operands)

        result = cond_under_vmap(jnp.any(condition), some, none, condition, *operands)
        return result, jax.tree.map(lambda x: True, result)

    return choose(condition, *jax.lax.stop_gradient(operands))
