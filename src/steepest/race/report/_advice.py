"""Which optimizer to use, in words and as code."""

from dataclasses import dataclass
from textwrap import indent

from .._averages import use_of
from .._breadth import Breadth
from .._choice import as_good, Criterion, in_order, separating
from .._outcome import Outcome
from .._standings import Standing, standings
from ..entrants import code_of, entrant
from ._numbers import at_rate, chance, listed, NOTHING, number, rate, seconds
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
        use: what else a program must do, as Python comments; mostly nothing.
    """

    row: Standing
    code: str | None
    why: str
    use: str = ""

    @property
    def line(self) -> str:
        """The code as an assignment, then `use`; empty without code."""
        return "" if self.code is None else f"tx = {self.code}\n{self.use}".strip()

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
            indent(line, "    ") if line.startswith("tx = ") else line
            for line in lines
            if line
        )


def recommendation(outcome: Outcome) -> Recommendation | None:
    """Which optimizer to use, and the second choice.

    Candidates are the best optimizer and those as good: the test finds no clear
    difference, and the mean lags behind by at most 2% of the way from the initial
    metric to the best. The cheapest candidate wins: by time to target, then time per
    step, then size of the state, then the breadth of good learning rates. A cost counts
    if it differs by more than 10%, and by more than its spread; times count if they are
    above twice their spread.

    Args:
        outcome: of a race.

    Returns:
        The recommendation; `None` if no optimizer has results, or none improved on the
        initial metric.
    """
    rows = standings(outcome)
    order = in_order(outcome, rows)
    if not order:
        return None
    first, *more = order
    second = None
    if more:
        why = _why_second(outcome, more[0], first)
        second = _choice(outcome, more[0], why)
    why = _why_first(outcome, rows, first)
    return Recommendation(_choice(outcome, first, why), second)


def _choice(outcome: Outcome, row: Standing, why: str) -> Choice:
    text = outcome.written.get(row.name, row.name)
    if text is None:  # passed as an object
        return Choice(row, None, why)
    rate, how = row.rate, {"steps": row.sweep.planned, "schedule": outcome.schedule}
    try:
        code = code_of(text, rate=rate, **how)
        tx = entrant(text, **how).make(1e-3 if rate is None else rate)
    except ValueError:  # a sweep made by hand
        return Choice(row, None, why)
    return Choice(row, code, why, use_of(tx))


def _why_first(outcome: Outcome, rows: list[Standing], first: Standing) -> str:
    best, *others = rows
    equals = [r for r in as_good(outcome, rows) if r is not first]
    why = _result(outcome, first)
    if not others:
        why += "; no other optimizer ran"
    elif not equals:
        unclear = [r.name for r in others if r.verdict == "no clear difference"]
        may = f"the best mean; {listed(unclear)} may be as good"
        why += f", {may if unclear else beaten(others)}"
    elif first is best:
        names = listed([r.name for r in equals])
        why += f", the best mean; no clear difference from {names}"
        why += _reason(first, equals)
    else:
        bar = number(best.metric, best.spread)
        why += f"; no clear difference from {best.name} ({bar})"
        why += _reason(first, [best])
    return " ".join([f"{why}.", *_caveats(first)])


def beaten(others: list[Standing]) -> str:
    """What happened to optimizers that all are worse than the best, or diverged.

    Args:
        others: the optimizers.
    """
    worse = [row.name for row in others if row.verdict == "worse"]
    gone = [row.name for row in others if row.verdict == "diverged"]
    if not gone:
        return "significantly better than every other"
    if not worse:
        return (
            "while every other diverged"
            if len(gone) > 1
            else f"while {gone[0]} diverged"
        )
    return f"significantly better than {listed(worse)}, while {listed(gone)} diverged"


def _why_second(outcome: Outcome, row: Standing, first: Standing) -> str:
    quality = {
        "best": "the best mean",
        "no clear difference": "no clear difference from the best",
        "worse": f"significantly worse ({chance(row.p)})",
        "diverged": "",
    }[row.verdict]
    why = f"{_result(outcome, row)}, {quality}"
    if (apart := separating(row, first)) is not None:
        criterion, dearer = apart
        join = "and" if dearer == (row.verdict == "worse") else "but"
        why += f", {join} {_compared(criterion, row, first, dearer)}"
    return " ".join([f"{why}.", *_caveats(row)])


def _reason(first: Standing, others: list[Standing]) -> str:
    """Why the first is preferred to others that are as good; may be empty."""
    apart = [(other, separating(first, other)) for other in others]
    for other, found in apart:
        if found is not None and not found[1]:
            whose = f" for {other.name}" if len(others) > 1 else ""
            return f", but {_compared(found[0], first, other, False)}{whose}"
    if any(found is not None for _, found in apart):
        return ""  # a third one, which is cheaper than the others, ruled them out
    return ", and none is clearly cheaper"


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
        return target_text(row)
    if name == "time per step":
        return step_text(row)
    if name == "state":
        return f"{row.sweep.bytes_per_param:.3g}"
    return breadth_text(row.breadth)


def step_text(row: Standing) -> str:
    """The time per step, or a bound if it is not above the noise.

    Args:
        row: an optimizer.
    """
    if row.sweep.timed:
        return seconds(row.sweep.step_seconds, row.sweep.step_spread)
    return _below(row, 1.0)


def target_text(row: Standing) -> str:
    """The time to the target, likewise.

    Args:
        row: an optimizer.
    """
    if row.sweep.timed or row.steps_to_target is None:
        return seconds(row.seconds_to_target, row.seconds_spread)
    return _below(row, row.steps_to_target)


def _below(row: Standing, steps: float) -> str:
    """A bound for the time of some steps."""
    most = steps * (row.sweep.step_seconds + row.sweep.step_spread)
    return f"< {seconds(most)}" if most > 0 else NOTHING


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
