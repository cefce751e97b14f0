"""Which optimizer to use, in words and as code."""

from dataclasses import dataclass

from .._breadth import Breadth
from .._choice import as_good, CRITERIA, Criterion, in_order
from .._outcome import Outcome
from .._standings import Standing, standings
from ..entrants import code_of
from ._numbers import at_rate, chance, listed, number, rate, seconds
from ._stopped import caution

_TIMES = "\N{MULTIPLICATION SIGN}"
# What to say of an optimizer that is cheaper, and of one that is more expensive.
_WORDS: dict[str, tuple[str, str]] = {
    "time to target": ("it reaches the target sooner", "it reaches the target later"),
    "time per step": ("its steps are faster", "its steps are slower"),
    "state": ("its state is smaller", "its state is larger"),
    "rates": (
        "its learning rate is more forgiving",
        "its learning rate is less forgiving",
    ),
}
_UNITS = {"state": " bytes per parameter", "rates": " between the good rates"}


@dataclass(frozen=True)
class Choice:
    """An optimizer that is recommended.

    Attributes:
        row: the optimizer at its best learning rate.
        code: Python code that makes it, such as `steepest.adamw(1e-2)`; `None` if its
            name is not an expression.
        why: the reasons, in a sentence or two.
    """

    row: Standing
    code: str | None
    why: str

    @property
    def line(self) -> str:
        """The code as an assignment; empty without code."""
        return "" if self.code is None else f"tx = {self.code}"

    @property
    def title(self) -> str:
        """The optimizer and its learning rate."""
        return f"{self.row.name}{at_rate(self.row.rate)}"


@dataclass(frozen=True)
class Recommendation:
    """Which optimizer to use, and the second choice.

    `str` of it is the text that `steepest race` prints.

    Attributes:
        first: the optimizer to use.
        second: the second choice; `None` if no other optimizer has results.
    """

    first: Choice
    second: Choice | None

    def __str__(self) -> str:
        lines = [f"Use {self.first.title}: {self.first.why}", self.first.line]
        if self.second is not None:
            lines += [f"Second choice: {self.second.title}: {self.second.why}"]
            lines += [self.second.line]
        return "\n".join(
            f"    {line}" if line.startswith("tx = ") else line
            for line in lines
            if line
        )


def recommendation(outcome: Outcome) -> Recommendation | None:
    """Which optimizer to use, and the second choice.

    Candidates are the best optimizer and those as good: the test finds no clear
    difference, and the mean lags behind by at most 2% of the way from the initial
    metric to the best. The cheapest candidate wins: by time to target, then time per
    step, then size of the state, then the breadth of good learning rates. A cost counts
    if it differs by more than 10%, and by more than its spread.

    Args:
        outcome: of a race.

    Returns:
        The recommendation; `None` if no optimizer has results.
    """
    rows = standings(outcome)
    order = in_order(outcome, rows)
    if not order:
        return None
    (first, dropped), *more = order
    second = None
    if more:
        row = more[0][0]
        second = Choice(row, _code(outcome, row), _why_second(outcome, row, first))
    why = _why_first(outcome, rows, first, dropped)
    return Recommendation(Choice(first, _code(outcome, first), why), second)


def _code(outcome: Outcome, row: Standing) -> str | None:
    text = outcome.written.get(row.name, row.name)
    if text is None:  # passed as an object
        return None
    try:
        return code_of(
            text, rate=row.rate, steps=row.sweep.planned, schedule=outcome.schedule
        )
    except ValueError:  # a sweep made by hand
        return None


def _why_first(
    outcome: Outcome,
    rows: list[Standing],
    first: Standing,
    dropped: dict[str, Criterion],
) -> str:
    best = rows[0]
    equals = [r for r in as_good(outcome, rows) if r is not first]
    result = _result(outcome, first)
    if len(rows) == 1:
        why = f"{result}; no other optimizer ran."
    elif not equals:
        unclear = [r.name for r in rows if r.verdict == "no clear difference"]
        why = f"{result}, significantly better than every other."
        if unclear:
            why = f"{result}, the best mean; {listed(unclear)} may be as good."
    elif first is best:
        names = listed([r.name for r in equals])
        reason = _reason(first, equals[0], dropped.get(equals[0].name))
        why = f"{result}, the best mean; no clear difference from {names}, {reason}."
    else:
        reason = _reason(first, best, dropped.get(best.name))
        bar = number(best.metric, best.spread)
        why = f"{result}; no clear difference from {best.name} ({bar}), {reason}."
    return " ".join([why, *_caveats(first)])


def _why_second(outcome: Outcome, row: Standing, first: Standing) -> str:
    quality = {
        "best": "the best mean",
        "no clear difference": "no clear difference from the best",
        "worse": f"significantly worse ({chance(row.p)})",
        "diverged": "",
    }[row.verdict]
    why = f"{_result(outcome, row)}, {quality}"
    for criterion in CRITERIA:
        dearer = criterion.clearly(row, first)
        if dearer or criterion.clearly(first, row):
            join = "and" if dearer == (row.verdict == "worse") else "but"
            why += f", {join} {_compared(criterion, row, first, dearer)}"
            break
    return " ".join([f"{why}.", *_caveats(row)])


def _reason(first: Standing, other: Standing, why: Criterion | None) -> str:
    """Why the first is preferred to another one that is as good."""
    if why is None:
        return "and none is clearly cheaper"
    return f"but {_compared(why, first, other, False)}"


def _compared(criterion: Criterion, a: Standing, b: Standing, dearer: bool) -> str:
    """The costs of two optimizers, in words."""
    name = criterion.name
    if name == "time to target" and None in (a.seconds_to_target, b.seconds_to_target):
        never = "not every seed of it reaches" if dearer else "every seed of it reaches"
        return f"{never} the target" + ("" if dearer else f", unlike {b.name}")
    costs = f"{_cost(name, a)} against {_cost(name, b)}{_UNITS.get(name, '')}"
    return f"{_WORDS[name][dearer]}: {costs}"


def _cost(name: str, row: Standing) -> str:
    if name == "time to target":
        return seconds(row.seconds_to_target, row.seconds_spread)
    if name == "time per step":
        return seconds(row.sweep.step_seconds, row.sweep.step_spread)
    if name == "state":
        return f"{row.sweep.bytes_per_param:.3g}"
    return breadth_text(row.breadth)


def breadth_text(breadth: Breadth | None) -> str:
    """The breadth of good learning rates, as a factor.

    Args:
        breadth: of an optimizer, or `None`.

    >>> breadth_text(Breadth(1e-3, 9e-3, open=False)) == f"{_TIMES}9.0"
    True
    """
    if breadth is None:
        return "\N{EN DASH}"
    factor = breadth.factor
    text = f"{factor:.1f}" if factor < 9.95 else f"{factor:,.0f}"
    return f"{'≥ ' if breadth.open or breadth.cut else ''}{_TIMES}{text}"


def _result(outcome: Outcome, row: Standing) -> str:
    return f"{outcome.measure} {number(row.metric, row.spread)}"


def _caveats(row: Standing) -> list[str]:
    """What may make the choice wrong."""
    notes = []
    if len(row.sweep.seeds) == 1:
        notes.append("With one seed, this may be chance.")
    if row.edge:
        highest = row.rate == max(r for r in row.sweep.rates if r is not None)
        end, other = ("highest", "higher") if highest else ("lowest", "lower")
        notes.append(f"{rate(row.rate)} is the {end} rate tried: try {other} ones too.")
    if row.beside:
        notes.append(f"Halving: {caution(row)}")
    if not row.sweep.finished:
        notes.append("It was stopped early.")
    return notes
