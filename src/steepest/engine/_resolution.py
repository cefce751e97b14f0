"""Whether half-precision weights can register the steps of an optimizer."""

from collections.abc import Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from ..core import AnyTransformation, Params, Rule, ScalarOrSchedule
from ..numerics import is_half, rms
from ._inspect import wrapper_info
from .leaves import Leaves
from .run import plan_of

# Rules whose updates have entries of about 1, whatever the size of the gradient.
_UNIT = {
    f"scale_by_{name}"
    for name in (
        "adam adamax adan ademamix adopt amsgrad belief lion radam rms sign yogi"
    ).split()
}
# Rules and wrappers that do not make larger updates of those.
_SMALLER = {
    "add_decayed_weights",
    "apply_if_finite",
    "clip",
    "clip_by_global_norm",
    "guard",
    "MultiSteps",
    "scale_by_learning_rate",
    "watched",
    "zero_nans",
}
_TYPICAL = 0.1  # the size of an update of Adam late in training, where it can be 1
_COUNTS = (0, *(1 << k for k in range(24)))  # where to look at a schedule


class Unresolved(NamedTuple):
    """A half-precision leaf that is too coarse for the learning rate."""

    path: str
    dtype: str
    size: float  # the root mean square of its weights
    rate: float  # the largest learning rate

    def __str__(self) -> str:
        return (
            f"{self.path} is {self.dtype} with an rms of {self.size:.2g}, and cannot "
            f"register steps of {_TYPICAL * self.rate:.1g}, a tenth of the learning "
            "rate. Use `compensated` or `stochastic_rounding`, or float32 params."
        )


def unresolved(tx: AnyTransformation, params: Params) -> list[Unresolved]:
    """The half-precision leaves whose weights are too coarse for the learning rate.

    A bfloat16 weight ignores changes below 0.2 % of it. For optimizers whose steps are
    as large as the learning rate, such as Adam, a tenth of the largest learning rate is
    compared with that. Other optimizers and wrappers, and leaves whose values are not
    known, are never reported.

    Args:
        tx: any transformation.
        params: the params, or their shapes.
    """
    leaves = Leaves(params, "params")
    if not any(map(_is_known_half, leaves.arrays)):
        return []
    coarse = []
    for k, (p, names, rates) in enumerate(
        zip(leaves.arrays, *_parts(tx, params), strict=True)
    ):
        whole = names <= _UNIT | _SMALLER and names & _UNIT
        if not _is_known_half(p) or not whole or not rates:
            continue
        rate, size = max(rates), float(rms(p.astype(jnp.float32)))
        # Half of the last bit of a number, relative to the largest with this last bit.
        if 0 < _TYPICAL * rate < size * float(jnp.finfo(p.dtype).eps) / 4:
            coarse.append(Unresolved(leaves.path(k), str(p.dtype), size, rate))
    return coarse


def _is_known_half(p: object) -> bool:
    if isinstance(p, Tracer) or not isinstance(p, Array | np.ndarray):
        return False
    return is_half(p.dtype) and p.size > 0


def _parts(
    tx: AnyTransformation, params: Params
) -> tuple[list[set[str]], list[list[float]]]:
    """For each leaf, the names of its rules and wrappers, and its learning rates."""
    leaves = Leaves(params, "params")
    names: list[set[str]] = [set() for _ in leaves.arrays]
    rates: list[list[float]] = [[] for _ in leaves.arrays]
    for link in plan_of("unresolved", "tx", tx).links:
        view, body = link.view(leaves), link.body
        info = None if isinstance(body, Rule) else wrapper_info(body)
        size = sum(view.on)
        inside = [{link.name}] * size, [list(_rates(body))] * size
        if info is not None:
            inner, numbers = _parts(info.tx, view.hide(params))
            inside = [x | {info.name} for x in inner], numbers
        pairs = zip(*inside, strict=True)
        for k, on in enumerate(view.on):
            if on:
                mine, numbers = next(pairs)
                names[k] |= mine
                rates[k] += numbers
    return names, rates


def _rates(body: object) -> Iterator[float]:
    """The learning rate of a rule; the largest one of a schedule."""
    if isinstance(body, Rule) and "learning_rate" in body.numbers:
        yield _largest(body.numbers["learning_rate"])


def _largest(rate: ScalarOrSchedule) -> float:
    """The largest value of a learning rate; infinity if that is not known."""
    try:
        if not callable(rate):
            return abs(float(rate))
        counts = [jnp.asarray(n, jnp.int32) for n in _COUNTS]
        return max(abs(float(jnp.asarray(rate(n)))) for n in counts)
    except Exception:  # it may be traced, or a user's function may raise anything
        return float("inf")
