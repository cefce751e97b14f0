"""Checks that the functions of a problem are pure, and whether they use their keys.

A race compiles them. If one calls `np.random` or takes the next batch from an iterator,
that runs only once, during tracing, and the value becomes a constant. So every function
is traced twice; if the two programs differ, it is not pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from jax.typing import ArrayLike
from jaxtyping import PyTree

from ._arrays import digest
from ._calls import argument_names, examples
from ._content import content, Item
from ._problem import Problem

_JITTED = type(jax.jit(lambda: None))
_CALLS = "jit", "pjit", "closed_call", "remat2", "checkpoint"
_DRAWING = "init", "batches"  # small programs that draw; a loss may be a long loop


@dataclass(frozen=True)
class Randomness:
    """Which functions of a problem use their key.

    Attributes:
        init: whether the initial params depend on the seed.
        batches: whether the batches depend on the seed.
        whole: whether the problem uses all of the data as every batch.
        by_step: whether the batches depend on the number of the step.
        model: whether the model's state or its loss depends on the seed.
    """

    init: bool
    batches: bool
    whole: bool
    by_step: bool = False
    model: bool = False

    @property
    def seeds_differ(self) -> bool:
        """Whether two seeds can give different runs."""
        return self.init or self.batches or self.model

    @property
    def steps_differ(self) -> bool:
        """Whether two steps can have different losses at the same params."""
        return self.batches or self.by_step or self.model

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the reader of the results must know, as sentences."""
        remarks = []
        if not (self.batches or self.whole or self.by_step):
            remarks.append(
                "`batches` does not use its key: every step sees the same batch."
            )
        if not self.seeds_differ:
            remarks.append(
                "Neither `init` nor `batches` uses its key, so all seeds give the same "
                "run. Only one seed was raced, and differences cannot be tested."
            )
        elif not self.init:
            remarks.append(
                "`init` does not use its key: all seeds start from the same params."
            )
        return tuple(remarks)


def randomness(problem: Problem) -> Randomness:
    """Find out which functions use their key; raise if one is not pure.

    Args:
        problem: a checked problem.
    """
    values = {**examples(problem), "key": jax.random.key(0)}
    init = _pure(problem, "init", values)
    batches = _pure(problem, "batches", values)
    loss = _pure(problem, "loss", values)
    if problem.metric is not None:
        _pure(problem, "metric", values)
    if problem.adjust is not None:
        _pure(problem, "adjust", values)
    params = len(jax.tree.leaves(values["params"]))
    return Randomness(
        init=_depends(init, slice(1), slice(params)),
        batches=_depends(batches, slice(1)),
        whole=problem.batches is Problem.batches or problem.cycle == 1,
        by_step="step" in argument_names(problem, "batches")
        and _depends(batches, slice(-1, None)),
        model=_depends(init, slice(1), slice(params, None))
        or (problem.stateful and _depends(loss, slice(-1, None))),
    )


def _pure(problem: Problem, name: str, values: Mapping[str, PyTree]) -> ClosedJaxpr:
    """The jaxpr of a function; raise if two traces differ."""
    function, names = getattr(problem, name), argument_names(problem, name)
    args, anew = [values[x] for x in names], name in _DRAWING
    first, second = _jaxpr(function, args, anew), _jaxpr(function, args, anew)
    if all(_equal(x, y) for x, y in zip_longest(content(first), content(second))):
        return first
    takes = " and ".join(f"`{x}`" for x in names)
    draw = "Draw from `key` with jax.random"
    advice = draw if "key" in names else "Use no randomness"
    raise ValueError(
        f"race: `{name}` of the problem {problem.name!r} gave two results for the same "
        f"{takes}. It is compiled, so a value from np.random or next(...) would never "
        f"change. {advice}, and take data from `data`."
    )


def _jaxpr(
    function: Callable[..., PyTree], args: Sequence[PyTree], inside: bool
) -> ClosedJaxpr:
    """Trace a function without using its cache, nor those of `jit`s inside it."""
    if isinstance(function, _JITTED):  # caches its traces
        function = function.__wrapped__  # pyright: ignore
    anew = lambda *args: function(*args)
    if inside:
        try:
            with jax.disable_jit():  # inner `jit`s cache their traces, too
                return jax.make_jaxpr(anew)(*args)
        except Exception:  # not everything can be traced without jit
            pass
    return jax.make_jaxpr(anew)(*args)


def _equal(x: Item | None, y: Item | None) -> bool:
    if not (isinstance(x, list) and isinstance(y, list)):
        return x == y
    return len(x) == len(y) and all(map(_same_array, x, y))


def _same_array(x: ArrayLike, y: ArrayLike) -> bool:
    return x is y or _address(x) == _address(y) or digest(x) == digest(y)


def _address(x: ArrayLike) -> object:
    """The memory address of an array: equal addresses need no comparison."""
    if jnp.issubdtype(jax.typeof(x).dtype, jax.dtypes.prng_key):
        return id(x)
    known = np.asarray(x)
    return known.__array_interface__["data"], known.shape, known.strides, known.dtype


def draws(function: Callable[..., PyTree], *args: PyTree) -> bool:
    """Whether the result of a function depends on a random key in its arguments.

    Args:
        function: any function that can be traced.
        args: its arguments, or their shapes and dtypes.
    """
    kinds = [jax.typeof(x).dtype for x in jax.tree.leaves(args)]
    is_key = [jnp.issubdtype(kind, jax.dtypes.prng_key) for kind in kinds]
    closed = jax.make_jaxpr(function)(*args)
    keys = [slice(k, k + 1) for k, here in enumerate(is_key) if here]
    return any(_depends(closed, key) for key in keys)


def _depends(
    closed: ClosedJaxpr, arguments: slice, results: slice = slice(None)
) -> bool:
    """Whether some results depend on some arguments."""
    known = set(closed.jaxpr.invars[arguments])
    return any(
        _reached(closed.jaxpr, [x in known for x in closed.jaxpr.invars])[results]
    )


def _reached(jaxpr: Jaxpr, given: Sequence[bool]) -> list[bool]:
    """Which results depend on the given arguments."""
    known = {x for x, here in zip(jaxpr.invars, given, strict=True) if here}
    depends = lambda x: not isinstance(x, Literal) and x in known
    for eqn in jaxpr.eqns:
        inputs = [depends(x) for x in eqn.invars]
        if any(inputs):
            pairs = zip(eqn.outvars, _through(eqn, inputs), strict=True)
            known.update(x for x, here in pairs if here)
    return [depends(x) for x in jaxpr.outvars]


def _through(eqn: JaxprEqn, given: list[bool]) -> list[bool]:
    """Which results of an equation depend on the given arguments; all if in doubt.

    Keys go through a `jit` or a loop together with everything else.
    """
    inner: Any = eqn.params.get("jaxpr")
    inner = getattr(inner, "jaxpr", inner)
    if eqn.primitive.name in _CALLS:
        return _reached(inner, given)
    if eqn.primitive.name != "scan":
        return [True] * len(eqn.outvars)
    first, many = eqn.params["num_consts"], eqn.params["num_carry"]
    while True:
        after = _reached(inner, given)
        carry = [a or b for a, b in zip(given[first:], after[:many], strict=False)]
        if carry == given[first : first + many]:
            return after
        given = [*given[:first], *carry, *given[first + many :]]
