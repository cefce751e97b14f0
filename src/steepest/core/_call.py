"""Things made by a function, as data: which function, with which arguments.

`adamw(1e-3)` knows that it is `adamw` with these numbers. So it can be printed,
compared, copied, pickled, written as JSON, and passed through `jax.jit`: the arrays
among its arguments are its leaves, and all the rest is static.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ._errors import said_before
from ._static import Static

# Numbers that only multiply or bound, so a program that takes them as arguments gives
# the same results as one that has them as constants. One program serves all values.
OPERANDS = frozenset(
    ("learning_rate", "weight_decay", "max_norm", "max_delta", "step_size", "threshold")
)


class Call:
    """`function(**arguments)`, a pytree whose leaves are the arrays in the arguments.

    What it makes is made when it is first used. JAX puts any object in the place of a
    leaf, and copies a call many times, so to make it at once could fail, and would
    waste time.

    Args:
        function: made by `transformation` or `schedule`: its `__wrapped__` does the
            work.
        arguments: by name; what `*args` has collected, as a tuple under its name.
    """

    def __init__(self, function: Callable[..., Any], arguments: Mapping[str, Any]):
        self.function = function
        self.arguments = dict(arguments)

    @cached_property
    def made(self) -> Any:
        """What the function returns."""
        bound = inspect.BoundArguments(
            inspect.signature(self.function),
            self.arguments,  # pyright: ignore[reportArgumentType]
        )
        with said_before():
            return self.function.__wrapped__(*bound.args, **bound.kwargs)  # pyright: ignore

    @property
    def name(self) -> str:
        """What the function is called."""
        return self.function.__name__

    @cached_property
    def _parts(self) -> tuple[Static, tuple[Any, ...]]:
        """All that is not an array, and the arrays."""
        trees = {name: _as_tree(x) for name, x in self.arguments.items()}
        leaves, treedef = jax.tree.flatten(trees)
        rest = (_ARRAY if is_leaf(x) else x for x in leaves)
        return Static((self.function, treedef, *rest)), tuple(filter(is_leaf, leaves))

    def flatten(self) -> tuple[tuple[Any, ...], Static]:
        """For JAX: the arrays, and all the rest."""
        static, arrays = self._parts
        return arrays, static

    def flatten_with_keys(self) -> tuple[list[tuple[Any, Any]], Static]:
        """For JAX: the arrays with their places, and all the rest."""
        trees = {name: _as_tree(x) for name, x in self.arguments.items()}
        paths = jax.tree_util.tree_leaves_with_path(trees)
        key = lambda path: jax.tree_util.keystr(path, simple=True, separator=".")
        named = [(key(path), x) for path, x in paths if is_leaf(x)]
        return [(jax.tree_util.GetAttrKey(k), x) for k, x in named], self._parts[0]

    @classmethod
    def unflatten(cls, static: Static, arrays: Any) -> "Call":
        """For JAX: back from the arrays, or from what JAX puts in their places."""
        function, treedef, *leaves = static.values
        rest = iter(arrays)
        filled = [next(rest) if x is _ARRAY else x for x in leaves]
        trees = treedef.unflatten(filled)
        call = cls(function, {k: _from_tree(x) for k, x in trees.items()})
        call.__dict__["_parts"] = static, tuple(arrays)
        return call

    @cached_property
    def with_operands(self) -> "Call":
        """The same call, with arrays for the Python numbers among `OPERANDS`.

        Outside `jit` this is what is compiled: one program for every learning rate.
        """
        return Call(self.function, _with_operands(self.arguments))

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Call):
            return self is other
        (mine, arrays), (theirs, others) = self._parts, other._parts
        return mine == theirs and all(map(_same_array, arrays, others))

    def __hash__(self) -> int:
        return hash(self._parts[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return Call, (self.function, self.arguments)

    def __repr__(self) -> str:
        return written(self)


class Made:
    """What a call has made: a class whose objects have a `call`."""

    call: Any  # a Call; of a pair, `None` if nobody knows how it was made


def call_of(x: Any) -> Call | None:
    """How `x` was made, if it knows.

    Args:
        x: anything. `functools.wraps` copies attributes, so the class is asked.
    """
    return x.call if isinstance(x, Made) else None


def shown_arguments(call: Call) -> Iterator[tuple[str | None, Any]]:
    """The arguments worth showing: by name, or without one if they come from `*args`.

    That is every number, and of the rest what is not the default.

    Args:
        call: the call.
    """
    for name, parameter in inspect.signature(call.function).parameters.items():
        x = call.arguments.get(name, parameter.default)
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from ((None, one) for one in x)
        elif parameter.kind is parameter.VAR_KEYWORD:
            yield from x.items()
        elif _is_number(x) or not _is_same(x, parameter.default):
            yield name, x


def written(x: Any) -> str:
    """`x` as a person would type it.

    Args:
        x: a call, or one of its arguments.
    """
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        return repr(x)
    call = x if isinstance(x, Call) else call_of(x)
    if call is not None:
        show = getattr(call.function, "written", None)
        if show is not None:
            return show(call)
        items = list(shown_arguments(call))
        texts = [f"{name}={written(x)}" if name else written(x) for name, x in items]
        return f"{call.name}({_listed(texts, [x for _, x in items])})"
    if isinstance(x, jax.Array) and not isinstance(x, Tracer) and x.ndim == 0:
        return f"array({x.item()!r}, {x.dtype})"
    if type(x) is dict:
        texts = [f"{written(k)}: {written(v)}" for k, v in x.items()]
        return f"{{{_listed(texts, list(x.values()))}}}"
    if type(x) is list:
        return f"[{_listed([written(one) for one in x], x)}]"
    if type(x) is tuple:
        comma = "," if len(x) == 1 else ""
        return f"({_listed([written(one) for one in x], list(x))}{comma})"
    if isinstance(x, type) or inspect.isroutine(x):
        return getattr(x, "__qualname__", repr(x))
    return repr(x)


def _listed(texts: list[str], values: list[Any]) -> str:
    """Texts with commas; on lines of their own if a transformation is among them."""
    calls = any(isinstance(x, tuple) and call_of(x) for x in values)
    if not calls and not any("\n" in text for text in texts):
        return ", ".join(texts)
    lines = ["    " + text.replace("\n", "\n    ") + "," for text in texts]
    return "\n" + "\n".join(lines) + "\n"


def recorded(
    title: str, function: Callable[..., Any], cls: Any, check: Callable[..., Any]
) -> Any:
    """`function`, whose results are of class `cls` and know their call.

    Args:
        title: the name of the decorator, for an error.
        function: one of module level.
        cls: a class with a method `of`, which takes a call.
        check: turns what `function` returns into what the call makes.
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
    def made(*args: Any, **kwargs: Any) -> Any:
        return check(name, function(*args, **kwargs))

    @wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
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
        call = Call(make, bound.arguments)
        call.__dict__["made"] = result
        # What is of a subclass stays of it.
        return (type(result) if issubclass(type(result), cls) else cls).of(call)

    make.__wrapped__ = made  # pyright: ignore[reportFunctionMemberAccess]
    make.__signature__ = signature  # pyright: ignore
    return make


