"""Calls as text, the way a person would type them."""

import inspect
from collections.abc import Iterator

import jax
import jax.numpy as jnp
from jax.core import Tracer

from ._call import Call, call_of
from ._static import Static


def shown_arguments(call: Call) -> Iterator[tuple[str | None, object]]:
    """The arguments to show, by name; those from `*args` have no name.

    These are all numbers, and other arguments that differ from their defaults.

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


def written(x: object) -> str:
    """The text that a person would type for `x`.

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


def _listed(texts: list[str], values: list[object]) -> str:
    """Texts joined by commas; one per line if one of them is a transformation."""
    calls = any(isinstance(x, tuple) and call_of(x) for x in values)
    if not calls and not any("\n" in text for text in texts):
        return ", ".join(texts)
    lines = ["    " + text.replace("\n", "\n    ") + "," for text in texts]
    return "\n" + "\n".join(lines) + "\n"


def _is_number(x: object) -> bool:
    return isinstance(x, int | float | complex) and not isinstance(x, bool)


def _is_same(x: object, default: object) -> bool:
    return x is default or Static([x]) == Static([default])
