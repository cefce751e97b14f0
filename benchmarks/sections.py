"""Tables of single sections: one line for each contender, not a ratio between two."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import mean, stdev

from .rows import COPY, OURS, Row
from .table import amount, markdown

Cells = dict[tuple[str, str, str], dict[str, Row]]  # (tree, optimizer, who) -> rows


def _by_name(rows: Iterable[Row]) -> Cells:
    """`_cells` in the order of trees and optimizers, whatever was measured last."""
    return dict(sorted(_cells(rows).items(), key=lambda cell: cell[0][:2]))


def _cells(rows: Iterable[Row]) -> Cells:
    """The rows of each contender, by quantity."""
    cells: Cells = {}
    for row in rows:
        for who in row.times:
            if who != COPY:
                line = cells.setdefault((row.tree, row.optimizer, who), {})
                line[row.quantity] = row
    return cells


def _best(line: dict[str, Row], who: str, quantity: str) -> float | None:
    return line[quantity].best(who) if quantity in line else None


def memory(rows: list[Row], params: dict[str, int]) -> str:
    """Time, bandwidth and bytes per param of each optimizer.

    Args:
        rows: those of the section.
        params: the number of params of each tree.
    """
    head = "tree|optimizer|what|step|on the device|bandwidth|of a copy"
    bytes_ = ("weights", "state", "temporary")
    lines = []
    for (tree, optimizer, who), line in _by_name(rows).items():
        shown = [
            "" if x is None else f"{1e3 * x:.2f} ms"
            for x in (_best(line, who, quantity) for quantity in ("step", "device"))
        ]
        rate = line["bandwidth"]
        shown += [
            amount(rate.best(who), "B/s"),
            f"{rate.best(who) / rate.best(COPY):.0%}",
        ]
        for quantity in bytes_:
            x = _best(line, who, quantity)
            shown.append("" if x is None else f"{x / params[tree]:.2f}")
        lines.append([tree, optimizer, who, *shown])
    return markdown([*head.split("|"), *bytes_], lines)


def matrix(rows: list[Row]) -> str:
    """The median and the worst step of each optimizer of matrices.

    Optax's AdamW was measured beside each of them: its best call is the first line of
    a tree. Columns without numbers are left out.

    Args:
        rows: those of the section.
    """
    head = ["tree", "optimizer", "library", "median", "of Muon's", "worst"]
    head += ["worst / median", "in a row", "on the device", "worst / median there"]
    head += ["compile", "note"]
    cells = _with_one_adamw(_by_name(rows))
    lines = []
    for (tree, optimizer, who), line in cells.items():
        best = {quantity: row.best(who) for quantity, row in line.items()}
        ratio = lambda a, b, best=best: f"{best[a] / best[b]:.2f}" if a in best else ""
        muon = cells.get((tree, "muon", OURS))
        share = f"{best['median'] / muon['median'].best(OURS):.2f}" if muon else ""
        shown = [_shown(best, "median", "s"), share, _shown(best, "worst", "s")]
        shown += [ratio("worst", "median")]
        shown += [_shown(best, x, "s") for x in ("in a row", "device")]
        shown += [ratio("device, worst", "device"), _shown(best, "compile", "s")]
        note = line["median"].note if who == OURS else ""
        lines.append([tree, optimizer, who, *shown, note])
    told = [k for k, cells in enumerate(zip(*lines, strict=True)) if any(cells)]
    few = [[line[k] for k in told] for line in (head, *lines)]
    return markdown(few[0], few[1:])


_ADAMW = "optax adamw"  # the name of a contender


def _with_one_adamw(cells: Cells) -> Cells:
    """Each tree begins with Optax's AdamW, where its median is the least."""
    found: Cells = {}
    for tree in dict.fromkeys(tree for tree, _, _ in cells):
        here = {key: line for key, line in cells.items() if key[0] == tree}
        adamw = [line for key, line in here.items() if key[2] == _ADAMW]
        if adamw:
            best = min(adamw, key=lambda line: line["median"].best(_ADAMW))
            # Its rows have the times of other contenders, too.
            found[tree, "adamw", "optax"] = {
                name: replace(row, times={"optax": row.times[_ADAMW]})
                for name, row in best.items()
            }
        found |= {key: line for key, line in here.items() if key[2] != _ADAMW}
    return found


def peak(rows: list[Row]) -> Iterator[str]:
    """The bytes of a training step, and their shares of the peak.

    Args:
        rows: those of the section.
    """
    head = "optimizer|what|peak|of Optax's|weights|state|gradients|other|between steps"
    head += "|temporary|step|first loss|loss"
    lines, shares = [], []
    cells = _cells(rows)
    optax = next(
        (
            _best(line, "optax", "peak")
            for key, line in cells.items()
            if key[2] == "optax"
        ),
        None,
    )
    parts = ("weights", "state", "gradients")
    for (_, optimizer, who), line in cells.items():
        best = {quantity: row.best(who) for quantity, row in line.items()}
        most = best.get("peak")
        if most is not None:
            best["other"] = most - sum(best[part] for part in parts)
        if most is not None and who == OURS:
            share = [f"{part} {best[part] / most:.0%}" for part in (*parts, "other")]
            shares.append(f"- {optimizer}: {', '.join(share)}")
        if "rest" in best:
            best["between steps"] = best["rest"]
        said = [f"{most / optax:.0%}" if most and optax else ""]
        said = [_shown(best, "peak"), *said]
        said += [
            _shown(best, x) for x in (*parts, "other", "between steps", "temporary")
        ]
        said += [_shown(best, "step", "s")]
        said += [_shown(best, x, "nats") for x in ("first loss", "loss")]
        lines.append([optimizer, who, *said])
    yield markdown(head.split("|"), lines)
    yield "Shares of the peak:"
    yield "\n".join(shares)


def _shown(best: dict[str, float], quantity: str, unit: str = "B") -> str:
    x = best.get(quantity)
    return "" if x is None else amount(x, unit)


def low_bits(rows: list[Row]) -> str:
    """The paired differences to float32.

    Args:
        rows: those of the section.
    """
    head = "tree|optimizer|float32|deviation|difference|error|verdict|seeds|note"
    lines = []
    for row in rows:
        wide = row.times["float32"]
        apart = [x - y for x, y in zip(row.times[OURS], wide, strict=True)]
        error = stdev(apart) / len(apart) ** 0.5
        away = abs(mean(apart)) / error if error else 0.0
        side = "below" if mean(apart) < 0 else "above"
        verdict = "within one error" if away <= 1 else f"{away:.1f} errors {side}"
        shown = [f"{mean(wide):.4f}", f"{stdev(wide):.4f}"]
        shown += [f"{mean(apart):+.4f}", f"{error:.4f}", verdict]
        lines.append([row.tree, row.optimizer, *shown, str(row.rounds), row.note])
    return markdown(head.split("|"), lines)


def racing(rows: list[Row]) -> str:
    """What a race of a larger model cost, a row for each optimizer.

    Args:
        rows: those of the section.
    """
    head = (
        "optimizer|params|runs|at once|compile|steps|all runs|step of one run|"
        "state per param|best"
    )
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row.optimizer, {})[row.quantity] = row

    def cell(row: Row) -> str:
        x = row.best(OURS)
        if row.unit == "s":
            return amount(x, row.unit)
        return f"{x:.2f} {row.unit}" if row.unit else f"{int(x):,}"

    names = head.split("|")
    lines = [
        [f"`{name}`", *(cell(line[x]) if x in line else "" for x in names[1:])]
        for name, line in found.items()
    ]
    return markdown(names, lines)
