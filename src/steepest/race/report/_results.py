"""A race as JSON."""

import json

from .._files import to_json
from .._outcome import Outcome
from ._advice import Choice, recommendation
from ._records import standing_records


def results(outcome: Outcome, digits: int | None = None) -> str:
    """A race as JSON: the table, and all numbers behind it.

    NaN, as in diverged runs, is `null`.

    Args:
        outcome: of a race.
        digits: significant digits; by default all.
    """
    head = ("problem", "about", "measure", "better", "target", "machine")
    content = {
        **{name: getattr(outcome, name) for name in head},
        "schedule": outcome.schedule,
        "halving": outcome.halving,
        "recommendation": _advice(outcome),
        "standings": standing_records(outcome),
        "remarks": list(outcome.remarks),
        "missing": [{"name": name, "why": why} for name, why in outcome.missing],
        "sweeps": [to_json(sweep) for sweep in outcome.sweeps],
    }
    if digits is not None:
        return json.dumps(_rounded(content, digits), allow_nan=False) + "\n"
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _advice(outcome: Outcome) -> dict[str, object] | None:
    """The recommendation, with the second choice."""
    advice = recommendation(outcome)
    if advice is None:
        return None
    choices = {"first": advice.first, "second": advice.second}
    return {key: x and _choice(x) for key, x in choices.items()}


def _choice(choice: Choice) -> dict[str, object]:
    return {
        "name": choice.row.name,
        "learning_rate": choice.row.rate,
        "code": choice.code,
        "use": choice.use,
        "why": choice.why,
    }


def _rounded(x: object, digits: int) -> object:
    """Round all floats in lists and dicts."""
    if isinstance(x, float):
        return float(f"{x:.{digits}g}")
    if isinstance(x, list):
        return [_rounded(y, digits) for y in x]
    return {k: _rounded(y, digits) for k, y in x.items()} if isinstance(x, dict) else x
