"""A complete training step, with the same call for every optimizer."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import ArrayLike, PyTree

from .. import check
from ..combine import LookaheadParams
from ..core import AnyTransformation, as_inner, OptState, Params, unusual
from ..engine import Donated, stepping, unpack, unresolved
from ..microbatching import AccumulationType, microbatch
from ..optimizers import value_and_grad_from_state
from ..tree import conj

_MEAN, _ONE_BY_ONE = AccumulationType.MEAN, AccumulationType.CONCAT
_NAME = "make_train_step"


def make_train_step(
    loss: Callable[..., PyTree],
    tx: AnyTransformation,
    *,
    has_aux: bool = False,
    microbatch_size: int | None = None,
    same_loss: bool | None = None,
) -> Callable[..., tuple[Params, OptState, PyTree]]:
    """Make `step(params, state, *batch) -> (params, state, value)` for any optimizer.

        value, g = value_and_grad(loss)(p, *batch)
        u, state = tx.update(g, state, p, value=..., grad=..., value_fn=...)
        p       <- p + u

    The step passes everything an optimizer may need besides the gradient: the value
    (Polyak, MoMo, `reduce_on_plateau`, `guard`), the loss as a function (line searches,
    L-BFGS, Sophia) and its gradient as a function (SAM). Replacing Adam by L-BFGS is a
    change of one line. With `lookahead`, the gradient is taken at the fast params. If
    the params were packed by `pack`, the loss gets them unpacked.

    The step is compiled once per structure. The old params and the old state are
    donated, and the new ones reuse their memory. It also works inside a `jit` or a
    `scan`.

    The first call warns of bfloat16 and float16 params that are too coarse for the
    learning rate of Adam and similar optimizers: they would never move.

    Args:
        loss: `loss(params, *batch, **rest) -> value`, one number; with microbatches,
            the mean over the batch.
        tx: any transformation.
        has_aux: whether `loss` returns `(value, aux)`. The step then returns this pair
            as its value.
        microbatch_size: the number of examples to process at a time, which saves
            memory. The value and the gradient are means over the microbatches, in
            float32 or wider. Batches are split along their first axis and `aux` is
            concatenated along its first axis; keyword arguments are not split.
        same_loss: whether the loss is the same function at every step, so that the
            results of a line search can be reused in the next step. By default, only if
            the loss has no arguments but the params.

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
    (loss,) = check.function(_NAME, loss=loss)
    take = stepping(as_inner(_NAME, "tx", tx))
    check.flag(_NAME, has_aux=has_aux)
    if same_loss is not None:
        check.flag(_NAME, same_loss=same_loss)
    alone = _alone(loss, has_aux)
    both = jax.value_and_grad(_with_aux(loss) if has_aux else alone, has_aux=has_aux)
    ways = ((_MEAN, _ONE_BY_ONE) if has_aux else _MEAN), _MEAN

    def step(
        params: Params, state: OptState, *batch: PyTree, **rest: PyTree
    ) -> tuple[Params, OptState, PyTree]:
        at = LookaheadParams.fast_of(params)
        size = microbatch_size if batch else None
        pieces = partial(
            microbatch, argnums=range(1, 1 + len(batch)), microbatch_size=size
        )
        whole = pieces(partial(alone, **rest), accumulator=_MEAN)
        # Optax's line searches need a function that takes all extra arguments.
        value_fn = lambda p, obj_fn=None, grad_fn=None: whole(p, *batch)
        again = not (batch or rest) if same_loss is None else same_loss
        is_complex = any(map(jnp.iscomplexobj, jax.tree.leaves(at)))
        if again and not has_aux and not is_complex:
            known = value_and_grad_from_state(value_fn, must_be_there=False)
            value, g = known(at, state=state)
        else:
            value, g = pieces(partial(both, **rest), accumulator=ways)(at, *batch)
        g = conj(g)
        params, state = take(
            params,
            state,
            g,
            value=value[0] if has_aux else value,
            grad=g,
            value_fn=value_fn,
            obj_fn=value_fn,
            grad_fn=lambda p, i: conj(jax.grad(value_fn)(p)),
        )
        return params, state, value

    return _FirstChecked(step, tx)


class _FirstChecked(Donated):
    """A step whose first call checks that the params can register its changes."""

    def __init__(
        self, f: Callable[..., tuple[PyTree, ...]], tx: AnyTransformation
    ) -> None:
        super().__init__(f, _NAME)
        self._unchecked: AnyTransformation | None = tx

    def __call__(
        self, params: Params, state: OptState, *rest: PyTree, **more: PyTree
    ) -> tuple[PyTree, ...]:
        tx, self._unchecked = self._unchecked, None
        coarse = [] if tx is None else unresolved(tx, params)
        if coarse:
            others = f" ({len(coarse) - 1} more leaves.)" if coarse[1:] else ""
            unusual(f"{_NAME}: {coarse[0]}{others}")
        return super().__call__(params, state, *rest, **more)


def _alone(loss: Callable[..., PyTree], has_aux: bool) -> Callable[..., ArrayLike]:
    """The loss as a function of maybe packed params, without its `aux`."""

    def alone(params: Params, *batch: PyTree, **rest: PyTree) -> ArrayLike:
        result = loss(unpack(params), *batch, **rest)
        return check.one_number(_NAME, "loss", result[0] if has_aux else result)

    return alone


def _with_aux(
    loss: Callable[..., tuple[ArrayLike, PyTree]],
) -> Callable[..., tuple[ArrayLike, PyTree]]:
    """The same for a loss that returns `(value, aux)`, with its `aux`."""

    def with_aux(
        params: Params, *batch: PyTree, **rest: PyTree
    ) -> tuple[ArrayLike, PyTree]:
        value, aux = loss(unpack(params), *batch, **rest)
        return check.one_number(_NAME, "loss", value), aux

    return with_aux
