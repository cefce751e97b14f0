"""A whole training step: the same call for every optimizer."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from .. import check
from ..combine import LookaheadParams
from ..core import AnyTransformation, as_inner, OptState, Params
from ..engine import apply_updates, Donated, unpack
from ..microbatching import AccumulationType, microbatch
from ..optimizers import value_and_grad_from_state
from ..tree import conj

_MEAN, _ONE_BY_ONE = AccumulationType.MEAN, AccumulationType.CONCAT
_WHO = "make_train_step"


def make_train_step(
    loss: Callable[..., Any],
    tx: AnyTransformation,
    *,
    has_aux: bool = False,
    microbatch_size: int | None = None,
    same_loss: bool | None = None,
) -> Callable[..., tuple[Params, OptState, Any]]:
    """`step(params, state, *batch) -> (params, state, value)`, with any optimizer.

        value, g = value_and_grad(loss)(p, *batch)
        u, state = tx.update(g, state, p, value=..., grad=..., value_fn=...)
        p       <- p + u

    What an optimizer wants besides the gradient it gets: the value (Polyak, MoMo,
    `reduce_on_plateau`, `guard`), the loss as a function (line searches, L-BFGS,
    Sophia) and its gradient as one (SAM). So Adam and L-BFGS change places in one line.
    With `lookahead`, the gradient is taken at the fast params. Packed params, made by
    `pack`, the loss gets unpacked.

    Compiled once per structure; the old params and the old state are given up, and the
    new ones written into their memory. It may also stand inside a `jit` or a `scan`.

    Args:
        loss: `loss(params, *batch, **rest) -> value`, one number; its mean over the
            batch if there are pieces.
        tx: any transformation.
        has_aux: whether `loss` returns `(value, aux)`. Then so does the step.
        microbatch_size: how many examples to take at a time, for less memory; the value
            and the gradient are the means over the pieces, in float32 or wider. Batches
            are cut along their first axis; keyword arguments are not, and what
            comes in `aux` is put together again along its first axis.
        same_loss: whether the loss is the same function in every step. Then what a line
            search has computed in its last step is not computed again. By default, if
            there is nothing but the params.

    >>> import jax.numpy as jnp, steepest
    >>> loss = lambda p, x: jnp.mean((p - x) ** 2)
    >>> for tx in (steepest.adam(0.5), steepest.lbfgs()):
    ...     params = jnp.array(0.0)
    ...     state, step = tx.init(params), steepest.make_train_step(loss, tx)
    ...     for _ in range(40):
    ...         params, state, value = step(params, state, jnp.array([1.0, 3.0]))
    ...     print(round(float(value), 1))
    1.0
    1.0
    """
    (loss,) = check.function(_WHO, loss=loss)
    update = as_inner(_WHO, "tx", tx).update
    check.flag(_WHO, has_aux=has_aux)
    if same_loss is not None:
        check.flag(_WHO, same_loss=same_loss)

    def alone(params: Params, *batch: Any, **rest: Any) -> Any:
        """The value without anything beside it."""
        found = loss(unpack(params), *batch, **rest)
        return check.one_number(_WHO, "loss", found[0] if has_aux else found)

    def checked(params: Params, *batch: Any, **rest: Any) -> Any:
        value, aux = loss(unpack(params), *batch, **rest)
        return check.one_number(_WHO, "loss", value), aux

    def step(
        params: Params, state: OptState, *batch: Any, **rest: Any
    ) -> tuple[Params, OptState, Any]:
        at = LookaheadParams.fast_of(params)
        size = microbatch_size if batch else None
        pieces = partial(
            microbatch, argnums=range(1, 1 + len(batch)), microbatch_size=size
        )
        whole = pieces(partial(alone, **rest), accumulator=_MEAN)
        both = jax.value_and_grad(checked if has_aux else alone, has_aux=has_aux)
        ways = ((_MEAN, _ONE_BY_ONE) if has_aux else _MEAN), _MEAN

        def value_fn(p: Params) -> Any:
            return whole(p, *batch)

        again = not (batch or rest) if same_loss is None else same_loss
        is_complex = any(map(jnp.iscomplexobj, jax.tree.leaves(at)))
        if again and not has_aux and not is_complex:
            known = value_and_grad_from_state(value_fn, must_be_there=False)
            found, g = known(at, state=state)
        else:
            found, g = pieces(partial(both, **rest), accumulator=ways)(at, *batch)
        g = conj(g)
        updates, state = update(
            g,
            state,
            params,
            value=found[0] if has_aux else found,
            grad=g,
            value_fn=value_fn,
            obj_fn=value_fn,
            grad_fn=lambda p, i: conj(jax.grad(value_fn)(p)),
        )
        return apply_updates(params, updates), state, found

    return Donated(step)
