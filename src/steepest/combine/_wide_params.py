"""The float32 params that half-precision params and their corrections stand for."""

from typing import Any

import jax
from jaxtyping import Array, PyTree

from .. import check
from ..core import OptState, Params
from ..engine import Leaves
from ..numerics import inlined, joined, split
from ._compensated import CompensatedState

_ADVICE = "Pass the params and the state of the same optimizer."


def wide_params(params: Params, state: OptState) -> Params:
    """The params of `compensated` in float32, with all their digits.

    For evaluation or a checkpoint in float32. With 16 bits, they are the params of
    float32 training. Leaves without a correction are returned unchanged.

    Args:
        params: the current params, in half precision.
        state: the current state of an optimizer with `compensated` in it.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.compensated(steepest.sgd(1.0))
    >>> p = jnp.array([1.0], jnp.bfloat16)
    >>> u, state = tx.update(jnp.array([1e-3]), tx.init(p), p)
    >>> p = steepest.apply_updates(p, u)
    >>> float(p[0]), round(float(steepest.wide_params(p, state)[0]), 6)
    (1.0, 0.999)
    """
    leaves, rows = _corrections("wide_params", params, state)
    wide = list(leaves.arrays)
    for rests in rows:
        for k, c in enumerate(rests):
            if _is_array(c) and wide[k] is leaves.arrays[k]:
                wide[k] = _join(wide[k], c)
    return leaves.like(wide)


def from_wide_params(
    wide: Params, params: Params, state: OptState
) -> tuple[Params, OptState]:
    """Half-precision params and a state that stand for the float32 params `wide`.

    To continue from float32 params without losing a digit:

        params = jax.tree.map(lambda p: p.astype(jnp.bfloat16), wide)
        params, state = from_wide_params(wide, params, tx.init(params))

    Args:
        wide: the params in float32.
        params: params like them in the dtypes to train in.
        state: a state for `params`, of an optimizer with `compensated` in it. Only its
            corrections are replaced.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.compensated(steepest.adam(1e-3))
    >>> wide = jnp.array([0.1])
    >>> p = wide.astype(jnp.bfloat16)
    >>> p, state = steepest.from_wide_params(wide, p, tx.init(p))
    >>> print(p[0], steepest.wide_params(p, state)[0])
    0.100098 0.1
    """
    name = "from_wide_params"
    leaves, rows = _corrections(name, params, state)
    ws = leaves.match(name, wide, "wide params", "Pass trees of one structure.")
    for k, (p, w) in enumerate(zip(leaves.arrays, ws, strict=True)):
        if p is not None and (w is None or w.shape != p.shape):
            shape = None if w is None else w.shape
            raise ValueError(
                f"{name}: leaf {leaves.path(k)} has shape {shape} in `wide` and shape "
                f"{p.shape} in the params, expected the same."
            )
    both = zip(leaves.arrays, ws, strict=True)
    news = [p if p is None else w.astype(p.dtype) for p, w in both]
    for rests in rows:
        for k, c in enumerate(rests):
            if _is_array(c):
                news[k], rests[k] = _split(ws[k], leaves.arrays[k], c)
    trees = iter([leaves.like(rests) for rests in rows])
    put = lambda x: x._replace(corrections=next(trees)) if _is_mine(x) else x
    return leaves.like(news), jax.tree.map(put, state, is_leaf=_is_mine)


_join = inlined(joined)
_split = inlined(lambda w, p, c: split(w.astype("float32"), p.dtype, c.dtype))


def _corrections(
    name: str, params: Params, state: OptState
) -> tuple[Leaves, list[list[Any]]]:
    """The leaves of the params, and their corrections in each `CompensatedState`."""
    states = [x for x in jax.tree.leaves(state, is_leaf=_is_mine) if _is_mine(x)]
    if not states:
        raise check.WrongArgument(
            f"{name}: the state is a {type(state).__name__} without a "
            "CompensatedState, expected that of an optimizer in `compensated`."
        )
    leaves = Leaves(params, "params")
    leaves.check(name)
    match = lambda x: leaves.match(name, x.corrections, "corrections", _ADVICE)
    return leaves, [match(x) for x in states]


def _is_mine(x: PyTree) -> bool:
    return isinstance(x, CompensatedState)


def _is_array(x: object) -> bool:
    return isinstance(x, Array)
