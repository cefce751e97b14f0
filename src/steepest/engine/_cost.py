"""How much a transformation computes for each leaf in a step."""

from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from math import prod
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from ..core import (
    AnyTransformation,
    call_by_name,
    Every,
    GradientTransformationExtraArgs,
    names_of,
    Params,
    Rule,
)
from ..numerics import wide_dtype
from ._flops import flops_of
from ._inspect import pieces, seen_by, wrapper_info
from .leaves import Leaves, widen
from .run import plan_of
from .run._per_step import begin_step, end_step
from .step import WrapperInfo

Shape = jax.ShapeDtypeStruct
Arrays = dict[str, PyTree]  # shapes and dtypes of the arrays of a leaf, by name
_STEPS = 1000  # the number of steps in which to count those with expensive changes


def flops(tx: AnyTransformation, params: Params) -> list[float | None]:
    """The number of floating-point operations for each leaf, in an average step.

    Formulas are traced, not run. Not counted: numbers that are computed once for the
    tree, and what wrappers add to the transformations in them. `None` if a
    transformation cannot be traced for one leaf, or needs unknown extra arguments.

    Args:
        tx: any transformation.
        params: the params, or their shapes.
    """
    leaves = Leaves(params, "params")
    totals: list[float | None] = [0.0 for _ in leaves.arrays]
    known: dict[Hashable, float | None] = {}
    for link in plan_of("flops", "tx", tx).links:
        body, view = link.body, link.view(leaves)
        info = None if isinstance(body, Rule) else wrapper_info(body)
        inside = iter(() if info is None else _inside(info, view.hide(params)))
        for k, p in enumerate(leaves.arrays):
            if not view.on[k]:
                continue
            mine = 0.0
            if info is not None:
                mine = next(inside)
            elif p is not None:
                shape = Shape(jnp.shape(p), jnp.result_type(p))
                key = (id(body), shape.shape, shape.dtype)
                if key not in known:
                    known[key] = _of_leaf(body, shape)
                mine = known[key]
            total = totals[k]
            totals[k] = None if mine is None or total is None else total + mine
    return totals


def _inside(info: WrapperInfo, params: Params) -> list[float | None]:
    """The operations of what is in a wrapper, for each leaf."""
    inner = iter(flops(info.tx, seen_by(info, params)))
    return [_sum(islice(inner, len(mine))) for mine in pieces(info, params)]


def _sum(works: Iterator[float | None]) -> float | None:
    """The sum; `None` if one of them is not known."""
    known = list(works)  # all are taken, also those after an unknown one
    return None if None in known else sum((x or 0.0 for x in known), 0.0)


def _of_leaf(body: Rule | GradientTransformationExtraArgs, p: Shape) -> float | None:
    """The operations of one rule, or one transformation, for one leaf."""
    try:
        if isinstance(body, Rule):
            return float(sum(_parts(body, p)))
        state = jax.eval_shape(body.init, [p])
        return flops_of(jax.make_jaxpr(body.update)([p], state, [p]))
    except Exception:  # the code of others may raise anything
        return None


def _parts(rule: Rule, p: Shape) -> Iterator[float]:
    """The operations of the functions of a rule, for one leaf."""
    memory = jax.eval_shape(rule.begin, p)
    pairs = zip(rule.memory_names, rule.memory, strict=True)
    leaf = _widened({"g": p, "p": p, **{name: memory[k] for name, k in pairs}})
    numbers = _numbers(rule, leaf)
    if rule.measure is not None:
        yield _traced(rule.measure.function, leaf, numbers)
    yield _traced(rule.formula, leaf, numbers)
    matrix = rule.matrix
    if matrix is None or not prod(p.shape):
        return
    fold = matrix.fold
    shape = p.shape if fold is None else fold(p.shape, **rule.asked_by(fold))
    *stack, m, n = shape
    one = {name: _one(x, p.shape, stack, (m, n)) for name, x in leaf.items()}
    one["g"] = Shape((m, n), leaf["g"].dtype)
    for function in (matrix.before, matrix.formula):
        if function is not None:
            yield prod(stack) * _traced(function, one, numbers)
    if matrix.every is not None:
        each = sum(_traced(matrix.every.formula, x, numbers) for x in _cells(rule, one))
        yield prod(stack) * each * _share(rule, matrix.every)


def _cells(rule: Rule, one: Arrays) -> Iterator[Arrays]:
    """The arguments of an expensive change: for a matrix, or for each of its sides."""
    matrix = rule.matrix
    assert matrix is not None and matrix.every is not None
    if not matrix.every.sides:
        yield one
        return
    names = names_of(matrix.every.formula).arrays
    for side in (0, 1):
        cell = {name: one[name][side] for name in names}
        if all(x is not None for x in cell.values()):
            yield cell


def _share(rule: Rule, every: Every) -> float:
    """The share of the steps in which an expensive change happens."""
    if every.k is not None:
        return 1 / rule.numbers[every.k]

    def due(count: Array) -> Array:
        shared = SimpleNamespace(**{**rule.begin_shared(), "count": count})
        step = end_step(begin_step(rule, shared, {}), None)
        return jnp.asarray(step.numbers[every.due or ""]).astype(float)

    # Not from the start: a first step may be special.
    return float(jnp.mean(jax.jit(jax.vmap(due))(jnp.arange(_STEPS, 2 * _STEPS))))


def _numbers(rule: Rule, leaf: Arrays) -> dict[str, object]:
    """The numbers of a rule in a step; of those that are arrays, only the dtypes."""
    constants: dict[str, object] = {}

    def step(leaf: Arrays, shared: Arrays, extra: Arrays) -> dict[str, Array]:
        now = begin_step(rule, SimpleNamespace(**shared), extra)
        measure, total = rule.measure, None
        if measure is not None:
            total = call_by_name(measure.function, {**now.numbers, **leaf})
        now = end_step(now, total)
        arrays = {k: x for k, x in now.numbers.items() if isinstance(x, Array)}
        constants.update({k: x for k, x in now.numbers.items() if k not in arrays})
        return arrays

    shared = jax.eval_shape(rule.begin_shared)
    extra = {k: Shape((), jnp.float32) for k in rule.needs if k != "params"}
    return {**jax.eval_shape(step, leaf, shared, extra), **constants}


def _traced(
    function: Callable[..., object], arrays: Arrays, numbers: dict[str, object]
) -> float:
    """The operations of a function of a rule."""
    traced = {k: x for k, x in numbers.items() if isinstance(x, Shape)}
    fixed = {k: x for k, x in numbers.items() if k not in traced}
    call = lambda arrays, traced: call_by_name(function, {**fixed, **traced, **arrays})
    asked = set(names_of(function).all)
    arrays = {k: x for k, x in arrays.items() if k in asked}
    return flops_of(jax.make_jaxpr(call)(arrays, traced))


def _widened(tree: PyTree) -> PyTree:
    """The dtypes in which a leaf is computed."""
    real = wide_dtype(jax.tree.leaves(tree))
    return jax.eval_shape(
        lambda tree: jax.tree.map(lambda x: widen(x, real), tree), tree
    )


def _one(
    tree: PyTree, shape: tuple[int, ...], stack: list[int], matrix: tuple[int, int]
) -> PyTree:
    """The arrays of one matrix of a leaf."""

    def cut(x: Any) -> Shape:
        # Memory of a vector stays a vector.
        whole = x.shape == shape and len(shape) >= len(stack) + 2
        return Shape(matrix if whole else x.shape[len(stack) :], x.dtype)

    return jax.tree.map(cut, tree)
