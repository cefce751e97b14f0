"""Weights in half precision that train as if they were float32.

Zamirai, Zhang, Aberger and De Sa, Revisiting bfloat16 training, 2020, arXiv:2010.06192
Ortiz, Gupta, Rando and Frankle, FlashOptim, 2026, arXiv:2602.23349 (24-bit weights)
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    missing,
    OptState,
    Params,
    Transformation,
    transformation,
    Updates,
)
from ..engine import apply_updates, Landed, Leaves, Plan, WrapperInfo
from ..numerics import (
    before_its_parts,
    Corrected,
    correction_dtype,
    dither,
    inlined,
    joined,
    key_from,
    landed,
    seeds,
)
from ._half_weights import advanced, is_narrow, of_wide, widened

_NAME = "compensated"


class CompensatedState(NamedTuple):
    """The inner state, and what each half-precision weight is short of."""

    inner_state: OptState  # of float32 params
    corrections: PyTree  # int16 or int8; `None` for leaves in other dtypes
    rng_key: Array | None = None  # the key of the next step; only with 8 bits


@transformation
def compensated(
    inner: AnyTransformation, bits: int = 16, *, key: ArrayLike = 0
) -> GradientTransformationExtraArgs:
    """Apply `inner` to bfloat16 or float16 params, as if they were float32.

    The state has a correction for each half-precision weight. Together they are a wider
    weight `w`, to which `inner` is applied, with float32 gradients and a float32 state:

        w  = p + correction
        w <- w + u
        p <- the number nearest to w;  correction <- w - p

    `bits=16`: `w` is a float32. The step is that of float32 training, bit for bit, with
    gradients taken at the rounded weights `p`. Weights take 4 bytes in total.

    `bits=8`: `w` has 24 bits, 256 times the resolution of bfloat16. It is rounded up or
    down at random, so small steps are kept on average. Weights take 3 bytes in total.

    The update is float32. Added by `apply_updates`, it lands exactly on the new `p`.
    `make_step` writes `p` without it, and on a GPU in the same kernel as memory in 8
    bits. Nothing may follow `compensated` in a chain. Leaves in other dtypes are
    updated by `inner` alone. Derivatives of the update are zero.

    In float16, numbers below 2^-17 are off by up to 2^-41. A weight that is too large
    for its dtype stops at the largest finite number.

    Args:
        inner: any transformation; it receives the extra arguments.
        bits: the size of a correction, 16 or 8.
        key: with 8 bits, a key of `jax.random` or an integer seed.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.compensated(steepest.sgd(1.0))
    >>> p = jnp.array([1.0], jnp.bfloat16)
    >>> state = tx.init(p)
    >>> for _ in range(100):
    ...     u, state = tx.update(jnp.array([1e-3], jnp.bfloat16), state, p)
    ...     p = steepest.apply_updates(p, u)
    >>> float(p[0])                                 # 1.0 without `compensated`
    0.8984375
    """
    tx = as_inner(_NAME, "inner", inner)
    if not isinstance(bits, int) or bits not in (8, 16):
        raise ValueError(f"{_NAME}: bits is {bits!r}, expected 8 or 16.")
    dtype = correction_dtype(bits)
    plan: Any = getattr(tx, "info", None)
    first = key_from(_NAME, key) if bits == 8 else None

    def init(params: Params) -> CompensatedState:
        zeros = lambda p: jnp.zeros_like(p, dtype) if is_narrow(p) else None
        corrections = jax.tree.map(zeros, params)
        # A copy, so that `init` can be called again after the state was donated.
        now = None if first is None else jnp.copy(first)
        return CompensatedState(tx.init(widened(params)), corrections, now)

    def update(
        updates: Updates,
        state: CompensatedState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, CompensatedState]:
        if params is None:
            raise missing(_NAME, "params")
        check.state_of(_NAME, CompensatedState, state)
        leaves, rests = _pairs(params, state.corrections, dtype)
        pairs = zip(leaves.arrays, rests, strict=True)
        wide = [p if c is None else _join(p, c) for p, c in pairs]
        us, inner_state = tx.update(
            widened(updates),
            state.inner_state,
            leaves.like(wide),
            **of_wide(extra_args, leaves),
        )
        advice = "`inner` must return updates like the params."
        news = leaves.match(_NAME, us, "inner updates", advice)
        mine = [k for k, c in enumerate(rests) if c is not None and news[k] is not None]
        # Not one expression with what follows: outside `jit` float32 training, too,
        # rounds the update before it adds it.
        sums = apply_updates([wide[k] for k in mine], [news[k] for k in mine])
        now, each = _seeds(state.rng_key, len(mine))
        for k, x, seed in zip(mine, sums, each, strict=True):
            news[k], rests[k] = _land(x, leaves.arrays[k], rests[k], seed)
        corrections = leaves.like(rests)
        return leaves.like(news), CompensatedState(inner_state, corrections, now)

    def advance(
        updates: Updates,
        state: CompensatedState,
        params: Params,
        extra_args: dict[str, object],
    ) -> tuple[Updates, CompensatedState]:
        """The same step, without the detour over an update: all weights have landed."""
        check.state_of(_NAME, CompensatedState, state)
        leaves, rests = _pairs(params, state.corrections, dtype)
        advice = "Pass the gradients of these params."
        grads = leaves.match(_NAME, updates, "updates", advice)
        mine = [k for k, c in enumerate(rests) if None not in (c, grads[k])]
        now, each = _seeds(state.rng_key, len(mine))
        weights: list[Any] = list(leaves.arrays)
        for k, seed in zip(mine, each, strict=True):
            weights[k] = Corrected(weights[k], rests[k], seed)
        news, inner_state = advanced(
            plan, leaves, weights, updates, state.inner_state, extra_args
        )
        for k in mine:
            rests[k], news[k] = news[k].correction, Landed(news[k].half)
        corrections = leaves.like(rests)
        return leaves.like(news), CompensatedState(inner_state, corrections, now)

    of_rules = isinstance(plan, Plan) and plan.has_only_rules
    info = WrapperInfo(
        _NAME, tx, "inner_state", widened, advance=advance if of_rules else None
    )
    return Transformation(init, update, info)


_join = inlined(joined)


@inlined
def _land(x: Array, p: Array, c: Array, seed: Array | None) -> tuple[Array, Array]:
    noise = None if seed is None else dither(seed, x, jnp.uint8)
    return landed(before_its_parts(x.astype(jnp.float32)), p, c.dtype, noise)


def _pairs(
    params: Params, corrections: PyTree, dtype: jnp.dtype
) -> tuple[Leaves, list[Any]]:
    """The leaves of the params, and their corrections, which must have this dtype."""
    leaves = Leaves(params, "params")
    leaves.check(_NAME)
    advice = "Make the state with `tx.init` of these params."
    rests = leaves.match(_NAME, corrections, "corrections", advice)
    for k, (p, c) in enumerate(zip(leaves.arrays, rests, strict=True)):
        if p is not None and (c is not None) != is_narrow(p):
            has = "no correction" if c is None else "a correction"
            raise ValueError(
                f"{_NAME}: leaf {leaves.path(k)} of the params is {p.dtype}, and the "
                f"state has {has} for it. {advice}"
            )
        if p is not None and c is not None and c.dtype != dtype:
            raise ValueError(
                f"{_NAME}: the correction of leaf {leaves.path(k)} is {c.dtype}, "
                f"expected {dtype}. To change `bits`, make a new state: "
                "`from_wide_params(wide_params(params, state), params, tx.init(params))"
                "`."
            )
    return leaves, [
        None if leaves.arrays[k] is None else c for k, c in enumerate(rests)
    ]


def _seeds(
    key: Array | None, count: int
) -> tuple[Array | None, list[Array] | list[None]]:
    """The key of the next step, and a seed for each correction of 8 bits."""
    if key is None:
        return None, [None] * count
    key, now = jax.random.split(key)
    return key, list(seeds(now, count))
