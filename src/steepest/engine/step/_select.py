"""Steps that may be skipped: `when` uses a branch, `selected` does not.

A branch materialises its results, and XLA copies the state for it. Choosing between the
new and the old state after the step needs no branch, but also a copy (JAX 0.10.2):

    m = b m + (1 - b) g             # the step
    u = m / sqrt(v)
    m = where(apply, m, old)        # the choice, at the end

Here `u` is computed from the new `m` even if the old one is kept. So XLA computes `m`
again for `u`, and must not overwrite the old `m` before that. `selected` moves the
choice up to the line that computes `m`. It is then written once, in place, and `u`
reads it:

    m = where(apply, b m + (1 - b) g, old)
    u = m / sqrt(v)

If the step is skipped, `u` differs, but is replaced by zeros. To move the choice into
any step, `selected` traces the step and evaluates the trace equation by equation. It
makes the choice where a result has the dtype of the storage. The old state is then
selected, never converted, and stays equal bit for bit. `python -m benchmarks.skips`
measures the savings for AdamW: on two CPU cores, a branch takes 3.7 times as long as
`selected`, and a choice at the end 5 times. On an H200, a choice is free anywhere, and
a branch takes a third longer, with a copy.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var
from jax.extend.core.primitives import jit_p
from jaxtyping import Array, ArrayLike

from ...core import (
    evaluated,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
)
from ...numerics import computed_once, is_inexact, slope_if
from ..leaves import map_leaves

Step = tuple[Updates, OptState]  # the result of an `update`
ExtraArgs = Mapping[str, object]
T = TypeVar("T")


def when(
    name: str,
    apply: ArrayLike,
    tx: GradientTransformationExtraArgs,
    instead: Callable[[Updates], Updates],
    updates: Updates,
    state: OptState,
    params: Params | None,
    extra_args: ExtraArgs,
) -> Step:
    """A step of `tx` if `apply`; otherwise `instead(updates)` and the old state.

    Args:
        name: name used in error messages.
        apply: a boolean. If it is not traced, Python takes the branch.
        tx: any transformation.
        instead: a function of the updates.
        updates, state, params, extra_args: as for `tx.update`.
    """

    def step() -> Step:
        out, new = tx.update(updates, state, params, **extra_args)
        return out, _like(name, new, state)

    def hold() -> Step:
        out, _ = jax.eval_shape(step)
        if instead is zeros:  # `out` may have another structure than the updates
            return zeros(out), state
        cast = lambda x, like: jnp.asarray(x).astype(like.dtype)
        return jax.tree.map(cast, instead(updates), out), state

    if not isinstance(apply, Tracer):
        return step() if apply else (instead(updates), state)
    return jax.lax.cond(apply, step, hold)


def selected(
    name: str,
    apply: ArrayLike,
    tx: GradientTransformationExtraArgs,
    updates: Updates,
    state: OptState,
    params: Params | None,
    extra_args: ExtraArgs,
) -> Step:
    """A step of `tx` if `apply`; otherwise zeros and the old state.

    If `apply` is traced, `tx` runs in either case. If the step is skipped, its NaNs
    reach neither the results nor the derivatives with respect to any input of `tx`.

    Args:
        name: name used in error messages.
        apply: a boolean. If it is not traced, Python takes the branch.
        tx: any transformation.
        updates, state, params, extra_args: as for `tx.update`.
    """
    if not isinstance(apply, Tracer):
        return when(name, apply, tx, zeros, updates, state, params, extra_args)
    apply = computed_once(apply)
    gs, ss, ps, extra = _without_slope(apply, (updates, state, params, extra_args))

    def step(gs: Updates, ss: OptState) -> Step:
        out, new = tx.update(gs, ss, ps, **extra)
        return out, _like(name, new, ss)

    closed, shapes = jax.make_jaxpr(step, return_shape=True)(gs, ss)
    old = [jnp.asarray(x) for x in jax.tree.leaves(state)]
    no_choice = [None] * (len(closed.jaxpr.outvars) - len(old))
    choose = lambda new, old: jnp.where(apply, new, old)
    results = _Choosing(choose).run(
        closed.jaxpr, closed.consts, jax.tree.leaves((gs, ss)), [*no_choice, *old]
    )
    out, new = jax.tree.structure(shapes).unflatten(results)
    return jax.tree.map(choose, out, zeros(out)), new


def zeros(updates: Updates) -> Updates:
    """Zeros like the updates: a step that moves nothing."""
    return jax.tree.map(jnp.zeros_like, updates)


def _like(name: str, new: OptState, old: OptState) -> OptState:
    """The new state in the dtypes of the old one, as the carry of a `scan` must be."""
    cast = lambda new, old: new if new.dtype == old.dtype else new.astype(old.dtype)
    trees = {"inner state after the step": new, "inner state": old}
    return map_leaves(name, cast, **trees)


def _without_slope(apply: Array, tree: T) -> T:
    """The same tree, with zero derivatives unless `apply`."""
    is_array = lambda x: isinstance(x, Array | np.ndarray) and is_inexact(x)
    return jax.tree.map(
        lambda x: slope_if(apply, jnp.asarray(x)) if is_array(x) else x, tree
    )


class _Choosing:
    """Evaluates a traced function, and makes a choice after some of its equations."""

    def __init__(self, choose: Callable[[ArrayLike, Array], Array]):
        self._choose = choose
        self._inside: dict[Hashable, Callable[..., list[ArrayLike]]] = {}

    def run(
        self,
        jaxpr: Jaxpr,
        consts: Sequence[ArrayLike],
        args: Sequence[ArrayLike],
        olds: Sequence[Array | None],
    ) -> list[ArrayLike]:
        """The results of `jaxpr`, each chosen as soon as it is computed.

        Args:
            jaxpr, consts, args: the function and its arguments.
            olds: for each result, the alternative; `None` for no choice.
        """
        early = _sources(jaxpr, olds)
        known = dict(
            zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True)
        )
        read = lambda v: v.val if isinstance(v, Literal) else known[v]
        for eqn in jaxpr.eqns:
            inputs = [read(v) for v in eqn.invars]
            mine = [olds[early[v]] if v in early else None for v in eqn.outvars]
            if eqn.primitive is jit_p and any(x is not None for x in mine):
                results = self._jitted(eqn.params["jaxpr"], inputs, mine)
            else:
                pairs = zip(evaluated(eqn, inputs), mine, strict=True)
                results = [self._chosen(x, old) for x, old in pairs]
            known.update(zip(eqn.outvars, results, strict=True))
        done = set(early.values())
        rest = [None if k in done else old for k, old in enumerate(olds)]
        return [
            self._chosen(read(v), x) for v, x in zip(jaxpr.outvars, rest, strict=True)
        ]

    def _chosen(self, x: ArrayLike, old: Array | None) -> ArrayLike:
        return x if old is None else self._choose(x, old)

    def _jitted(
        self,
        closed: ClosedJaxpr,
        args: list[ArrayLike],
        olds: list[Array | None],
    ) -> list[ArrayLike]:
        """The same for a jitted function, traced once for all leaves of a shape."""
        key = id(closed), *(old is None for old in olds)
        if key not in self._inside:
            run = lambda args, olds: self.run(closed.jaxpr, closed.consts, args, olds)
            self._inside[key] = jax.jit(run)
        return self._inside[key](args, olds)


def _sources(jaxpr: Jaxpr, olds: Sequence[Array | None]) -> dict[Var, int]:
    """The variables to choose when they are computed -> the indices of their results.

    The choice is made at the end for a variable that is several results, for one that
    no equation computes, and for a scalar: it costs nothing to copy, and the step may
    divide by it.
    """
    computed = {v for eqn in jaxpr.eqns for v in eqn.outvars}
    places: dict[Var, list[int]] = {}
    for k, (v, old) in enumerate(zip(jaxpr.outvars, olds, strict=True)):
        literal = isinstance(v, Literal)
        if old is not None and jnp.ndim(old) and not literal and v in computed:
            places.setdefault(v, []).append(k)
    return {v: row[0] for v, row in places.items() if len(row) == 1}
