"""Gradient accumulation: one step for several gradients."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Bool, Int, PyTree

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    like_optax,
    OptState,
    Params,
    Real,
    Rule,
    transformation,
    Updates,
)
from ..engine import (
    Decide,
    Leaves,
    map_wide,
    plan_of,
    selected,
    when,
    wide,
    WrapperInfo,
    wrapping,
    zeros,
    zeros_for_none,
)
from ..numerics import increment, is_inexact, promoted, zero_count
from ..tree import where
from ._decisions import yes_or_no

_Leaf: TypeAlias = Array | np.ndarray


@runtime_checkable
class ShouldSkipUpdateFunction(Protocol):
    """`(updates, gradient_step, params) -> (skip, skip_state)`, both maybe traced."""

    def __call__(
        self, updates: Updates, gradient_step: Array, params: Params | None
    ) -> tuple[ArrayLike, PyTree]: ...


@like_optax
class MultiStepsState(NamedTuple):
    """The gradients accumulated so far, and the inner state."""

    mini_step: Int[Array, ""]  # gradients accumulated since the last step
    gradient_step: Int[Array, ""]  # the number of steps taken
    inner_opt_state: OptState
    acc_grads: Updates  # their mean or sum; after a step, that of the last k
    skip_state: PyTree = ()  # what the skip function returned last


class MultiSteps:
    """Take one step of `opt` with the mean of every `k` gradients.

        a <- a + (g - a) / j         the j-th gradient since the last step
        u  = opt(a)                  at the k-th; after it, a restarts with g

    Before the k-th gradient the updates are zero. A gradient of `None` counts as zero;
    if the k-th is `None`, the leaf is not updated. Gradients in half precision are
    summed, `a <- a + g` and `u = opt(a / k)`: a sum of a few of them is exact in
    float32.

    Elementwise optimizers such as Adam need no memory besides `a`. Optimizers of whole
    matrices, such as Muon, run in a branch, and so only at every `k`-th gradient; the
    branch keeps the updates in memory.

    Args:
        opt: any transformation. It receives the extra arguments of the last gradient.
        every_k_schedule: `k`, or a function of the number of steps that returns it.
        use_grad_mean: whether to use the mean; otherwise the sum, `a <- a + g`.
        should_skip_update_fn: a function that decides which gradients to skip, such as
            `skip_not_finite`.
        accumulator_dtype: the dtype in which `a` is stored; `None` for that of the
            params. Float64 and complex params keep their own.

    >>> import jax.numpy as jnp, steepest
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
        every_k_schedule: int | Array | Callable[[Array], ArrayLike],
        use_grad_mean: bool = True,
        should_skip_update_fn: ShouldSkipUpdateFunction | None = None,
        accumulator_dtype: DTypeLike | None = jnp.float32,
    ):
        self._opt = as_inner("MultiSteps", "opt", opt)
        self._pair = multi_steps(
            self._opt,
            every_k_schedule,
            use_grad_mean,
            should_skip_update_fn,
            accumulator_dtype,
        )

    @property
    def inner_opt(self) -> GradientTransformationExtraArgs:
        """The transformation that takes the steps."""
        return self._opt

    def __repr__(self) -> str:
        return repr(self._pair)

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
        **extra_args: object,
    ) -> tuple[Updates, MultiStepsState]:
        """Accumulate a gradient, and take a step if it is the `k`-th.

        Args:
            updates: the gradient.
            state: the state that the last call returned.
            params: the params, if `opt` needs them.
            extra_args: the extra arguments of `opt`.
        """
        return self._pair.update(updates, state, params, **extra_args)

    def has_updated(self, state: MultiStepsState) -> Bool[Array, ""]:
        """Whether the last call of `update` took a step.

        Args:
            state: the state that `update` returned.
        """
        check.state_of("MultiSteps", MultiStepsState, state)
        step, mini = jnp.asarray(state.gradient_step), jnp.asarray(state.mini_step)
        return (mini == 0) & (step > 0)

    def gradient_transformation(self) -> GradientTransformationExtraArgs:
        """The transformation as a pair `(init, update)`, for use in chains."""
        return self._pair


