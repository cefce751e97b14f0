"""Checks of a problem, before anything is compiled."""

from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ._arrays import narrowed
from ._calls import argument_names
from ._problem import Params, Problem, State
from ._values import COUNT, is_count, is_number, is_positive, NUMBER


def checked(problem: object) -> Problem:
    """Check that a problem's functions fit together, and return it.

    The functions are traced; nothing is computed.

    Args:
        problem: should be a `Problem`.
    """
    if not isinstance(problem, Problem):
        raise TypeError(
            f"race: the problem is a {type(problem).__name__}, expected a "
            "`steepest.race.Problem` or the name of one."
        )
    _check_settings(problem)
    _check_data(problem)
    values = {"key": jax.random.key(0), "data": problem.data, "step": np.int32(0)}
    begun = _traced(problem, "init", values)
    if problem.stateful:
        _check_pair(problem, "init", "(params, state)", begun)
    params, state = begun if problem.stateful else (begun, None)
    _check_params(problem, params)
    values |= {"params": params, "state": state}
    values["batch"] = _traced(problem, "batches", values)
    loss = _traced(problem, "loss", values)
    if problem.stateful:
        _check_pair(problem, "loss", "(value, state)", loss)
        _check_state(problem, state, loss[1])
    value = loss[0] if problem.stateful else loss
    _check_number(problem, "loss", value, jnp.floating)
    if problem.metric is not None:
        metric = _traced(problem, "metric", values)
        _check_number(problem, "metric", metric, jnp.floating, jnp.integer, jnp.bool_)
    if problem.adjust is not None:
        _check_adjustments(problem, params, _traced(problem, "adjust", values))
    return problem


