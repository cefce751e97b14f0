"""One step for several gradients: accumulation over small batches."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    period,
    Real,
    Updates,
)
from ..engine import map_wide, when, wide, wrapping, zeros
from ..numerics import increment, promoted, squares, zero_count


@runtime_checkable
class ShouldSkipUpdateFunction(Protocol):
    """`(updates, gradient_step, params) -> (skip, skip_state)`, both maybe traced."""

    def __call__(
        self, updates: Updates, gradient_step: Array, params: Params | None
    ) -> tuple[Any, Any]: ...


class MultiStepsState(NamedTuple):
    """How far the accumulation is, and the inner state."""

    mini_step: Int[Array, ""]  # gradients taken since the last step
    gradient_step: Int[Array, ""]  # steps taken
    inner_opt_state: OptState
    acc_grads: Updates  # their mean or sum until now
    skip_state: Any = ()  # what the skip function said last


class MultiSteps:
    """Take a step of `opt` for every `k` gradients, with their mean; else hold still.

        a <- a + (g - a) / j         the j-th gradient since the last step
        u  = opt(a)                  at the k-th, and a begins again at zero

    Args:
        opt: any transformation. It hears the extra arguments of the last gradient.
        every_k_schedule: `k`, or a function of the steps taken that returns it.
        use_grad_mean: whether to take the mean; otherwise the sum, `a <- a + g`.
        should_skip_update_fn: a function that says which gradients to leave out, such
            as `skip_not_finite`.
        accumulator_dtype: the dtype `a` is kept in, float64 and complex params apart,
            which keep theirs; `None` for that of the params.

    >>> import steepest
    >>> tx = steepest.MultiSteps(steepest.sgd(1.0), every_k_schedule=2)
    >>> state = tx.init(jnp.array([0.0]))
    >>> first, state = tx.update(jnp.array([1.0]), state)
    >>> second, state = tx.update(jnp.array([3.0]), state)
    >>> float(first[0]), float(second[0]), bool(tx.has_updated(state))
    (0.0, -2.0, True)
    """

    def __init__(
        self,
        opt: AnyTransformation,
        every_k_schedule: int | Array | Callable[[Any], Any],
        use_grad_mean: bool = True,
        should_skip_update_fn: ShouldSkipUpdateFunction | None = None,
        accumulator_dtype: Any = jnp.float32,
    ):
        self._opt = as_inner("MultiSteps", "opt", opt)
        self._every = _every(every_k_schedule)
        self._accumulate = _to_mean if use_grad_mean else _to_sum
        self._skip = should_skip_update_fn or _never_skip
        self._dtype = accumulator_dtype
        self._pair = wrapping(self._init, self._update)

    @property
    def inner_opt(self) -> GradientTransformationExtraArgs:
        """The transformation that takes the steps."""
        return self._opt

    def init(self, params: Params) -> MultiStepsState:
        """The state before the first gradient.

        Args:
            params: the params.
        """
        return self._pair.init(params)

    def update(
        self,
        updates: Updates,
        state: MultiStepsState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, MultiStepsState]:
        """Take in a gradient; take a step if it is the last of its row.

        Args:
            updates: the gradient.
            state: what the last call returned.
            params: the params, where `opt` wants them.
            extra_args: what `opt` hears besides.
        """
        return self._pair.update(updates, state, params, **extra_args)

    def has_updated(self, state: MultiStepsState) -> Bool[Array, ""]:
        """Whether the last gradient was the last of its row, so that a step was taken.

        Args:
            state: what `update` returned.
        """
        step, mini = jnp.asarray(state.gradient_step), jnp.asarray(state.mini_step)
        return (mini == 0) & (step > 0)

    def gradient_transformation(self) -> GradientTransformationExtraArgs:
        """The pair, for chains."""
        return self._pair

    def _init(self, params: Params) -> MultiStepsState:
        zero = lambda p: jnp.zeros_like(p, dtype=_kept(jnp.result_type(p), self._dtype))
        acc = jax.tree.map(zero, params)
        mini, steps = zero_count(), zero_count()
        _, skip_state = self._skip(zeros(acc), steps, params)
        return MultiStepsState(mini, steps, self._opt.init(params), acc, skip_state)

    def _update(
        self,
        updates: Updates,
        state: MultiStepsState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, MultiStepsState]:
        skip, skip_state = self._skip(updates, state.gradient_step, params)
        skip = jnp.asarray(skip)
        j = increment(state.mini_step)
        trees = {"updates": updates, "accumulated": state.acc_grads}
        numbers = [j.astype(float), skip]
        acc = map_wide("MultiSteps", self._accumulate, numbers, **trees)
        full = (j >= self._every(state.gradient_step)) & ~skip
        mean = jax.tree.map(_like, updates, acc, is_leaf=lambda x: x is None)
        found, inner = when(
            full, self._opt, zeros, mean, state.inner_opt_state, params, extra_args
        )
        steps = state.gradient_step
        return found, MultiStepsState(
            mini_step=jnp.where(full, 0, jnp.where(skip, state.mini_step, j)),
            gradient_step=jnp.where(full, increment(steps), steps),
            inner_opt_state=inner,
            acc_grads=map_wide("MultiSteps", _begin_again, [full], **trees, sum=acc),
            skip_state=skip_state,
        )


def skip_not_finite(
    updates: Updates, gradient_step: Any, params: Params | None
) -> tuple[Array, dict[str, Array]]:
    """Leave out a gradient that has an infinity or a NaN.

    Args:
        updates: the gradient.
        gradient_step, params: not looked at.
    """
    del gradient_step, params
    bad = [jnp.sum(~jnp.isfinite(x)) for x in jax.tree.leaves(updates)]
    count = sum(bad, jnp.zeros((), int))
    skip = count > 0
    return skip, {"should_skip": skip, "num_not_finite": count}


def skip_large_updates(
    updates: Updates,
    gradient_step: Any,
    params: Params | None,
    max_squared_norm: Real,
) -> tuple[Array, dict[str, Array]]:
    """Leave out a gradient that is longer than it may be, or not finite.

    Args:
        updates: the gradient.
        gradient_step, params: not looked at.
        max_squared_norm: the largest sum of squares that passes.
    """
    del gradient_step, params
    leaves = jax.tree.leaves(updates)
    parts = [jnp.sum(squares(x)).astype(float) for x in leaves]
    norm_squared = sum(parts, jnp.zeros(()))
    # Written so that NaN, which is not smaller than anything, is left out too.
    skip = ~(norm_squared < max_squared_norm)
    return skip, {"should_skip": skip, "norm_squared": norm_squared}


def _never_skip(updates: Updates, step: Array, params: Params | None) -> Any:
    return jnp.array(False), ()


def _every(k: Any) -> Callable[[Array], Any]:
    """`step -> k`, for a number or a function."""
    if callable(k):
        return k
    (number,) = period("MultiSteps", every_k_schedule=k)
    return lambda step: number


def _kept(dtype: Any, wanted: Any) -> Any:
    """The dtype to accumulate in: what is complex or float64 stays so."""
    if wanted is None or not jnp.issubdtype(dtype, jnp.inexact):
        return wanted or dtype
    if jnp.issubdtype(dtype, jnp.complexfloating) or dtype == jnp.float64:
        return promoted(dtype, wanted)
    return wanted


def _like(g: Any, a: Any) -> Any:
    """What was accumulated, as `opt` would have seen the gradient."""
    if g is None:
        return None
    dtype = jnp.result_type(g)
    return a.astype(dtype) if jnp.issubdtype(dtype, jnp.inexact) else a


_to_mean = wide(lambda j, skip, g, a: jnp.where(skip, a, a + (g - a) / j))
_begin_again = wide(lambda full, g, old, a: jnp.where(full, 0, a))
_to_sum = wide(lambda j, skip, g, a: jnp.where(skip, a, a + g))