@transformation
def multi_steps(
    opt: AnyTransformation,
    every_k_schedule: int | Array | Callable[[Array], ArrayLike],
    use_grad_mean: bool = True,
    should_skip_update_fn: ShouldSkipUpdateFunction | None = None,
    accumulator_dtype: DTypeLike | None = jnp.float32,
) -> GradientTransformationExtraArgs:
    """`MultiSteps` as a pair `(init, update)`.

    Args:
        opt, every_k_schedule, use_grad_mean, should_skip_update_fn, accumulator_dtype:
            as for `MultiSteps`.
    """
    (mean,) = check.flag("MultiSteps", use_grad_mean=use_grad_mean)
    (dtype,) = check.dtype("MultiSteps", accumulator_dtype=accumulator_dtype)
    every, skip = _every(every_k_schedule), should_skip_update_fn
    skip = _never_skip if skip is None else skip
    check.function("MultiSteps", should_skip_update_fn=skip)
    opt = as_inner("MultiSteps", "opt", opt)
    accumulation = _Accumulation(opt, mean, dtype)

    def init(params: Params) -> MultiStepsState:
        Leaves(params, "params").check("MultiSteps")
        acc, mini, steps = accumulation.empty(params), zero_count(), zero_count()
        _, skip_state = skip(zeros(acc), steps, params)
        return MultiStepsState(mini, steps, opt.init(params), acc, skip_state)

    info = WrapperInfo("MultiSteps", opt, "inner_opt_state")
    asks = "every_k_schedule", "should_skip_update_fn"
    decide = Decide(partial(_decide, every, skip), asks)
    return wrapping(init, accumulation.update, info, decide)


multi_steps.__name__ = "MultiSteps"  # the name users type


class _Decided(NamedTuple):
    """The decisions of the user's functions about this gradient."""

    k: Real  # the number of gradients per step
    skip: Bool[Array, ""]  # whether to skip this one
    skip_state: PyTree  # the second result of the skip function


def _decide(
    every: Callable[[Array], Real],
    skip: ShouldSkipUpdateFunction,
    updates: Updates,
    state: MultiStepsState,
    params: Params | None,
    **extra_args: object,
) -> _Decided:
    """Call the user's functions."""
    check.state_of("MultiSteps", MultiStepsState, state)
    skipped, skip_state = skip(updates, state.gradient_step, params)
    skipped = yes_or_no("MultiSteps", "should_skip_update_fn", skipped)
    return _Decided(every(state.gradient_step), skipped, skip_state)


