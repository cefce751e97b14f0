"""What a measurement leaves: the raw numbers, and what they say."""

from dataclasses import dataclass
from statistics import quantiles


@dataclass(frozen=True)
class Row:
    """One quantity of one optimizer on one tree, out of both libraries."""

    tree: str
    optimizer: str
    quantity: str
    unit: str  # "s" or "B"; less is better
    steepest: list[float]  # one number a round
    optax: list[float]

    @property
    def ratio(self) -> float:
        """Best of Optax over best of steepest: above 1 steepest is ahead."""
        return _over(min(self.optax), min(self.steepest))

    @property
    def spread(self) -> tuple[float, float]:
        """The middle half of the ratios, taken round by round."""
        pairs = zip(self.optax, self.steepest, strict=True)
        ratios = [_over(theirs, ours) for theirs, ours in pairs]
        if len(ratios) == 1:
            return ratios[0], ratios[0]
        low, _, high = quantiles(ratios, method="inclusive")
        return low, high


@dataclass(frozen=True)
class Traffic:
    """A step against the memory of the machine."""

    optimizer: str
    moved: int  # bytes a step cannot do without
    copied: int  # bytes of the plain `a + b`
    steepest: float  # seconds, best of all rounds, as are the next two
    optax: float
    copy: float


@dataclass(frozen=True)
class Bar:
    """What the project asks of one row."""

    tree: str
    optimizer: str
    quantity: str
    least: float
    or_noise: bool = False  # whether it is met when the spread reaches it

    def verdict(self, row: Row) -> str:
        """`met` or `short`."""
        if row.ratio >= self.least:
            return "met"
        reached = self.or_noise and row.spread[1] >= self.least
        return "met, within the spread" if reached else "short"


BARS = [
    Bar("deep", "clip+adamw", "trace", 4.0),
    Bar("deep", "clip+adamw", "eager update", 8.0),
    Bar("deep", "clip+adamw", "eager step", 8.0),
    Bar("wide", "clip+adamw", "step", 1.8),
    Bar("wide", "adamw", "step", 1.0, or_noise=True),
]


def _over(a: float, b: float) -> float:
    """`a / b`, and 1 where both are nothing."""
    if b:
        return a / b
    return float("inf") if a else 1.0
