"""Checks that the functions of a problem are pure, and whether they use their keys.

A race compiles them. If one calls `np.random` or takes the next batch from an iterator,
that runs only once, during tracing, and the value becomes a constant. So every function
is traced twice; if the two programs differ, it is not pure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal
from jax.typing import ArrayLike
from jaxtyping import PyTree

from ._arrays import digest
from ._content import content, Item
from ._problem import Problem

_JITTED = type(jax.jit(lambda: None))
_TAKES = {
    "init": ("key",),
    "batches": ("key", "data"),
    "loss": ("params", "batch"),
    "metric": ("params", "data"),
    "adjust": ("params", "batch"),
}


@dataclass(frozen=True)
class Randomness:
    """Which functions of a problem use their key.

    Attributes:
        init: whether the initial params depend on the seed.
        batches: whether the batches depend on the seed.
        whole: whether the problem uses all of the data as every batch.
    """

    init: bool
    batches: bool
    whole: bool

    @property
    def seeds_differ(self) -> bool:
        """Whether two seeds can give different runs."""
        return self.init or self.batches

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the reader of the results must know, as sentences."""
        remarks = []
        if not (self.batches or self.whole):
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
    key, data = jax.random.key(0), problem.data
    init = _pure(problem, "init", key)
    batches = _pure(problem, "batches", key, data)
    params = jax.eval_shape(problem.init, key)
    batch = jax.eval_shape(problem.batches, key, data)
    _pure(problem, "loss", params, batch)
    if problem.metric is not None:
        _pure(problem, "metric", params, data)
    if problem.adjust is not None:
        _pure(problem, "adjust", params, batch)
    return Randomness(_uses_first(init), _uses_first(batches), problem.steady)


def _pure(problem: Problem, name: str, *args: PyTree) -> ClosedJaxpr:
    """The jaxpr of a function; raise if two traces differ."""
    function = getattr(problem, name)
    first, second = _jaxpr(name, function, args), _jaxpr(name, function, args)
    if all(_equal(x, y) for x, y in zip_longest(content(first), content(second))):
        return first
    takes = " and ".join(f"`{x}`" for x in _TAKES[name])
    draw = "Draw from `key` with jax.random"
    advice = draw if "key" in _TAKES[name] else "Use no randomness"
    raise ValueError(
        f"race: `{name}` of the problem {problem.name!r} gave two results for the same "
        f"{takes}. It is compiled, so a value from np.random or next(...) would never "
        f"change. {advice}, and take data from `data`."
    )


def _jaxpr(
    name: str, function: Callable[..., PyTree], args: Sequence[PyTree]
) -> ClosedJaxpr:
    """Trace a function without using any cache."""
    if isinstance(function, _JITTED):  # caches its traces
        function = function.__wrapped__  # pyright: ignore
    anew = lambda *args: function(*args)
    if "key" in _TAKES[name]:
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


def _uses_first(closed: ClosedJaxpr) -> bool:
    """Whether a result depends on the first argument."""
    jaxpr = closed.jaxpr
    depend = set(jaxpr.invars[:1])
    for eqn in jaxpr.eqns:
        if any(x in depend for x in eqn.invars if not isinstance(x, Literal)):
            depend.update(eqn.outvars)
    return any(x in depend for x in jaxpr.outvars if not isinstance(x, Literal))
