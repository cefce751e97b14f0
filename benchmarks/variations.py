"""What runs of the small suite with other seeds show, for its page."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from steepest.race.suite._statistics import paired

Losses = Mapping[str, Sequence[float]]  # of runs of two kinds, one per seed


def cost_of_int8(name: str, losses: Losses) -> str:
    """How much worse an optimizer is in int8, run by run.

    Args:
        name: of the optimizer.
        losses: in float32 and in int8, one per seed.
    """
    test = paired(losses["int8"], losses["float32"])
    if test is None:
        return f"{name} diverged"
    sigma = np.std(losses["float32"], ddof=1)
    return (
        f"{name} {test} nats, "
        f"{test.mean / sigma:+.2f} sigma, with {len(losses['int8'])} seeds"
    )


def gain_of_momentum(name: str, losses: Losses) -> str:
    """How an optimizer with a momentum of 0.9 differs from 0.95, run by run.

    Args:
        name: of the optimizer.
        losses: with each, one per seed.
    """
    test = paired(losses["0.9"], losses["0.95"])
    return f"{name} {test}" if test else f"{name} diverged"


def cost_of_roundings(name: str, losses: Losses) -> str:
    """How much worse an optimizer is with the roundings of a GPU, run by run.

    Args:
        name: of the optimizer.
        losses: with and without them, one per seed.
    """
    test = paired(losses["rounded"], losses["plain"])
    return f"{name} {test}" if test else f"{name} diverged"


def of_int8(found: Mapping[str, Losses]) -> str:
    """What int8 costs in runs that are not in the table.

    Args:
        found: the losses of `python -m benchmarks.twins`, by optimizer.
    """
    return _remark(found, cost_of_int8, _INT8)


def of_momenta(found: Mapping[str, Losses]) -> str:
    """What a shorter memory changes.

    Args:
        found: the losses of `python -m benchmarks.momenta`, by optimizer.
    """
    return _remark(found, gain_of_momentum, _MOMENTA)


def of_roundings(found: Mapping[str, Losses]) -> str:
    """What the roundings of a GPU change.

    Args:
        found: the losses of `python -m benchmarks.roundings`, by optimizer.
    """
    return _remark(found, cost_of_roundings, _ROUNDINGS)


_INT8 = (
    "**int8 with other seeds**, at the same learning rates and decays (`python -m "
    "benchmarks.twins`): {each}."
)

_MOMENTA = (
    "**Momentum**: 0.9 instead of 0.95, in nats, with {many} other seeds (`python -m "
    "benchmarks.momenta`): {each}. The learning rates and decays were tuned for 0.9 in "
    "adamw and muon_h, and for 0.95 in the others, and matrices started as in the "
    "earlier model. The table has 0.9 for all."
)


_ROUNDINGS = (
    "**Roundings**: on a GPU, optimizers of matrices round the factors of most "
    "products to 11 bits. With these roundings, on two cores, and {many} other seeds "
    "(`python -m benchmarks.roundings`), losses differ, in nats: {each}."
)


def _remark(
    found: Mapping[str, Losses], said: Callable[[str, Losses], str], text: str
) -> str:
    """A text with what is said of each optimizer, and the number of seeds."""
    each = "; ".join(said(name, losses) for name, losses in found.items())
    many = [len(x) for losses in found.values() for x in losses.values()]
    return text.format(each=each, many=many[0]) if many else ""
