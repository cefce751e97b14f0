"""Storage options that every optimizer takes, whatever its formula."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import PyTree

from ... import check
from ...core import (
    AnyTransformation,
    call_of,
    GradientTransformationExtraArgs,
    mesh_axes,
    Rule,
    transformation,
)
from ...numerics import is_chosen, is_inexact
from ..leaves import KINDS
from ..run import counting, Link, plan_of
from ..step import WrapperInfo
from ._coding import coding, low_bits_of

P = ParamSpec("P")

# The keywords that every optimizer takes, besides its own.
STORAGE = ("memory_dtype", "keep_count", "reshard", "keep_stacks")


@transformation
def keeping(
    tx: AnyTransformation,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
    reshard: str | Sequence[str] | None = None,
    keep_stacks: bool = False,
) -> GradientTransformationExtraArgs:
    """`tx` with other storage options. Every optimizer takes these keywords.

    Args:
        tx: any transformation. If it is not made of rules, its `update` must return the
            state in the dtypes it gets.
        memory_dtype: the dtype of the memory of each leaf, except scalars and memory
            that has its own option, such as `mu_dtype`. The step is computed in float32
            or wider in any case. With "int8" (about a quarter of the bytes), "int4" or
            "float8", averages are stored in 8 or 4 bits, with a float32 scale for each
            block of 256 or 128 elements of a row. In "int4", mean squares have 8 bits,
            and a momentum without other memory is rounded at random. Vectors, leaves
            with fewer than 4096 elements, norms, biases, embeddings and routers stay as
            they are, and so do sums over all steps, factors and copies of the params.
            Bases of eigenvectors are stored in float16. `describe` shows what stays,
            and why. If `tx` is not made of rules, only averages of known states, such
            as `ScaleByAdamState`, are stored so. Infinity and NaN are kept.
        keep_count: whether to count the steps even if the learning rate is a number.
            You can then replace the number by a schedule later, and the state, or a
            checkpoint of it, still fits.
        reshard: names of mesh axes, for formulas of whole matrices, such as Muon's. The
            devices along these axes share the matrices of each shape: every matrix is
            sent to one device and back, once in a step. By default the compiler
            shards each product, with an exchange for every one. Memory of these
            formulas, such as factors and bases, is kept where its matrix is computed,
            in stacks that are sharded over these axes; `unpack` turns them into memory
            of each matrix. A shape that occurs once is left to the compiler; `describe`
            shows which. Its factors and bases are sharded over these axes along a side,
            if they divide it. Use it with `jax.set_mesh(mesh)`, and make the state with
            `steepest.init`.
        keep_stacks: whether memory of formulas of whole matrices is kept in stacks:
            one array for up to 8 matrices of equal shape, or more if they are small.
            A step then joins and splits no memory, and has fewer arrays. The results
            are the same. Use it on one GPU: a CPU takes as long and compiles longer,
            and on a mesh, the stacks are replicated. `unpack` turns them into memory
            of each matrix, and `restore_as` converts a state with or without stacks.
            `reshard` has stacks in any case.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.lion(1e-4, memory_dtype=jnp.bfloat16)
    >>> tx.init(jnp.ones(3))[0].mu.dtype
    dtype(bfloat16)
    >>> tx = steepest.lion(1e-4, memory_dtype="int8")
    >>> mu = tx.init(jnp.ones((64, 256)))[0].mu
    >>> mu.codes.dtype, mu.scales.shape, mu.decode().dtype
    (dtype('int8'), (64, 1), dtype('float32'))
    """
    return _keep("keeping", tx, memory_dtype, keep_count, reshard, keep_stacks)


def optimizer(
    recipe: Callable[P, GradientTransformationExtraArgs],
) -> Callable[P, GradientTransformationExtraArgs]:
    """Decorate a recipe: like `transformation`, and apply the storage keywords.

    A recipe has `memory_dtype` and `keep_count` in its signature and does not use them.
    The decorator applies them to the optimizer that the recipe returns. A recipe can
    leave either out of its signature.

    Args:
        recipe: a function of module level that makes an optimizer.

    >>> import inspect, steepest
    >>> inspect.signature(steepest.sgd).parameters["keep_count"].default
    False
    """
    (recipe,) = check.function("optimizer", recipe=recipe)
    name = recipe.__name__

    @wraps(recipe)
    def stored(*args: Any, **kwargs: Any) -> GradientTransformationExtraArgs:
        options = {k: kwargs.pop(k) for k in STORAGE if k in kwargs}
        tx = recipe(*args, **kwargs)
        return _keep(name, tx, **options) if any(options.values()) else tx

    return transformation(stored)


def _keep(
    name: str,
    tx: AnyTransformation,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
    reshard: str | Sequence[str] | None = None,
    keep_stacks: bool = False,
) -> GradientTransformationExtraArgs:
    axes = mesh_axes(name, reshard, "reshard")
    check.flag(name, keep_stacks=keep_stacks)
    low_bits = low_bits_of(memory_dtype)
    if low_bits is None:
        check.storage(name, tuple(KINDS), memory_dtype=memory_dtype)

    def revised(link: Link) -> Link:
        body = link.body
        if not isinstance(body, Rule):
            again = _with_inner(body, pair)
            if again is not None:
                return replace(link, body=again)
            if memory_dtype is None:
                return link
            if low_bits is not None:
                return replace(link, body=coding(body, low_bits))
            return replace(link, body=_narrow(body, memory_dtype))
        if body.matrix is not None:
            names = axes.names if axes is not None else body.matrix.reshard
            stacks = keep_stacks or body.matrix.keep_stacks
            matrix = body.matrix._replace(reshard=names, keep_stacks=stacks)
            body = replace(body, matrix=matrix)
        if keep_count and body.counted is not None:
            body = counting(body)
        if low_bits is not None:
            return replace(link, body=body, storage=low_bits)
        if memory_dtype is not None:
            memory = {
                field: begin if is_chosen(begin) else Cast(begin, memory_dtype)
                for field, begin in body.memory.items()
            }
            body = replace(body, memory=memory)
        return replace(link, body=body)

    def pair(tx: AnyTransformation) -> GradientTransformationExtraArgs:
        plan = plan_of(name, "tx", tx)
        return replace(plan, links=tuple(map(revised, plan.links))).pair

    return pair(tx)


def _with_inner(
    tx: AnyTransformation,
    change: Callable[[AnyTransformation], GradientTransformationExtraArgs],
) -> GradientTransformationExtraArgs | None:
    """A wrapper with another transformation in it; `None` if `tx` is something else.

    Only for a wrapper whose state is that of the wrapped transformation, for arrays of
    other shapes, such as `blocked`: the rules in it know which memory may be narrow.

    Args:
        tx: any transformation.
        change: makes the new transformation in the wrapper from the old one.
    """
    call, info = call_of(tx), getattr(tx, "info", None)
    if call is None or not isinstance(info, WrapperInfo):
        return None
    places = [k for k, x in call.arguments.items() if x is info.tx]
    if info.at or info.seen is None or len(places) != 1:
        return None
    made = call.function(**{**call.arguments, places[0]: change(info.tx)})
    assert isinstance(made, GradientTransformationExtraArgs)
    return made


def _narrow(
    tx: GradientTransformationExtraArgs, dtype: DTypeLike
) -> GradientTransformationExtraArgs:
    """`tx` with its initial state in `dtype`."""
    init = lambda params: _cast(tx.init(params), dtype)
    return GradientTransformationExtraArgs(init, tx.update)


class Cast:
    """A function that makes initial memory, in another dtype."""

    def __init__(self, begin: Callable[..., PyTree], dtype: DTypeLike):
        self._begin, self._dtype = begin, dtype
        # The engine reads from the signature which numbers to pass.
        self.__signature__ = inspect.signature(begin)

    def __call__(self, p: object, **numbers: object) -> PyTree:
        return _cast(self._begin(p, **numbers), self._dtype)


def _cast(state: PyTree, dtype: DTypeLike) -> PyTree:
    """A state with its arrays in `dtype`. Scalars and complex arrays are unchanged."""

    def cast(x: Any) -> Any:
        if not is_inexact(x) or jnp.iscomplexobj(x) or jnp.ndim(x) == 0:
            return x
        return x.astype(dtype)

    return jax.tree.map(cast, state)
