"""Is this a problem that can be raced? Better asked before anything is compiled."""

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._problem import Params, Problem


def checked(problem: Problem) -> Problem:
    """The problem, if its functions fit together. They are traced, nothing is computed.

    Args:
        problem: anybody's.
    """
    if not isinstance(problem, Problem):
        raise TypeError(
            f"race: the problem is a {type(problem).__name__}, expected a "
            "`steepest.race.Problem`, or the name of one."
        )
    _check_settings(problem)
    _check_data(problem)
    key = jax.random.key(0)
    params = _traced(problem, "init", "key", key)
    _check_params(problem, params)
    batch = _traced(problem, "batches", "key, data", key, problem.data)
    loss = _traced(problem, "loss", "params, batch", params, batch)
    _check_number(problem, "loss", loss, jnp.floating)
    if problem.metric is not None:
        found = _traced(problem, "metric", "params, data", params, problem.data)
        _check_number(problem, "metric", found, jnp.floating, jnp.integer, jnp.bool_)
    if problem.adjust is not None:
        found = _traced(problem, "adjust", "params, batch", params, batch)
        _check_adjustments(problem, params, found)
    return problem


def _traced(problem: Problem, name: str, takes: str, *args: Any) -> Any:
    """What a function of the problem returns, as shapes and dtypes."""
    function = getattr(problem, name)
    if not callable(function):
        raise TypeError(
            f"{_who(problem, name)} is {function!r}, expected a function: "
            f"`{name}({takes})`."
        )
    try:
        return jax.eval_shape(function, *args)
    except Exception as error:
        given = ", ".join(
            f"{what} = {_shown(x)}"
            for what, x in zip(takes.split(", "), args, strict=True)
        )
        raise TypeError(
            f"{_who(problem, name)} fails when called as `{name}({takes})`, with "
            f"{given}. {type(error).__name__}: {_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    """What JAX says first; what follows is for those who see the traceback."""
    lines = str(error).strip().splitlines() or [""]
    return lines[0] if len(lines[0]) <= 300 else f"{lines[0][:300]}..."


def _check_params(problem: Problem, params: Params) -> None:
    leaves = jax.tree_util.tree_leaves_with_path(params)
    if not leaves:
        raise ValueError(
            f"{_who(problem, 'init')} returns {_shown(params)}, expected at least one "
            "array."
        )
    for path, leaf in leaves:
        if not jnp.issubdtype(leaf.dtype, jnp.inexact):
            raise TypeError(
                f"{_who(problem, 'init')} returns {_shown(leaf)}{_at(path)}, and only "
                f"arrays of floating dtype can be trained. What is fixed belongs in "
                f"`data`."
            )


def _check_number(problem: Problem, name: str, found: Any, *kinds: Any) -> None:
    fits = isinstance(found, jax.ShapeDtypeStruct) and found.shape == ()
    if not fits or not any(jnp.issubdtype(found.dtype, kind) for kind in kinds):
        raise TypeError(
            f"{_who(problem, name)} returns {_shown(found)}, expected one real number: "
            "a mean, say."
        )


def _check_adjustments(problem: Problem, params: Params, found: Params) -> None:
    name = _who(problem, "adjust")
    if jax.tree.structure(found) != jax.tree.structure(params):
        raise TypeError(
            f"{name} returns {_shown(found)}, expected the structure of the params: "
            f"{_shown(params)}."
        )
    wanted = jax.tree_util.tree_leaves_with_path(params)
    for (path, p), x in zip(wanted, jax.tree.leaves(found), strict=True):
        if (x.shape, x.dtype) != (p.shape, p.dtype):
            raise TypeError(
                f"{name} returns {_shown(x)}{_at(path)}, expected {_shown(p)}, as in "
                "the params."
            )


def _check_data(problem: Problem) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(problem.data):
        try:
            jax.eval_shape(lambda x: x, leaf)
        except TypeError as error:
            raise TypeError(
                f"{_who(problem, 'data')} has a {type(leaf).__name__}{_at(path)}, and "
                f"only arrays can be handed to a compiled program."
            ) from error


def _check_settings(problem: Problem) -> None:
    """What the problem says of the race, where nobody else does."""
    is_rate = lambda x: isinstance(x, Real) and 0 < float(x) < np.inf
    is_count = lambda x: (
        isinstance(x, Integral) and not isinstance(x, bool) and int(x) > 0
    )
    is_text = lambda x: isinstance(x, str)
    rules: dict[str, tuple[Callable[[Any], bool], str]] = {
        "name": (lambda x: is_text(x) and x != "", "a text"),
        "about": (is_text, "a text"),
        "measure": (is_text, "a text"),
        "better": (lambda x: x in ("lower", "higher"), '"lower" or "higher"'),
        "target": (lambda x: x is None or isinstance(x, Real), "a number or None"),
        "steps": (is_count, "a whole number above 0"),
        "seeds": (is_count, "a whole number above 0"),
        "optimizers": (_all(is_text), 'a list of texts as "adamw"'),
        "learning_rates": (_all(is_rate), "a list of numbers above 0"),
    }
    for name, (fits, wanted) in rules.items():
        value = getattr(problem, name)
        if not fits(value):
            raise ValueError(f"{_who(problem, name)} is {value!r}, expected {wanted}.")


def _all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether there are some, and each one fits."""

    def all_fit(xs: Any) -> bool:
        several = isinstance(xs, Sequence | np.ndarray) and not isinstance(xs, str)
        return several and len(xs) > 0 and all(map(fits, xs))

    return all_fit


def _who(problem: Problem, field: str) -> str:
    return f"race: `{field}` of the problem {problem.name!r}"


def _at(path: Any) -> str:
    return f" at {jax.tree_util.keystr(path)}" if path else ""


def _shown(x: Any) -> str:
    """A tree of shapes and dtypes in a line: `{'w': float32[64,10]}`."""
    short = lambda leaf: _Written(jax.typeof(leaf).str_short())
    text = repr(jax.tree.map(short, x))
    return text if len(text) <= 200 else f"{text[:200]}..."


class _Written(str):
    """A text that is shown as it is."""

    def __repr__(self) -> str:
        return str(self)
