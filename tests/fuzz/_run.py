"""Six steps of an expression with one library, as rows of named arrays."""

import contextlib
import warnings
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import steepest

from ._expression import build, Call, names
from ._problems import Problem, STEPS
from ._user import Box

Row = dict[str, np.ndarray]  # path -> the array there


class Refused(Exception):
    """A library raises an error for this case."""


def ours(expression: Any, problem: Problem, precision: str = "") -> list[Row]:
    """The steps of steepest, with the strict settings of the tests.

    Integers may be combined with real numbers: an integer gradient is never strict.
    """
    rule = "standard" if problem.dtype == "int32" else "strict"
    with jax.numpy_dtype_promotion(rule):
        return _run(steepest, expression, problem, precision)


def theirs(expression: Any, problem: Problem, precision: str = "") -> list[Row]:
    """The steps of Optax, which mixes dtypes and ranks; compiled or not."""
    loose = jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow")
    with loose[0], loose[1]:
        return _run(optax, expression, problem, precision)


def theirs_at_once(expression: Any, problem: Problem) -> list[Row]:
    """The steps of Optax in float32, operation by operation.

    Only the operations are compiled, and all expressions share them. Only one branch of
    a condition runs, so some expressions work that are errors in compiled Optax.
    """
    with jax.disable_jit():
        return theirs(expression, replace(problem, eager=True), "float32")


def _run(m: Any, expression: Any, problem: Problem, precision: str) -> list[Row]:
    around = (
        jax.enable_x64(True) if precision == "float64" else contextlib.nullcontext()
    )
    with around, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _steps(m, expression, problem, precision)
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {str(error)[:300]}") from error


def _steps(m: Any, expression: Any, problem: Problem, precision: str) -> list[Row]:
    Box.turn = 0
    empty = _emptied if m is steepest else lambda state: state
    tx = m.with_extra_args_support(build(m, expression))
    two = isinstance(expression, Call) and expression.name == "lookahead"
    params = [problem.params(t, precision) for t in range(STEPS)]
    if two:
        params = [m.LookaheadParams(p, params[0]) for p in params]
    update = tx.update if problem.eager else jax.jit(tx.update)
    state = tx.init(params[0])
    # Optax's `sam` raises an error for unknown arguments.
    takes = "contrib.sam" not in set(names(expression))
    rows = [_row({}, empty(state))]
    for t in range(STEPS):
        Box.turn = t
        g = problem.gradient(t, precision)
        extra = {"value": problem.value(t)} if takes else {}
        u, state = update(g, state, params[t], **extra)
        rows.append(_row(u, empty(state)))
    return rows


def _row(updates: Any, state: Any) -> Row:
    found = {"classes": np.array(str(jax.tree.structure((updates, state))))}
    tree = {"updates": updates, "state": state}
    for path, x in jax.tree_util.tree_flatten_with_path(tree)[0]:
        if jnp.issubdtype(jnp.result_type(x), jax.dtypes.prng_key):
            x = jax.random.key_data(x)
        found[jax.tree_util.keystr(path)] = np.asarray(x)
    return found


def _emptied(state: Any) -> Any:
    """After a step Optax zeroes its accumulator; ours keeps its value."""

    def emptied(x: Any) -> Any:
        if type(x).__name__ != "MultiStepsState":
            return x
        x = x._replace(inner_opt_state=_emptied(x.inner_opt_state))
        if int(x.mini_step) == 0:
            x = x._replace(acc_grads=jax.tree.map(jnp.zeros_like, x.acc_grads))
        return x

    is_one = lambda x: type(x).__name__ == "MultiStepsState"
    return jax.tree.map(emptied, state, is_leaf=is_one)
