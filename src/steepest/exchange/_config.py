"""Transformations to and from JSON, for configuration files and logs.

    {"chain": [
        {"clip_by_global_norm": {"max_norm": 1.0}},
        {"adamw": {"learning_rate": {"cosine_decay_schedule": {...}}}}
    ]}

A call is a dict with one key, the name of the function. The value is the arguments: a
dict by name, or a list for a function of `*args`. Nothing is evaluated or unpickled.
Only public functions of steepest are called.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import (
    check,
    combine,
    contrib,
    core,
    engine,
    experimental,
    matrix,
    optimizers,
    schedules,
    transforms,
)
from ..core import (
    AnyTransformation,
    as_inner,
    Call,
    call_of,
    GradientTransformationExtraArgs,
    shown_arguments,
    Transformation,
)
from ..schedules import inject_hyperparams

_INJECT, _MULTI_STEPS = "inject_hyperparams", "MultiSteps"


def to_config(tx: AnyTransformation) -> dict[str, Any]:
    """`tx` as a dict for `json.dumps`. `from_config` makes an equal `tx` from it.

    Args:
        tx: made by functions of steepest. Your own functions among its arguments, such
            as a mask or a schedule, cannot be written as JSON.

    >>> import steepest
    >>> steepest.to_config(steepest.sgd(0.1, momentum=0.9))
    {'sgd': {'learning_rate': 0.1, 'momentum': 0.9}}
    """
    tx = as_inner("to_config", "tx", tx)
    if not isinstance(tx, Transformation) or tx.call is None:
        raise TypeError(
            "to_config: tx was not made by a function of steepest, so its arguments "
            "are unknown. Decorate your own function with `steepest.transformation`, "
            "and write its arguments yourself."
        )
    return _encoded_call(tx.call, "tx")


def from_config(config: Mapping[str, object]) -> GradientTransformationExtraArgs:
    """The transformation that `config` describes.

    Args:
        config: the result of `to_config`, or the same written by hand. Omitted
            arguments have their defaults.

    >>> import steepest
    >>> steepest.from_config({"adam": {"learning_rate": 0.1, "b1": 0.8}})
    adam(learning_rate=0.1, b1=0.8, b2=0.999, eps=1e-08, eps_root=0.0)
    """
    if not isinstance(config, Mapping) or len(config) != 1:
        is_dict = isinstance(config, Mapping)
        problem = f"has {len(config)} keys" if is_dict else f"is {config!r}"
        raise TypeError(
            f"from_config: config {problem}, expected a dict with one key, the name of "
            'a function, such as {"adamw": {"learning_rate": 1e-3}}.'
        )
    ((name, arguments),) = config.items()
    made = _call(name, arguments, "config")
    if not isinstance(made, Transformation):
        raise TypeError(
            f"from_config: {name} makes a {type(made).__name__}, expected a function "
            "that makes a transformation."
        )
    return made


@cache
def _functions() -> dict[str, Callable[..., object]]:
    """All functions that a config may call, by public name."""
    named: dict[str, Callable[..., object]] = {}
    rooms = (core, engine, combine, schedules, transforms, optimizers, matrix)
    for prefix, room in [("", room) for room in rooms] + [
        ("contrib.", contrib),
        ("experimental.", experimental.aggregating),
    ]:
        for name, x in inspect.getmembers(room):
            if isinstance(x, FunctionType) and not name.startswith("_"):
                named.setdefault(prefix + name, x)
    return {**named, _MULTI_STEPS: combine.MultiSteps}


@cache
def _names() -> dict[Callable[..., object], str]:
    return {f: name for name, f in reversed(_functions().items())}


def _encoded(x: object, where: str) -> object:
    """`x` as JSON.

    Args:
        x: a call, or one of its arguments.
        where: which argument it is, for error messages.
    """
    call = call_of(x)
    if call is not None:
        return _encoded_call(call, where)
    if x is None or isinstance(x, bool | int | str):
        return x
    if isinstance(x, float):
        return x if math.isfinite(x) else {"float": repr(x)}
    if isinstance(x, jax.Array | np.ndarray | np.generic):
        values = np.asarray(x.astype(jnp.float32) if x.dtype.kind == "V" else x)
        weak = {"weak": True} if getattr(x, "weak_type", False) else {}
        return {"array": values.tolist(), "dtype": str(x.dtype), **weak}
    if isinstance(x, np.dtype) or (isinstance(x, type) and hasattr(x, "dtype")):
        return {"dtype": str(jnp.dtype(x))}
    if type(x) is tuple:
        return [_encoded(one, f"{where}[{k}]") for k, one in enumerate(x)]
    if type(x) is list:
        return {"list": _encoded(tuple(x), where)}
    if isinstance(x, Mapping):
        pairs = [(k, _encoded(v, f"{where}[{k!r}]")) for k, v in x.items()]
        plain = dict(pairs)
        if all(isinstance(k, str) for k in x) and not _is_call(plain):
            return plain
        return {"dict": [[_encoded(k, where), v] for k, v in pairs]}
    if isinstance(x, FunctionType) and x in _names():
        return {"function": _names()[x]}
    what = f"the function {x.__qualname__}" if inspect.isroutine(x) else repr(x)
    raise TypeError(
        f"to_config: {where} is {what}, which cannot be written as JSON. Choose leaves "
        "by a pattern (`mask=r'kernel'`), and make schedules with functions of "
        "steepest."
    )


def _encoded_call(call: Call, where: str) -> dict[str, object]:
    name = _names().get(call.function)
    if name is None and call.name in (_INJECT, _MULTI_STEPS):
        name = call.name  # the functions that made these are not public
    if name == _INJECT:
        return {_INJECT: _encoded_injection(call.arguments, where)}
    if name is None:
        raise TypeError(
            f"to_config: {where} was made by {call.name}, which is not a public "
            "function of steepest. Write it as functions of steepest."
        )
    items = list(shown_arguments(call))
    if items and all(name is None for name, _ in items):
        listed = [_encoded(x, f"{where}[{k}]") for k, (_, x) in enumerate(items)]
        return {name: listed}
    return {name: {key: _encoded(x, f"{where}.{key}") for key, x in items}}


def _encoded_injection(arguments: Mapping[str, Any], where: str) -> dict[str, object]:
    factory = arguments["inner_factory"]
    if factory not in _names():
        raise TypeError(
            f"to_config: {where} injects {getattr(factory, '__name__', factory)!r}, "
            "which is not a public function of steepest."
        )
    wrapped = {
        k: getattr(f, "schedule_fn", f) for k, f in arguments["schedules"].items()
    }
    inner = {**arguments["rest"], **arguments["numbers"], **wrapped}
    parameters = inspect.signature(factory).parameters
    encoded = {
        name: _encoded(x, f"{where}.{name}")
        for name, x in inner.items()
        if x is not parameters[name].default
    }
    options = {k: arguments[k] for k in ("static_args", "hyperparam_dtype")}
    more = {k: _encoded(x, k) for k, x in options.items() if x}
    return {_names()[factory]: encoded, **more}


def _is_call(x: object) -> bool:
    """Whether a dict of JSON is a call, an array, a dtype, or another coded value."""
    if not isinstance(x, Mapping) or not x:
        return False
    first = next(iter(x))
    if first in ("array", "dict", "dtype", "float", "function", "list"):
        return True
    holds = isinstance(x[first], Mapping | list)
    return len(x) == 1 and first in _functions() and holds


def _decoded(x: object, where: str) -> Any:
    """The inverse of `_encoded`."""
    if isinstance(x, list):
        return tuple(_decoded(one, f"{where}[{k}]") for k, one in enumerate(x))
    if not isinstance(x, Mapping):
        return x
    if not _is_call(x):
        return {k: _decoded(v, f"{where}.{k}") for k, v in x.items()}
    (name, value), *more = x.items()
    if name == "array":
        array = jnp.asarray(value, dict(more)["dtype"])
        return check.number(array) if dict(more).get("weak") else array
    if name == "dict":
        return {_decoded(k, where): _decoded(v, f"{where}[{k!r}]") for k, v in value}
    if name == "dtype":
        return jnp.dtype(value)
    if name == "float":
        return float(value)
    if name == "function":
        return _function(value, where)
    if name == "list":
        return list(_decoded(value, where))
    return _call(name, value, where)


def _call(name: object, arguments: object, where: str) -> object:
    """The result of the function with this name."""
    function = _function(name, where)
    if name == _INJECT and isinstance(arguments, Mapping):
        (inner, values), *options = arguments.items()
        factory, more = _function(inner, where), _by_name(dict(options), where)
        return inject_hyperparams(factory, **more)(
            **_by_name(values, f"{where}.{inner}")
        )
    if isinstance(arguments, list):
        return function(*(_decoded(x, f"{where}.{name}") for x in arguments))
    if isinstance(arguments, Mapping):
        made = function(**_by_name(arguments, f"{where}.{name}"))
        if isinstance(made, combine.MultiSteps):
            return made.gradient_transformation()
        return made
    raise TypeError(
        f"from_config: {where}.{name} is {arguments!r}, expected the arguments of "
        f"{name}: a dict by name, or a list."
    )


def _by_name(arguments: Mapping[str, object], where: str) -> dict[str, Any]:
    return {k: _decoded(x, f"{where}.{k}") for k, x in arguments.items()}


def _function(name: object, where: str) -> Callable[..., Any]:
    functions = _functions()
    if isinstance(name, str) and name in functions:
        return functions[name]
    near = get_close_matches(str(name), functions, 1)
    raise ValueError(
        f"from_config: {where} names {name!r}, which is not a function of steepest."
        + (f" Did you mean {near[0]!r}?" if near else "")
    )
