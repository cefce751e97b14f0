"""Fingerprints: digests of everything that the numbers of a run depend on.

Every file of a race has one. Results can be compared only if all parts but the
optimizer's are equal. A function is identified by the program that JAX traces and the
arrays it closes over, not by its source, name or address.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

import steepest

from ._arrays import digest
from ._model import Model
from ._problem import Problem
from ._settings import Settings

Fingerprint = dict[str, str]  # the name of a part -> its digest, or the value itself

OPTIMIZER = "the optimizer's program"
_SEPARATED = ", "  # between the items of a list
_LONGEST = 60  # characters of a value in a message
_DIGEST = re.compile("[0-9a-f]{32}")
_ADDRESS = re.compile("0x[0-9a-f]+")
# Parameters of primitives that hold debug information only.
_NAMES = {"name", "name_and_src_info", "debug_info"}
# Options that change the numbers but do not appear in a traced program.
_CONFIGURATION = (
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_enable_x64",
    "jax_threefry_partitionable",
)


def race_fingerprint(problem: Problem, settings: Settings) -> Fingerprint:
    """The part of the fingerprint that all optimizers of a race share.

    Args:
        problem: of the race.
        settings: of the race.
    """
    key = jax.eval_shape(jax.random.key, np.uint32(0))
    params = jax.eval_shape(problem.init, key)
    batch = jax.eval_shape(problem.batches, key, problem.data)
    device = jax.local_devices()[0]
    listed = lambda xs: _SEPARATED.join(str(x) for x in xs)
    return {
        "`init`": traced(problem.init, key),
        "`batches`": traced(problem.batches, key, problem.data),
        "`loss`": _with_slope(problem.loss, params, batch),
        "`metric`": _maybe(problem.metric, params, problem.data),
        "`adjust`": _maybe(problem.adjust, params, batch),
        "`data`": _data(problem.data),
        "learning rates": listed(settings.learning_rates),
        "seeds": listed(settings.seeds),
        "steps": str(settings.steps),
        "schedule": str(settings.schedule),
        "device": f"{device.platform} {device.device_kind}",
        "version of JAX": jax.__version__,
        "version of steepest": steepest.__version__,
        **{key: str(getattr(jax.config, key)) for key in _CONFIGURATION},
    }


def optimizer_fingerprint(model: Model) -> str:
    """A digest of one run of an optimizer: its start, a step and the metric.

    Args:
        model: the run.
    """
    rate, seed, t, data = np.float32(0), np.uint32(0), np.int32(0), model.problem.data

    def whole(rate: Any, seed: Any, t: Any, data: Any) -> Any:
        run, value = model.step(rate, seed, t, model.start(rate, seed), data)
        return run, value, model.metric(seed, run, data)

    try:
        return traced(whole, rate, seed, t, data)
    except Exception as error:  # the race reports this error later
        return f"none, {type(error).__name__}"


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The parts that differ, in words, with their values if readable.

    Args:
        then: the fingerprint in a file.
        now: the fingerprint of this race.

    >>> differences({"steps": "3", "`loss`": "0" * 32}, {"steps": "4"})
    ['steps (3 then, 4 now)', '`loss`']
    """
    keys = [*then, *(key for key in now if key not in then)]
    pairs = [(key, then.get(key, "none"), now.get(key, "none")) for key in keys]
    return [_said(*pair) for pair in pairs if pair[1] != pair[2]]


def traced(f: Callable[..., Any], *args: Any) -> str:
    """A digest of what a function computes.

    Two functions have the same digest if JAX traces them to the same program. Host
    callbacks are not traced.

    Args:
        f: the function.
        args: its arguments, or their shapes and dtypes.
    """
    sha = hashlib.sha256()
    program = jax.make_jaxpr(f)(*args)
    _walk(program, lambda text: sha.update(f"{text}\n".encode()))
    return sha.hexdigest()[:32]


def _said(name: str, then: str, now: str) -> str:
    if _DIGEST.fullmatch(then) or _DIGEST.fullmatch(now):
        return name
    short = lambda text: text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"{name} ({short(then)} then, {short(now)} now)"


def _maybe(f: Callable[..., Any] | None, *args: Any) -> str:
    return "none" if f is None else traced(f, *args)


def _with_slope(loss: Callable[..., Any], params: Any, batch: Any) -> str:
    """A digest of a loss and its gradient, which shows custom derivative rules."""
    value = traced(loss, params, batch)
    try:
        slope = traced(jax.grad(loss), params, batch)
    except Exception:  # with a local rule, the loss need not be differentiable
        slope = "none"
    return hashlib.sha256(f"{value} {slope}".encode()).hexdigest()[:32]


def _data(data: Any) -> str:
    """A digest of the structure, the dtypes, the shapes and every byte."""
    leaves, structure = jax.tree.flatten(data)
    lines = [str(structure), *map(digest, leaves)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]


def _walk(program: ClosedJaxpr | Jaxpr, say: Callable[[str], None]) -> None:
    """Emit everything that a program computes, with its variables numbered in order."""
    jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    numbers: dict[Any, str] = {}

    def known(x: Any) -> str:
        if isinstance(x, Literal):
            return f"{x.aval} {digest(x.val)}"
        return numbers.setdefault(x, f"v{len(numbers)}:{x.aval}")

    said = lambda xs: " ".join(known(x) for x in xs)
    if isinstance(program, ClosedJaxpr):
        say("enclosed " + " ".join(map(digest, program.consts)))
    say(f"given {said(jaxpr.constvars)} and {said(jaxpr.invars)}")
    for step in jaxpr.eqns:
        # Unused outputs have no name.
        outputs = " ".join(str(x.aval) for x in step.outvars)
        say(f"{step.primitive.name} {said(step.invars)} -> {outputs}")
        for x in step.outvars:
            known(x)
        for key in sorted(step.params.keys() - _NAMES):
            say(f"with {key}")
            _parameter(step.params[key], say)
    say(f"returns {said(jaxpr.outvars)}")


def _parameter(x: Any, say: Callable[[str], None]) -> None:
    """Emit a parameter of a primitive: inner programs, but no addresses."""
    if isinstance(x, ClosedJaxpr | Jaxpr):
        _walk(x, say)
    elif isinstance(x, tuple | list):
        say(f"{len(x)} of")
        for one in x:
            _parameter(one, say)
    elif isinstance(x, dict):
        _parameter(sorted(x.items(), key=str), say)
    elif isinstance(x, set | frozenset):
        say(str(sorted(map(repr, x))))
    elif isinstance(x, np.ndarray | jax.Array):
        say(digest(x))
    elif callable(x) and not isinstance(x, type):
        say("a function")  # its program appears in the gradient, if there is one
    else:
        say(_ADDRESS.sub("", repr(x)))
