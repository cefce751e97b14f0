"""Steps that are taken or not: `when` with a branch, `held` without one.

A branch keeps its results in memory, and XLA copies the state for it. Choosing between
the new state and the old one after the step needs no branch, but a copy as well:

    m = b m + (1 - b) g             # the step
    u = m / sqrt(v)
    m = where(apply, m, old)        # the choice, at the end

Here `u` is computed from the new `m` even if the old one is kept, so XLA computes `m` a
second time for `u`, and must not overwrite the old `m` before that. `held` moves the
choice up to the line that computes `m`. It is then written once, in place, and `u`
reads what was written:

    m = where(apply, b m + (1 - b) g, old)
    u = m / sqrt(v)

If the step is not taken, this makes a different `u`, which is replaced by zeros. To
move the choice into a step that somebody else has written, `held` traces the step and
runs the trace again, equation by equation. The choice is made where a result appears in
the dtype it is kept in, so that the old state is selected and never converted: it stays
bit for bit. `python -m benchmarks.hold` measures what this saves, for AdamW: on two CPU
cores a branch takes 3.7 times as long, and a choice at the end 5 times. On an H200 a
choice is free wherever it stands, and a branch takes a third longer, with a copy.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import Jaxpr, Literal
from jax.extend.core.primitives import jit_p
from jaxtyping import Array, Bool

from ...core import GradientTransformationExtraArgs, OptState, Params, Updates
from ...numerics import is_inexact
from ..leaves import map_leaves

Step = tuple[Updates, OptState]  # what an `update` returns
ExtraArgs = Mapping[str, Any]


def when(
    name: str,
    apply: Any,
    tx: GradientTransformationExtraArgs,
    instead: Callable[[Updates], Updates],
    updates: Updates,
    state: OptState,
    params: Params | None,
    extra_args: ExtraArgs,
) -> Step:
    """A step of `tx` if `apply`; otherwise `instead`, and the state as it was.

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
        if instead is zeros:  # a measurement has another structure than the updates
            return zeros(out), state
        cast = lambda x, like: jnp.asarray(x).astype(like.dtype)
        return jax.tree.map(cast, instead(updates), out), state

    if not isinstance(apply, Tracer):
        return step() if apply else (instead(updates), state)
    return jax.lax.cond(apply, step, hold)


def held(
    name: str,
    apply: Any,
    tx: GradientTransformationExtraArgs,
    updates: Updates,
    state: OptState,
    params: Params | None,
    extra_args: ExtraArgs,
) -> Step:
    """A step of `tx` if `apply`; otherwise zeros, and the state as it was.

    If `apply` is traced, `tx` runs in either case. What it makes of a NaN reaches
    neither the result nor the derivatives with respect to anything `tx` was given.

    Args:
        name: name used in error messages.
        apply: a boolean. If it is not traced, Python takes the branch.
        tx: any transformation.
        updates, state, params, extra_args: as for `tx.update`.
    """
    if not isinstance(apply, Tracer):
        return when(name, apply, tx, zeros, updates, state, params, extra_args)
    apply = set_aside(apply)
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


def set_aside(decision: Any) -> Bool[Array, ""]:
    """The same boolean, computed once.

    XLA would fuse everything that led to it, one term per leaf, into the choice at
    every leaf, and compile for minutes. It does not duplicate a square root.
    """
    return jnp.sqrt(jnp.asarray(decision).astype(jnp.float32)) > 0.5


def _like(name: str, new: OptState, old: OptState) -> OptState:
    """The new state in the dtypes of the old one, as the carry of a `scan` must be."""
    cast = lambda new, old: new if new.dtype == old.dtype else new.astype(old.dtype)
    trees = {"inner state after the step": new, "inner state": old}
    return map_leaves(name, cast, **trees)


def _without_slope(apply: Any, tree: Any) -> Any:
    """The same tree, whose derivatives are zero unless `apply`."""
    is_array = lambda x: isinstance(x, Array | np.ndarray) and is_inexact(x)
    return jax.tree.map(
        lambda x: _through(apply, jnp.asarray(x)) if is_array(x) else x, tree
    )


@jax.custom_jvp
def _through(apply: Any, x: Array) -> Array:
    """`x`, with a derivative of zero if the step is not taken: zero times NaN is NaN.

    Passing zeros in place of `x` would do it too, but XLA's CPU compiler keeps them in
    memory as soon as a norm is taken.
    """
    return x


@_through.defjvp
def _through_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (apply, x), (_, t) = primals, tangents
    return x, jnp.where(apply, t, jnp.zeros_like(t))


class _Choosing:
    """Runs a traced function and puts a choice behind some of its results."""

    def __init__(self, choose: Callable[[Array, Array], Array]):
        self._choose = choose
        self._inside: dict[Any, Callable[..., list[Any]]] = {}

    def run(
        self,
        jaxpr: Jaxpr,
        consts: Sequence[Any],
        args: Sequence[Any],
        olds: Sequence[Any],
    ) -> list[Any]:
        """The results of `jaxpr`, chosen as soon as they appear.

        Args:
            jaxpr, consts, args: the function, and what it is called with.
            olds: for each result, what it may be instead; `None` for no choice.
        """
        early = _sources(jaxpr, olds)
        known = dict(
            zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True)
        )
        read = lambda v: v.val if isinstance(v, Literal) else known[v]
        for eqn in jaxpr.eqns:
            given = [read(v) for v in eqn.invars]
            mine = [olds[early[v]] if v in early else None for v in eqn.outvars]
            if eqn.primitive is jit_p and any(x is not None for x in mine):
                results = self._jitted(eqn.params["jaxpr"], given, mine)
            else:
                pairs = zip(_evaluated(eqn, given), mine, strict=True)
                results = [self._chosen(x, old) for x, old in pairs]
            known.update(zip(eqn.outvars, results, strict=True))
        done = set(early.values())
        rest = [None if k in done else old for k, old in enumerate(olds)]
        return [
            self._chosen(read(v), x) for v, x in zip(jaxpr.outvars, rest, strict=True)
        ]

    def _chosen(self, x: Any, old: Any) -> Any:
        return x if old is None else self._choose(x, old)

    def _jitted(self, closed: Any, args: list[Any], olds: list[Any]) -> list[Any]:
        """The same for a jitted function; traced once for all leaves of a shape."""
        key = id(closed), *(old is None for old in olds)
        if key not in self._inside:
            run = lambda args, olds: self.run(closed.jaxpr, closed.consts, args, olds)
            self._inside[key] = jax.jit(run)
        return self._inside[key](args, olds)


def _sources(jaxpr: Jaxpr, olds: Sequence[Any]) -> dict[Any, int]:
    """For each variable behind which a choice is made, the index of its result.

    Left for the end: a variable that is several results, one that no equation computes,
    and a scalar, which costs nothing to copy, and which the step may divide by.
    """
    computed = {v for eqn in jaxpr.eqns for v in eqn.outvars}
    places: dict[Any, list[int]] = {}
    for k, (v, old) in enumerate(zip(jaxpr.outvars, olds, strict=True)):
        literal = isinstance(v, Literal)
        if old is not None and jnp.ndim(old) and not literal and v in computed:
            places.setdefault(v, []).append(k)
    return {v: row[0] for v, row in places.items() if len(row) == 1}


def _evaluated(eqn: Any, given: Sequence[Any]) -> list[Any]:
    """The results of one equation."""
    params = eqn.primitive.get_bind_params(eqn.params)
    with eqn.ctx.manager:
        results = eqn.primitive.bind(*given, **params)
    return list(results) if eqn.primitive.multiple_results else [results]