def _traced(problem: Problem, field: str, values: Mapping[str, PyTree]) -> PyTree:
    """The shapes and dtypes that a function of the problem returns."""
    function, names = getattr(problem, field), argument_names(problem, field)
    takes = ", ".join(names)
    if not callable(function):
        raise TypeError(
            f"{_name(problem, field)} is {function!r}, expected a function "
            f"`{field}({takes})`."
        )
    try:
        return jax.eval_shape(function, *(values[x] for x in names))
    except Exception as error:
        passed = ", ".join(f"{x} = {_describe(values[x])}" for x in names)
        raise TypeError(
            f"{_name(problem, field)} fails when called as `{field}({takes})` with "
            f"{passed}. {type(error).__name__}: {_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    """The first line of JAX's message; the rest only makes sense with a traceback."""
    lines = str(error).strip().splitlines() or [""]
    return lines[0] if len(lines[0]) <= 300 else f"{lines[0][:300]}..."


def _check_params(problem: Problem, params: Params) -> None:
    leaves = jax.tree_util.tree_leaves_with_path(params)
    if not leaves:
        raise ValueError(
            f"{_name(problem, 'init')} returns {_describe(params)}, expected at least "
            "one array."
        )
    for path, leaf in leaves:
        if not jnp.issubdtype(leaf.dtype, jnp.inexact):
            raise TypeError(
                f"{_name(problem, 'init')} returns {_describe(leaf)}{_at(path)}, "
                "expected a floating-point dtype. Put arrays that are not trained in "
                f"{'the state' if problem.stateful else '`data`'}."
            )


def _check_pair(problem: Problem, field: str, expected: str, result: PyTree) -> None:
    if not (isinstance(result, tuple) and len(result) == 2):
        raise TypeError(
            f"{_name(problem, field)} returns {_describe(result)}, expected a pair "
            f"`{expected}`, because the problem is `stateful`."
        )


def _check_state(problem: Problem, before: State, after: State) -> None:
    """The state is carried from step to step, so its types must not change."""
    name = f"{_name(problem, 'loss')} returns a state"
    if jax.tree.structure(before) != jax.tree.structure(after):
        raise TypeError(
            f"{name} with another structure than that of `init`: {_describe(after)}, "
            f"expected {_describe(before)}."
        )
    leaves = jax.tree_util.tree_leaves_with_path(before)
    for (path, x), y in zip(leaves, jax.tree.leaves(after), strict=True):
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            raise TypeError(
                f"{name} with {_describe(y)}{_at(path)}, expected {_describe(x)} as in "
                "the state of `init`."
            )


def _check_number(problem: Problem, field: str, value: PyTree, *kinds: type) -> None:
    fits = isinstance(value, jax.ShapeDtypeStruct) and value.shape == ()
    if not fits or not any(jnp.issubdtype(value.dtype, kind) for kind in kinds):
        kind = "real" if jnp.integer in kinds else "floating-point"
        raise TypeError(
            f"{_name(problem, field)} returns {_describe(value)}, expected one {kind} "
            "number, such as a mean."
        )


def _check_adjustments(problem: Problem, params: Params, adjustments: Params) -> None:
    name = _name(problem, "adjust")
    if problem.stateful:
        raise ValueError(
            f"{name} is a local learning rule, and the problem is `stateful`. A "
            "problem can have only one of them."
        )
    if jax.tree.structure(adjustments) != jax.tree.structure(params):
        raise TypeError(
            f"{name} returns {_describe(adjustments)}, expected the structure of the "
            f"params: {_describe(params)}."
        )
    leaves = jax.tree_util.tree_leaves_with_path(params)
    for (path, p), x in zip(leaves, jax.tree.leaves(adjustments), strict=True):
        if (x.shape, x.dtype) != (p.shape, p.dtype):
            raise TypeError(
                f"{name} returns {_describe(x)}{_at(path)}, expected {_describe(p)}, "
                "as in the params."
            )


def _check_data(problem: Problem) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(problem.data):
        try:
            jax.eval_shape(lambda x: x, leaf)
        except TypeError as error:
            raise TypeError(
                f"{_name(problem, 'data')} has a {type(leaf).__name__}{_at(path)}, "
                "expected only arrays: compiled programs take nothing else."
            ) from error
        if isinstance(leaf, np.ndarray):
            narrowed(f"{_name(problem, 'data')}, the array{_at(path)},", leaf)


def _check_settings(problem: Problem) -> None:
    """Check the problem's names and its defaults for the race."""
    is_string = lambda x: isinstance(x, str)
    is_optional = lambda x: x is None or is_number(x)
    rules: dict[str, tuple[Callable[[object], bool], str]] = {
        "name": (lambda x: is_string(x) and x != "", "a string that is not empty"),
        "about": (is_string, "a string"),
        "measure": (is_string, "a string"),
        "stateful": (lambda x: isinstance(x, bool), "True or False"),
        "better": (lambda x: x in ("lower", "higher"), '"lower" or "higher"'),
        "target": (is_optional, f"{NUMBER} or None"),
        "steps": (is_count, COUNT),
        "seeds": (is_count, COUNT),
        "cycle": (lambda x: x is None or is_count(x), f"{COUNT} or None"),
        "remarks": (_all(is_string, 0), "a list of sentences"),
        "optimizers": (_all(is_string), 'a list of strings such as "adamw"'),
        "learning_rates": (_all(is_positive), "a list of numbers above 0"),
    }
    for field, (fits, expected) in rules.items():
        value = getattr(problem, field)
        if not fits(value):
            name = _name(problem, field)
            raise ValueError(f"{name} is {value!r}, expected {expected}.")


def _all(fits: Callable[[object], bool], fewest: int = 1) -> Callable[[object], bool]:
    """Whether it is a sequence of enough items that all fit."""

    def all_fit(xs: object) -> bool:
        if isinstance(xs, str) or not isinstance(xs, Sequence | np.ndarray):
            return False
        return len(xs) >= fewest and all(map(fits, xs))

    return all_fit


def _name(problem: Problem, field: str) -> str:
    """The name used in error messages."""
    return f"race: `{field}` of the problem {problem.name!r}"


def _at(path: tuple[object, ...]) -> str:
    return f" at {jax.tree_util.keystr(path)}" if path else ""


def _describe(x: PyTree) -> str:
    """A tree of shapes and dtypes on one line: `{'w': float32[64,10]}`."""
    short = lambda leaf: _Verbatim(jax.typeof(leaf).str_short())
    text = repr(jax.tree.map(short, x))
    return text if len(text) <= 200 else f"{text[:200]}..."


class _Verbatim(str):
    """A string whose `repr` has no quotes."""

    def __repr__(self) -> str:
        return str(self)