class _Accumulation:
    """Accumulates `k` gradients, and takes a step with them."""

    def __init__(
        self,
        opt: GradientTransformationExtraArgs,
        use_mean: bool,
        dtype: DTypeLike | None,
    ):
        self._opt, self._use_mean, self._dtype = opt, use_mean, dtype
        self._elementwise = _is_elementwise(opt)

    def empty(self, params: Params) -> Updates:
        """The accumulator before the first gradient."""
        dtype = lambda p: _accumulator_dtype(jnp.result_type(p), self._dtype)
        return jax.tree.map(lambda p: jnp.zeros_like(p, dtype=dtype(p)), params)

    def update(
        self,
        decided: _Decided,
        updates: Updates,
        state: MultiStepsState,
        params: Params | None,
        **extra_args: object,
    ) -> tuple[Updates, MultiStepsState]:
        """Accumulate a gradient, and take a step if it is the `k`-th."""
        k, skip, skip_state = decided
        j = increment(state.mini_step)
        full = (j >= k) & ~skip
        # Without zeros, the first gradient of a step, if it is missing, would leave the
        # mean of the last step. They have the dtypes of the params, as gradients do.
        known = jax.tree.structure(params) == jax.tree.structure(state.acc_grads)
        whole = zeros_for_none(updates, params if known else state.acc_grads)
        trees = {"updates": whole, "accumulated": state.acc_grads}
        acc = map_wide("MultiSteps", self._add, [j.astype(float), skip], **trees)
        mean = lambda g, a: None if g is None else self._read(g, a, j)
        mean = jax.tree.map(mean, updates, acc, is_leaf=lambda x: x is None)
        args = mean, state.inner_opt_state, params, extra_args
        updates, inner = self._held(full, *args)
        steps = state.gradient_step
        return updates, MultiStepsState(
            mini_step=jnp.where(full, 0, jnp.where(skip, state.mini_step, j)),
            gradient_step=jnp.where(full, increment(steps), steps),
            inner_opt_state=inner,
            # The next gradient overwrites an old mean. A sum is reset to zero for
            # Optax, which would add to it if training continues there.
            acc_grads=acc if self._use_mean else where(full, zeros(acc), acc),
            skip_state=skip_state,
        )

    def _sums(self, g: _Leaf, a: _Leaf) -> bool:
        """Whether a leaf is accumulated as a sum."""
        return not self._use_mean or (_is_half(g) and not _is_half(a))

    def _add(
        self, numbers: Sequence[ArrayLike], rows: Sequence[tuple[_Leaf, _Leaf]]
    ) -> list[Array]:
        """The accumulators of some leaves, with their gradients added."""
        how = [_to_sum if self._sums(*row) else _to_mean for row in rows]
        return [f(numbers, [row])[0] for f, row in zip(how, rows, strict=True)]

    def _read(self, g: _Leaf, a: Array, j: Array) -> Array:
        """The accumulated gradient, in the dtype of a gradient."""
        if self._use_mean and self._sums(g, a):
            a = a / j.astype(a.dtype)
        return a.astype(jnp.result_type(g)) if is_inexact(jnp.asarray(g)) else a

    def _held(
        self,
        full: Array,
        updates: Updates,
        state: OptState,
        params: Params | None,
        extra_args: Mapping[str, object],
    ) -> tuple[Updates, OptState]:
        """Take a step if `full` is true.

        An elementwise formula is cheap: computing it at every step reads and writes
        less than a branch, which keeps the updates in memory. A formula for whole
        arrays is expensive, and runs in a branch.
        """
        args = updates, state, params, extra_args
        if self._elementwise:
            return selected("MultiSteps", full, self._opt, *args)
        return when("MultiSteps", full, self._opt, zeros, *args)


def _never_skip(
    updates: Updates, gradient_step: Array, params: Params | None
) -> tuple[Array, PyTree]:
    return jnp.array(False), ()


def _every(
    k: int | Array | Callable[[Array], ArrayLike],
) -> Callable[[Array], Real]:
    """`step -> k`, for a number or a function."""
    checked = lambda k: check.period("MultiSteps", every_k_schedule=k)[0]
    # An array is compared with counts, also in strict mode.
    whole = lambda k: jnp.ceil(k).astype(jnp.int32) if is_inexact(k) else k
    if callable(k):
        return lambda step: whole(checked(k(step)))
    number = whole(checked(k))
    return lambda step: number


def _accumulator_dtype(dtype: np.dtype, requested: DTypeLike | None) -> DTypeLike:
    """The dtype to accumulate in; complex and float64 params stay so."""
    if requested is None or not jnp.issubdtype(dtype, jnp.inexact):
        return requested or dtype
    if jnp.issubdtype(dtype, jnp.complexfloating) or dtype == jnp.float64:
        return promoted(dtype, requested)
    return requested


def _is_half(x: _Leaf) -> bool:
    return is_inexact(x) and jnp.finfo(x.dtype).bits < 32


def _is_elementwise(tx: GradientTransformationExtraArgs) -> bool:
    """Whether it consists only of elementwise rules."""
    bodies = [link.body for link in plan_of("MultiSteps", "opt", tx).links]
    return all(isinstance(x, Rule) and x.is_elementwise for x in bodies)


# The first gradient after a step replaces the old accumulator.
_to_mean = wide(
    lambda j, skip, g, a: jnp.where(skip, a, jnp.where(j == 1, g, a + (g - a) / j))
)
_to_sum = wide(lambda j, skip, g, a: jnp.where(skip, a, jnp.where(j == 1, g, a + g)))
