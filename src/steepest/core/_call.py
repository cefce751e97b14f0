"""A result as data: which function made it, with which arguments.

`adamw(1e-3)` knows that it was made by `adamw` with these numbers. So it can be
printed, compared, copied, pickled, written as JSON, and passed through `jax.jit`: the
arrays among its arguments are its leaves, and everything else is static.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cached_property, wraps
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from ._calling import called_alone, calling
from ._errors import said_before
from ._static import Static

T = TypeVar("T")

# Numbers that only multiply or bound. A program gives the same results whether they are
# constants or arguments. Outside `jit` they are arguments: one program for all values.
OPERANDS = frozenset(
    ("learning_rate", "weight_decay", "max_norm", "max_delta", "step_size", "threshold")
)


class Call:
    """`function(**arguments)`: a pytree whose leaves are the arrays in the arguments.

    The function is not called until the result is needed. JAX flattens and unflattens
    pytrees often, and sometimes with other objects in place of the leaves.

    Args:
        function: a function decorated with `transformation` or `schedule`; its
            `__wrapped__` does the work.
        arguments: the arguments by name; `*args` is one tuple, under its own name.
    """

    def __init__(
        self, function: Callable[..., object], arguments: Mapping[str, object]
    ):
        self.function = function
        self.arguments: dict[str, Any] = dict(arguments)

    @property
    def made(self) -> Any:
        """The result of the call.

        If an argument is traced, the result belongs to the current trace, and is not
        kept. Otherwise it must not: arrays that the function computes are concrete.
        """
        if "_made" in self.__dict__:
            return self.__dict__["_made"]
        if any(isinstance(x, Tracer) for x in self._parts[1]):
            return self._called()
        with jax.ensure_compile_time_eval():
            return self.keep(self._called())

    def keep(self, made: T) -> T:
        """Keep the result of the call, so that it is not called again.

        Args:
            made: the result.
        """
        self.__dict__["_made"] = made
        return made

    def _called(self) -> Any:
        bound = inspect.BoundArguments(
            inspect.signature(self.function),
            self.arguments,  # pyright: ignore[reportArgumentType]
        )
        with said_before(), called_alone():
            return self.function.__wrapped__(*bound.args, **bound.kwargs)  # pyright: ignore

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    @cached_property
    def _parts(self) -> tuple[Static, tuple[object, ...]]:
        """Everything but the arrays, and the arrays."""
        trees = {name: _as_tree(x) for name, x in self.arguments.items()}
        leaves, treedef = jax.tree.flatten(trees)
        rest = (_ARRAY if is_leaf(x) else x for x in leaves)
        return Static((self.function, treedef, *rest)), tuple(filter(is_leaf, leaves))

    def flatten(self) -> tuple[tuple[object, ...], Static]:
        """For JAX: the leaves, and the static rest."""
        static, arrays = self._parts
        return arrays, static

    def flatten_with_keys(self) -> tuple[list[tuple[object, object]], Static]:
        """For JAX: the leaves with their paths, and the static rest."""
        trees = {name: _as_tree(x) for name, x in self.arguments.items()}
        paths = jax.tree_util.tree_leaves_with_path(trees)
        key = lambda path: jax.tree_util.keystr(path, simple=True, separator=".")
        named = [(key(path), x) for path, x in paths if is_leaf(x)]
        return [(jax.tree_util.GetAttrKey(k), x) for k, x in named], self._parts[0]

    @classmethod
    def unflatten(cls, static: Static, arrays: Iterable[object]) -> "Call":
        """For JAX: the call with these leaves, which may be any objects."""
        function, treedef, *leaves = static.values
        rest = iter(arrays)
        filled = [next(rest) if x is _ARRAY else x for x in leaves]
        trees = treedef.unflatten(filled)
        call = cls(function, {k: _from_tree(x) for k, x in trees.items()})
        call.__dict__["_parts"] = static, tuple(arrays)
        return call

    @cached_property
    def with_operands(self) -> "Call":
        """The same call, with arrays in place of Python numbers named in `OPERANDS`.

        Outside `jit` a wrapper compiles this, so one program serves every learning
        rate.
        """
        with jax.ensure_compile_time_eval():
            return Call(self.function, _with_operands(self.arguments))

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Call):
            return self is other
        (mine, arrays), (theirs, others) = self._parts, other._parts
        return mine == theirs and all(map(_same_array, arrays, others))

    def __hash__(self) -> int:
        return hash(self._parts[0])

    def __reduce__(self) -> tuple[object, ...]:
        return Call, (self.function, self.arguments)

    def __repr__(self) -> str:
        return f"Call({self.name}, {self.arguments})"


class Made:
    """Base class of results that know their call."""

    call: Any  # a Call, or `None` for a pair that was put together by hand


def call_of(x: object) -> Call | None:
    """The call that made `x`, if it is known.

    Args:
        x: anything. The class decides: `functools.wraps` copies attributes, so another
            function may have a `call` too.
    """
    return x.call if isinstance(x, Made) else None


def recorded(
    title: str, function: Callable[..., T], cls: Any, check: Callable[[str, T], object]
) -> Any:
    """Wrap `function` so that its results are of class `cls` and know their call.

    Args:
        title: the name of the decorator, for an error.
        function: a function at module level.
        cls: a class with a method `of`, which takes a call.
        check: `(name, result) -> result`, applied to what `function` returns.
    """
    if not callable(function):
        raise TypeError(
            f"{title}: got a {type(function).__name__}, expected a function. Write "
            f"`@{title}` above its definition."
        )
    signature = inspect.signature(function)
    star = any(x.kind is x.VAR_KEYWORD for x in signature.parameters.values())
    name = getattr(function, "__name__", type(function).__name__)

    @wraps(function)
    def made(*args: object, **kwargs: object) -> Any:
        with calling(make.__name__, signature, args, kwargs):
            return check(name, function(*args, **kwargs))

    @wraps(function)
    def make(*args: object, **kwargs: object) -> Any:
        known = list(signature.parameters)
        for k in kwargs:
            if not star and k not in known:
                near = get_close_matches(k, known, 1)
                raise TypeError(
                    f"{name}: there is no argument `{k}`. "
                    + (f"Did you mean `{near[0]}`?" if near else f"There are {known}.")
                )
        result = made(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        # Copied: the user may change a dict or a list after the call.
        call = Call(make, {k: _copied(x) for k, x in bound.arguments.items()})
        call.keep(result)
        # A result of a subclass keeps its class.
        return (type(result) if issubclass(type(result), cls) else cls).of(call)

    make.__wrapped__ = made  # pyright: ignore[reportFunctionMemberAccess]
    make.__signature__ = signature  # pyright: ignore
    return make


def is_leaf(x: object) -> bool:
    """Whether `x` is a leaf of a call: an array of numbers, traced or not.

    Booleans are masks, which must be known before tracing.
    """
    return isinstance(x, jax.Array) and x.dtype != bool


class _Array:
    """Stands for an array among static values."""

    def __repr__(self) -> str:
        return "array"

    def __reduce__(self) -> str:
        return "_ARRAY"


_ARRAY = _Array()


class _Dict:
    """A dict that keeps the order of its keys. JAX sorts the keys of a plain dict.

    The order matters: `route` tries its patterns one after the other. Also, keys of
    different types cannot be sorted.
    """

    def __init__(self, keys: Static, values: list[PyTree]):
        self.keys, self.values = keys, values


class _Opaque:
    """An argument that JAX cannot flatten, or whose structure cannot be hashed."""

    def __init__(self, thing: object):
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Opaque) and self.thing is other.thing

    def __hash__(self) -> int:
        return hash(_Opaque)


def _as_tree(x: PyTree) -> PyTree:
    """An argument as a tree that JAX can flatten."""
    if type(x) is dict:
        return _Dict(Static(x), [_as_tree(value) for value in x.values()])
    if type(x) in (list, tuple):
        return type(x)(map(_as_tree, x))
    try:
        hash(jax.tree.structure(x))
        return x
    except Exception:  # a user's class may raise anything
        return _Opaque(x)


def _from_tree(x: PyTree) -> PyTree:
    """The inverse of `_as_tree`."""
    if isinstance(x, _Dict):
        return dict(zip(x.keys.values, map(_from_tree, x.values), strict=True))
    if type(x) in (list, tuple):
        return type(x)(map(_from_tree, x))
    return x.thing if isinstance(x, _Opaque) else x


def _copied(x: PyTree) -> PyTree:
    """A copy of `x`, if it is a dict, list or tuple, and of those inside it."""
    if type(x) is dict:
        return {k: _copied(v) for k, v in x.items()}
    if type(x) is list:
        return [_copied(v) for v in x]
    return tuple(map(_copied, x)) if type(x) is tuple else x


def _with_operands(x: PyTree, name: object = None) -> PyTree:
    if isinstance(x, float) and x and name in OPERANDS:
        return jnp.asarray(x)  # weakly typed, as the number was
    if type(x) is dict:
        return {k: _with_operands(v, k) for k, v in x.items()}
    if type(x) is list:
        return [_with_operands(v, name) for v in x]
    if type(x) is tuple:
        return tuple(_with_operands(v, name) for v in x)
    call, cls = call_of(x), type(x)
    return x if call is None else cls.of(call.with_operands)  # pyright: ignore


def _same_array(a: object, b: object) -> bool:
    if a is b:
        return True
    if not (isinstance(a, jax.Array) and isinstance(b, jax.Array)):
        return False
    if isinstance(a, Tracer) or isinstance(b, Tracer):
        return False
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        a, b = map(jax.random.key_data, (a, b))
    if a.weak_type != b.weak_type:
        return False
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


jax.tree_util.register_pytree_with_keys(
    Call, Call.flatten_with_keys, Call.unflatten, Call.flatten
)
jax.tree_util.register_pytree_with_keys(
    _Dict,
    lambda x: (
        [
            (jax.tree_util.DictKey(k), v)
            for k, v in zip(x.keys.values, x.values, strict=True)
        ],
        x.keys,
    ),
    lambda keys, values: _Dict(keys, list(values)),
    lambda x: (x.values, x.keys),
)
