"""What is compared: one row for each optimizer, in order of importance.

The numbers are those of the papers, except for two. All momenta are 0.9: Muon, its
relatives, SOAP and MARS are published with 0.95, for larger batches and longer runs.
And `b2` of Adam, its relatives and Lion is 0.95: published are 0.999 and 0.99, averages
over the last thousand and hundred steps, which lose on runs of a thousand steps.

The learning rates and decays are only where the search begins: near those that an
earlier run of the suite chose, with an earlier model, so that few searches have to be
extended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxtyping import Array

import steepest
from steepest import contrib
from steepest.core import AnyTransformation, Schedule

from ._transformer import NORM, STACKED

ADAMW, MUON = "adamw", "muon"  # every arm is compared with these
OPTAX = "optax adamw"
_MOMENTUM, _B2 = 0.9, 0.95
_DECAY, _ADAM_DECAY = 0.9, 1.8
_matrices = steepest.not_matching(NORM)  # which leaves decay


class Numbers(NamedTuple):
    """The hyperparameters of one run: arrays, or schedules of arrays."""

    rate: Schedule
    decay: Array
    rest_rate: Schedule  # of AdamW for the leaves that are not matrices
    rest_decay: Array
    heads: int


@dataclass(frozen=True)
class Arm:
    """One optimizer of the suite.

    Attributes:
        name: in tables.
        make: makes the transformation.
        rate: the learning rate where the search begins.
        decay: the weight decay where it begins, in the method's own unit. Larger than
            published: runs are short.
        keeps_norms: whether the method keeps the norms of matrices, and has no weight
            decay. Instead of it, a factor on the initial norms is tuned.
        rest: whether AdamW updates the leaves that are not matrices, at the numbers
            that were tuned for AdamW alone.
        twin: the arm whose tuned numbers it uses, without tuning of its own.
        equal: whether it should give the results of its twin, but for noise.
        close: whether it should end within a few thousandths of a nat of another arm,
            which takes more seeds to tell.
        flat: whether the learning rate stays flat after the warm-up, because the method
            averages instead.
        needs: a module that it needs besides JAX.
        note: what a reader of the table should know.
    """

    name: str
    make: Callable[[Numbers], AnyTransformation]
    rate: float = 2e-3
    decay: float = _DECAY
    keeps_norms: bool = False
    rest: bool = False
    twin: str | None = None
    equal: bool = False
    close: bool = False
    flat: bool = False
    needs: str = ""
    note: str = ""


def _rest(n: Numbers) -> dict[str, Any]:
    """The options that all optimizers of matrices share."""
    return {
        "weight_decay": n.decay,
        "weight_decay_mask": _matrices,
        "stacked": STACKED,
        "adam_learning_rate": n.rest_rate,
        "adam_weight_decay": n.rest_decay,
        "adam_b1": _MOMENTUM,
        "adam_b2": _B2,
    }


def _adamw(n: Numbers, **options: Any) -> AnyTransformation:
    numbers = {"b2": _B2, "weight_decay": n.decay, "mask": _matrices}
    return steepest.adamw(n.rate, **numbers, **options)


def _optax_adamw(n: Numbers) -> AnyTransformation:
    import optax

    return optax.adamw(n.rate, b2=_B2, weight_decay=n.decay, mask=_matrices)


def _lion(n: Numbers, **options: Any) -> AnyTransformation:
    numbers = {"b2": _B2, "weight_decay": n.decay, "mask": _matrices}
    return steepest.lion(n.rate, **numbers, **options)


def _muon(n: Numbers, **options: Any) -> AnyTransformation:
    return steepest.muon(n.rate, _MOMENTUM, **_rest(n), **options)


def _soap(n: Numbers, frequency: int) -> AnyTransformation:
    return steepest.soap(n.rate, _MOMENTUM, frequency=frequency, **_rest(n))


def _muon_h(n: Numbers) -> AnyTransformation:
    return steepest.muon_h(
        n.rate,
        n.rest_rate,
        _MOMENTUM,
        stacked=STACKED,
        adam_b2=_B2,
        adam_weight_decay=n.rest_decay,
    )


def _adam_h(n: Numbers) -> AnyTransformation:
    return steepest.adam_h(
        n.rate, n.rest_rate, b2=_B2, stacked=STACKED, adam_weight_decay=n.rest_decay
    )


def _adafactor(n: Numbers) -> AnyTransformation:
    return steepest.adafactor(
        n.rate, weight_decay_rate=n.decay, weight_decay_mask=_matrices
    )


def _adam_mini(n: Numbers) -> AnyTransformation:
    return steepest.adam_mini(
        n.rate,
        b2=_B2,
        weight_decay=n.decay,
        weight_decay_mask=_matrices,
        stacked=STACKED,
        routes={"query|key": f"in out/{n.heads}"},
    )


def _decayed(n: Numbers, tx: AnyTransformation) -> AnyTransformation:
    return steepest.chain(
        tx,
        steepest.add_decayed_weights(n.decay, _matrices),
        steepest.scale_by_learning_rate(n.rate),
    )


def _cautious(n: Numbers) -> AnyTransformation:
    return _decayed(n, steepest.cautious(steepest.scale_by_adam(b2=_B2), descent=False))


def _mars(n: Numbers) -> AnyTransformation:
    inner = steepest.scale_by_adam(_MOMENTUM, _B2)
    return _decayed(n, steepest.mars(inner, b1=_MOMENTUM))


_HYPERBALL: dict[str, Any] = {
    "decay": 1.0,
    "keeps_norms": True,
    "rest": True,
    "note": "in place of the decay, the factor on the initial norms of its matrices",
}

ARMS = (
    Arm(ADAMW, _adamw, decay=_ADAM_DECAY),
    Arm(OPTAX, _optax_adamw, twin=ADAMW, equal=True, needs="optax"),
    Arm("adamw int8", lambda n: _adamw(n, memory_dtype="int8"), twin=ADAMW, equal=True),
    Arm(MUON, _muon, 4e-3, rest=True, close=True),
    Arm(
        "muon int8",
        lambda n: _muon(n, memory_dtype="int8"),
        rest=True,
        twin=MUON,
        equal=True,
    ),
    Arm(
        "soap",
        lambda n: _soap(n, 10),
        3e-3,
        rest=True,
        close=True,
        note="every 10th step",
    ),
    Arm(
        "normuon",
        lambda n: steepest.normuon(n.rate, _MOMENTUM, **_rest(n)),
        4e-3,
        rest=True,
        close=True,
    ),
    Arm("muon_h", _muon_h, 3e-2, close=True, **_HYPERBALL),
    Arm("lion", _lion, 5e-4, 9.0),
    Arm("lion int8", lambda n: _lion(n, memory_dtype="int8"), twin="lion", equal=True),
    Arm(
        "soap_muon",
        lambda n: steepest.soap_muon(n.rate, _MOMENTUM, frequency=10, **_rest(n)),
        4e-3,
        0.3,
        rest=True,
        close=True,
        note="every 10th step",
    ),
    Arm(
        "soap every step",
        lambda n: _soap(n, 1),
        rest=True,
        twin="soap",
        close=True,
        note="with the learning rate and the decay of soap",
    ),
    Arm(
        "shampoo",
        lambda n: steepest.shampoo(n.rate, **_rest(n)),
        3e-3,
        rest=True,
        note="step length of Adam",
    ),
    Arm("cautious adamw", _cautious, decay=_ADAM_DECAY),
    Arm("adam_mini", _adam_mini, decay=_ADAM_DECAY),
    Arm("mars adamw", _mars, 3e-3, _ADAM_DECAY),
    Arm("adam_h", _adam_h, 1e-2, **_HYPERBALL),
    Arm(
        "schedule-free adamw",
        lambda n: contrib.schedule_free_adamw(n.rate, b2=_B2, weight_decay=n.decay),
        5e-3,
        1e-2,
        flat=True,
        note="averages instead of decaying the learning rate; all leaves decay",
    ),
    Arm(
        "adafactor",
        _adafactor,
        3e-2,
        3e-3,
        note="decay is not multiplied by the learning rate",
    ),
    Arm("psgd", lambda n: steepest.psgd(n.rate, **_rest(n)), 3e-3, rest=True),
)


def arms_named(names: Sequence[str] | None, most: int | None = None) -> tuple[Arm, ...]:
    """The rows with these names and those they depend on, in the order of the table.

    Args:
        names: of arms; `None` for all.
        most: without names, the number of arms; `None` for all.
    """
    known = {arm.name: arm for arm in ARMS}
    if names is None:
        return ARMS[:most]
    wrong = [name for name in names if name not in known]
    if wrong:
        raise ValueError(
            f"suite: there is no arm {wrong[0]!r}. Expected some of: "
            f"{', '.join(known)}."
        )
    chosen = set(names)
    for arm in reversed(ARMS):
        if arm.name in chosen:
            chosen |= {arm.twin} if arm.twin else set()
            chosen |= {ADAMW} if arm.rest else set()
    return tuple(arm for arm in ARMS if arm.name in chosen)
