"""The numbers of a race as rows: for JSON, CSV and pandas."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from math import isfinite

from .._files import to_json
from .._outcome import Outcome
from .._standings import Standing, standings
from .._visible import visible

Record = dict[str, object]


def standing_records(outcome: Outcome) -> list[Record]:
    """A row for each optimizer, best first: all numbers of the table.

    Args:
        outcome: of a race.
    """
    return [_row(row) for row in standings(outcome)]


def curve_records(outcome: Outcome) -> list[Record]:
    """A row for each evaluation of each run, until halving has stopped it.

    Args:
        outcome: of a race.
    """
    records: list[Record] = []
    for sweep in outcome.sweeps:
        for r, rate in enumerate(sweep.rates):
            stopped = {"stopped_at": sweep.stopped[r]} if sweep.stopped else {}
            for s, seed in enumerate(sweep.seeds):
                for t in range(sweep.last[r] + 1):
                    records.append(
                        {
                            "optimizer": sweep.name,
                            "learning_rate": rate,
                            "seed": seed,
                            "step": sweep.steps[t],
                            "seconds": float(sweep.run_seconds[t]),
                            "loss": float(sweep.loss[r, s, t]),
                            "metric": float(sweep.metric[r, s, t]),
                            **stopped,
                        }
                    )
    return records


def flat(record: Mapping[str, object]) -> Record:
    """A row without nested values: `breadth.low` becomes `breadth_low`.

    Args:
        record: a row.
    """
    result: Record = {}
    for name, x in record.items():
        if isinstance(x, dict):
            result |= {f"{name}_{key}": y for key, y in x.items()}
        else:
            result[name] = x
    return result


def as_csv(records: Sequence[Mapping[str, object]]) -> str:
    """Rows as CSV; a missing number is an empty cell.

    Args:
        records: the rows.
    """
    rows = [flat(record) for record in records]
    names = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(x) for name, x in row.items()})
    return file.getvalue()


def _cell(x: object) -> object:
    if isinstance(x, str):
        return visible(x)
    missing = x is None or (isinstance(x, float) and not isfinite(x))
    return "" if missing else x


def _row(row: Standing) -> Record:
    head = {"name": row.name, "learning_rate": row.rate}
    own = {f.name: to_json(getattr(row, f.name)) for f in fields(Standing)[2:]}
    if row.breadth is not None:
        own["breadth"] = {**asdict(row.breadth), "factor": row.breadth.factor}
    step = {
        "step_seconds": row.sweep.step_seconds,
        "step_spread": to_json(row.sweep.step_spread),
    }
    memory = {"bytes_per_param": row.sweep.bytes_per_param}
    return {**head, **own, **step, **memory}