def is_leaf(x: Any) -> bool:
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
    """A dict whose keys stay in their order; JAX sorts those of a plain one.

    The order matters: `route` tries its patterns in turn. And keys of two types cannot
    be sorted.
    """

    def __init__(self, keys: Static, values: Any):
        self.keys, self.values = keys, values


class _Opaque:
    """An argument that JAX cannot take apart, or whose structure cannot be hashed."""

    def __init__(self, thing: Any):
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Opaque) and self.thing is other.thing

    def __hash__(self) -> int:
        return hash(_Opaque)


def _as_tree(x: Any) -> Any:
    """An argument, made fit to be taken apart by JAX."""
    if type(x) is dict:
        return _Dict(Static(x), [_as_tree(value) for value in x.values()])
    if type(x) in (list, tuple):
        return type(x)(map(_as_tree, x))
    try:
        hash(jax.tree.structure(x))
        return x
    except Exception:  # a class of the user's may raise anything
        return _Opaque(x)


def _from_tree(x: Any) -> Any:
    """What `_as_tree` was given."""
    if isinstance(x, _Dict):
        return dict(zip(x.keys.values, map(_from_tree, x.values), strict=True))
    if type(x) in (list, tuple):
        return type(x)(map(_from_tree, x))
    return x.thing if isinstance(x, _Opaque) else x


def _with_operands(x: Any, name: Any = None) -> Any:
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


def _same_array(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if any(isinstance(x, Tracer) or not isinstance(x, jax.Array) for x in (a, b)):
        return False
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        a, b = map(jax.random.key_data, (a, b))
    if a.weak_type != b.weak_type:
        return False
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float | complex) and not isinstance(x, bool)


def _is_same(x: Any, default: Any) -> bool:
    return x is default or Static([x]) == Static([default])


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
