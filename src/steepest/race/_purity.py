"""Are the functions of a problem pure, and do they use their keys?

A race compiles them. Python that draws its own random numbers, or takes the next batch
from an iterator, runs once, while the program is traced, and its value is frozen. So
every function is traced twice: what is not the same both times is not pure.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from ._arrays import digest
from ._hoist import inner_jaxprs
from ._problem import Problem

_ADDRESS = re.compile("0x[0-9a-f]+")  # in the `repr` of a function
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
        init: whether the params at the start depend on the seed.
        batches: whether the batches do.
        whole: whether every batch is all of the data, as the problem wants it.
    """

    init: bool
    batches: bool
    whole: bool

    @property
    def seeds_differ(self) -> bool:
        """Whether runs from two seeds can differ at all."""
        return self.init or self.batches

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the results must know, as sentences."""
        found = []
        if not (self.batches or self.whole):
            found.append(
                "`batches` does not use its key: every step sees the same batch."
            )
        if not self.seeds_differ:
            found.append(
                "Neither `init` nor `batches` uses its key, so all seeds give the same "
                "run: only one was raced, and no difference can be tested."
            )
        elif not self.init:
            found.append(
                "`init` does not use its key: all seeds begin at the same params."
            )
        return tuple(found)


def randomness(problem: Problem) -> Randomness:
    """Which functions use their key; refused if one is not pure.

    Args:
        problem: whose functions fit together.
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


def _pure(problem: Problem, name: str, *args: Any) -> ClosedJaxpr:
    """The jaxpr of a function that has the same one twice."""
    function = getattr(problem, name)
    first, second = _jaxpr(name, function, args), _jaxpr(name, function, args)
    if all(_equal(x, y) for x, y in zip_longest(_said(first), _said(second))):
        return first
    takes = " and ".join(f"`{x}`" for x in _TAKES[name])
    key = "draw from `key` with jax.random" if "key" in _TAKES[name] else "use none"
    raise ValueError(
        f"race: `{name}` of the problem {problem.name!r} gave two results for the same "
        f"{takes}. It is compiled, so what Python draws (np.random, next(...)) would "
        f"be frozen at its first value: {key}, and take data from `data`."
    )


def _jaxpr(name: str, function: Any, args: Sequence[Any]) -> ClosedJaxpr:
    """Traced anew, by a function that nobody remembers."""
    if isinstance(function, _JITTED):  # remembers what it has traced
        function = function.__wrapped__  # pyright: ignore
    anew = lambda *args: function(*args)
    if "key" in _TAKES[name]:
        try:
            with jax.disable_jit():  # those inside remember, too
                return jax.make_jaxpr(anew)(*args)
        except Exception:  # not everything can be traced so
            pass
    return jax.make_jaxpr(anew)(*args)


def _said(closed: Any) -> Iterator[Any]:
    """All that a jaxpr says, but for the names of variables: texts and arrays."""
    yield from getattr(closed, "consts", ())
    jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
    for eqn in jaxpr.eqns:
        inner = inner_jaxprs(eqn)
        literals = [repr(x.val) for x in eqn.invars if isinstance(x, Literal)]
        params = [] if inner else sorted(map(repr, eqn.params.items()))
        yield _ADDRESS.sub("", f"{eqn.primitive.name} {literals} {params}")
        for one in inner:
            yield from _said(one)


def _equal(x: Any, y: Any) -> bool:
    if x is y or isinstance(x, str) or isinstance(y, str) or x is None or y is None:
        return x is y or (isinstance(x, str) and x == y)
    return _address(x) == _address(y) or digest(x) == digest(y)


def _address(x: Any) -> Any:
    """Where the values are: if they are the same, nothing need be compared."""
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
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
