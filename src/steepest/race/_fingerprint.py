"""Fingerprints: digests of everything that the numbers of a run depend on.

Every file of a race has one. Results can be compared only if all parts but the
optimizer's are equal. A function is identified by the program that JAX traces and the
arrays it closes over, not by its source, name or address.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import PyTree

import steepest
from steepest.core import Real

from ._arrays import digest
from ._calls import argument_names, examples
from ._content import content, text_of
from ._halving import FRACTIONS, MARGIN
from ._model import Model
from ._problem import Data, Problem
from ._settings import Settings

Fingerprint = dict[str, str]  # the name of a part -> its digest, or the value itself

OPTIMIZER = "the optimizer's program"
_SEPARATED = ", "  # between the items of a list
_LONGEST = 60  # characters of a value in a message
_DIGEST = re.compile("[0-9a-f]{32}")
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
    values = examples(problem)
    arguments = lambda field: [values[x] for x in argument_names(problem, field)]
    device = jax.local_devices()[0]
    listed = lambda xs: _SEPARATED.join(str(x) for x in xs)
    # Folders of older versions have no entries "`stateful`" and "halving".
    stateful = {"`stateful`": "True"} if problem.stateful else {}
    rule = listed([*FRACTIONS, MARGIN, problem.better])
    halving = {"halving": rule} if settings.halving else {}
    return {
        "`init`": traced(problem.init, *arguments("init")),
        "`batches`": traced(problem.batches, *arguments("batches")),
        "`loss`": _with_slope(problem, *arguments("loss")),
        "`metric`": _maybe(problem.metric, *arguments("metric")),
        "`adjust`": _maybe(problem.adjust, *arguments("adjust")),
        **stateful,
        "`data`": _data(problem.data),
        "learning rates": listed(settings.learning_rates),
        "seeds": listed(settings.seeds),
        "steps": str(settings.steps),
        "schedule": str(settings.schedule),
        **halving,
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

    def whole(rate: Real, seed: ArrayLike, t: ArrayLike, data: Data) -> PyTree:
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
    return [_difference(*pair) for pair in pairs if pair[1] != pair[2]]


def check_same(
    path: Path,
    then: Mapping[str, str],
    now: Mapping[str, str],
    *,
    name: str = "race",
    place: str = "folder",
) -> None:
    """Raise if code, data or settings have changed since a file was written.

    Args:
        path: of the file.
        then: the fingerprint in the file.
        now: the current fingerprint.
        name: name used in error messages.
        place: where results are stored.
    """
    changed = differences(then, now)
    if changed:
        raise ValueError(
            f"{name}: cannot resume. Changed since {path} was written: "
            f"{', '.join(changed)}. Results from before and after the change cannot "
            f"be compared. Undo it, or use another {place}."
        )


def traced(f: Callable[..., PyTree], *args: PyTree) -> str:
    """A digest of what a function computes.

    Two functions have the same digest if JAX traces them to the same program. Host
    callbacks are not traced.

    Args:
        f: the function.
        args: its arguments, or their shapes and dtypes.
    """
    sha = hashlib.sha256()
    for item in content(jax.make_jaxpr(f)(*args)):
        sha.update(f"{text_of(item)}\n".encode())
    return sha.hexdigest()[:32]


def _difference(name: str, then: str, now: str) -> str:
    if _DIGEST.fullmatch(then) or _DIGEST.fullmatch(now):
        return name
    short = lambda text: text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"{name} ({short(then)} then, {short(now)} now)"


def _maybe(f: Callable[..., PyTree] | None, *args: PyTree) -> str:
    return "none" if f is None else traced(f, *args)


def _with_slope(problem: Problem, *args: PyTree) -> str:
    """A digest of a loss and its gradient, which shows custom derivative rules."""
    value = traced(problem.loss, *args)
    try:
        slope = traced(jax.grad(problem.loss, has_aux=problem.stateful), *args)
    except Exception:  # with a local rule, the loss need not be differentiable
        slope = "none"
    return hashlib.sha256(f"{value} {slope}".encode()).hexdigest()[:32]


def _data(data: Data) -> str:
    """A digest of the structure, the dtypes, the shapes and every byte."""
    leaves, structure = jax.tree.flatten(data)
    lines = [str(structure), *map(digest, leaves)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]
