"""A step that is taken or not, without a branch and without a copy.

To choose between the new state and the old one after the step is right, but costs a
copy of it:

    m = b m + (1 - b) g             # the step
    u = m / sqrt(v)
    m = where(apply, m, old)        # and what is kept of it

Here `u` needs the new `m` also where the old one is kept, so that XLA computes `m` a
second time for `u`, out of the old one, which it must not overwrite until then. Chosen
as soon as it is known, `m` is written once, over the old one, and `u` reads that:

    m = where(apply, b m + (1 - b) g, old)
    u = m / sqrt(v)

Where the step is not taken that makes another `u`, but nobody looks at it. So the
choice is put there, in the middle of a step that somebody else has written.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr, Literal
from jax.extend.core.primitives import convert_element_type_p, jit_p
from jaxtyping import Array, Bool, Float

from ..core import GradientTransformationExtraArgs, OptState, Params, Updates
from ..engine import map_leaves, zeros
from ..numerics import is_inexact, squares


def held(
    who: str,
    apply: Any,
    tx: GradientTransformationExtraArgs,
    updates: Updates,
    state: OptState,
    params: Params | None,
    extra_args: Mapping[str, Any],
) -> tuple[Updates, OptState]:
    """A step of `tx` if `apply`; otherwise zeros, and the state as it was.

    `tx` runs in either case. What it makes of a NaN is left out of the value, and also
    of the slope with respect to the updates and the state.

    Args:
        who: who speaks in an error.
        apply: a boolean, maybe traced.
        tx: any transformation.
        updates, state, params, extra_args: as for `tx.update`.
    """
    apply = set_aside(apply)
    choose = lambda new, old: jnp.where(apply, new, old.astype(new.dtype))

    def update(updates: Updates, state: OptState) -> tuple[Updates, OptState]:
        return tx.update(updates, state, params, **extra_args)

    through = lambda g: _through(apply, g) if is_inexact(g) else g
    seen = jax.tree.map(through, jax.tree.map(jnp.asarray, updates))
    closed, made = jax.make_jaxpr(update, return_shape=True)(seen, state)
    trees = {"inner state after the step": made[1], "inner state": state}
    old = jax.tree.leaves(map_leaves(who, lambda new, old: jnp.asarray(old), **trees))
    nothing = [None] * (len(closed.jaxpr.outvars) - len(old))
    given = jax.tree.leaves((seen, state))
    row = _Choosing(choose).run(closed.jaxpr, closed.consts, given, [*nothing, *old])
    found, new = jax.tree.structure(made).unflatten(row)
    # What goes in comes out: a state that widens would not fit a `scan`.
    new = jax.tree.map(lambda now, was: now.astype(was.dtype), new, state)
    return jax.tree.map(choose, found, zeros(found)), new


def squared_norm(updates: Updates) -> Float[Array, ""]:
    """The sum of the squares of all leaves, in float32 or wider."""
    # Behind the barrier, or XLA would keep the squares for Adam, who wants them too.
    leaves = map(jax.lax.optimization_barrier, _parts(updates))
    return sum((jnp.sum(squares(x)).astype(float) for x in leaves), jnp.zeros(()))


def are_finite(updates: Updates) -> Bool[Array, ""]:
    """Whether no number is infinite or NaN, so that the largest is not.

    To take it needs no memory. Of `isfinite` XLA on a CPU keeps all the answers.
    """
    largest = [jnp.max(jnp.abs(x), initial=0).astype(float) for x in _parts(updates)]
    return set_aside(
        jnp.isfinite(functools.reduce(jnp.maximum, largest, jnp.zeros(())))
    )


def set_aside(decision: Any) -> Bool[Array, ""]:
    """The same decision, not to be made again for every array.

    XLA would draw all that led to it, with a term for each leaf, into the choice at
    every leaf, and compile for minutes. A root is costly in its eyes: it is taken once.
    """
    return jnp.sqrt(jnp.asarray(decision).astype(jnp.float32)) > 0.5


def _parts(updates: Updates) -> list[Array]:
    """The leaves as real arrays. What is measured ends in a yes or no: no slopes."""
    found: list[Array] = []
    for x in map(jnp.asarray, jax.tree.leaves(updates)):
        if is_inexact(x):
            x = jax.lax.stop_gradient(x)
            found += [x.real, x.imag] if jnp.iscomplexobj(x) else [x]
    return found


@jax.custom_jvp
def _through(apply: Any, g: Array) -> Array:
    """`g`, whose slope is 0 where the step is not taken: zero times NaN is NaN.

    Zeros in place of `g` would do it too, but XLA on a CPU keeps them in memory as soon
    as a norm is taken.
    """
    return g


@_through.defjvp
def _through_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (apply, g), (_, t) = primals, tangents
    return g, jnp.where(apply, t, jnp.zeros_like(t))


def yes_or_no(who: str, name: str, found: Any) -> Bool[Array, ""]:
    """What a function has decided.

    Args:
        who: who speaks in an error.
        name: the argument that the function was.
        found: what it has returned.
    """
    if found is None or np.ndim(found) > 0:
        has = "nothing" if found is None else f"an array of shape {np.shape(found)}"
        raise ValueError(
            f"{who}: {name} returned {has}, and one boolean, for the whole step, is "
            "wanted. Reduce it with `jnp.all` or `jnp.any`."
        )
    return jnp.asarray(found, bool)


class _Choosing:
    """Runs a traced function, and puts a choice behind some of what it returns."""

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
        """What `jaxpr` returns, each result with an old value chosen as it appears.

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
                found = self._jitted(eqn.params["jaxpr"], given, mine)
            else:
                found = _evaluated(eqn, given)
                found = [
                    self._chosen(x, old) for x, old in zip(found, mine, strict=True)
                ]
            known.update(zip(eqn.outvars, found, strict=True))
        done = set(early.values())
        rest = [None if k in done else old for k, old in enumerate(olds)]
        return [
            self._chosen(read(v), x) for v, x in zip(jaxpr.outvars, rest, strict=True)
        ]

    def _chosen(self, x: Any, old: Any) -> Any:
        return x if old is None else self._choose(x, old)

    def _jitted(self, closed: Any, args: list[Any], olds: list[Any]) -> list[Any]:
        """The same of a function inside; traced once for all leaves of a shape."""
        key = id(closed), *(old is None for old in olds)
        if key not in self._inside:
            run = lambda args, olds: self.run(closed.jaxpr, closed.consts, args, olds)
            self._inside[key] = jax.jit(run)
        return self._inside[key](args, olds)


def _sources(jaxpr: Jaxpr, olds: Sequence[Any]) -> dict[Any, int]:
    """The variables in which results appear, before they are cast to their dtype.

    Not for one that is several results, nor for a single number, which costs nothing to
    copy, and which the rest of the step may divide by.
    """
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    found: dict[Any, list[int]] = {}
    for k, (v, old) in enumerate(zip(jaxpr.outvars, olds, strict=True)):
        if old is None or not jnp.ndim(old) or isinstance(v, Literal):
            continue
        while v in makers and makers[v].primitive is convert_element_type_p:
            (v,) = makers[v].invars
        if v in makers:
            found.setdefault(v, []).append(k)
    return {v: row[0] for v, row in found.items() if len(row) == 1}


def _evaluated(eqn: Any, given: Sequence[Any]) -> list[Any]:
    """What one equation returns."""
    bound = eqn.primitive.get_bind_params(eqn.params)
    with eqn.ctx.manager:
        found = eqn.primitive.bind(*given, **bound)
    return list(found) if eqn.primitive.multiple_results else [found]
