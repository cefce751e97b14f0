"""`python -m benchmarks.report`: of the results kept, `docs/performance.md`.

Nothing on the page is written by hand but what explains the numbers, and that says
nothing that another run could make untrue.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from .rows import COPY, OURS, Record, Row
from .table import amount, markdown, spread, times

ROOT = Path(__file__).parent.parent
RESULTS, PAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "performance.md"
Records = Mapping[str, Record]  # by the name of the file

INTRO = """\
# Performance

Made by `python -m benchmarks.report` from the runs kept in `benchmarks/results`; every
number of every round is there. Measure yourself:

```
make bench                                    # ten to fifteen minutes on two cores
.venv/bin/python -m benchmarks --only wide    # some of it; --list shows the lines
.venv/bin/python -m benchmarks --quick        # does it run? Its numbers say nothing
```

The contenders run in the same process, in turns, after warming up; on the CPU, steps
that do not give the same numbers are not compared. A ratio is best against best:
**above 1 steepest is ahead**. In brackets is the middle half of the ratios, round by
round; where it is wide, the machine was busy. Bold is behind."""

# Section -> its title, and what its numbers are.
SECTIONS = {
    "python": (
        "Python and the compiler",
        "Trace and lower: update and apply, with all of JAX's caches cleared and a "
        "learning rate never used before, as in a new process. Compile: by XLA. Eager: "
        "outside `jit`.",
    ),
    "step": (
        "The compiled step",
        "Update and apply, params and state donated. Bandwidth: the bytes a step must "
        "move at least (params, gradients and state read once, params and state "
        "written once) over the time it took, and its share of what a plain `a + b` "
        "into `a` reaches in the same rounds; Muon computes more than it moves. "
        "Temporary: what XLA sets aside besides. Copied: buffers that the compiled "
        "program copies as they are. Bytes: steepest, then Optax where it differs.",
    ),
    "gpu": (
        "The compiled step on a GPU",
        "As above; the clock shows one of many steps called in a row and waited for at "
        "the end, and inside: one of ten in one compiled function. Packed: params, "
        "gradients and state, their small leaves in one vector. torch: its fused "
        "AdamW, and its Muon. Muon: each library's own; contrib.muon: the same numbers "
        "in both.",
    ),
    "every": (
        "Every optimizer, with its defaults",
        "The compiled step again, for whatever both libraries have. Shampoo, SOAP and "
        "Kron are compared as soon as both have one.",
    ),
    "minimise": (
        "L-BFGS on small problems",
        "From the first start until the gradient is small, in float64, compiled "
        "before. In a loop: one compiled loop. Step by step: a loop of Python over "
        "`make_train_step`. scipy: L-BFGS-B with a gradient by hand in NumPy; "
        "scipy+jax: with a compiled one.",
    ),
    "profile": (
        "Where the time of clip + AdamW goes",
        "A stream is one pass over an array as large as all params. The last column is "
        "the share of the speed at which the plain `a + b` moves its three streams.",
    ),
}


def page(records: Records) -> str:
    """All of `docs/performance.md`."""
    return "\n\n".join([INTRO, body(records)]) + "\n"


def body(records: Records) -> str:
    """Bars, what is behind, and all numbers, for any number of runs."""
    if not records:
        return "No run is kept yet."
    parts = []
    if full := {name: x for name, x in records.items() if not x.quick}:
        parts += ["## The bars", _bars(full), "## Behind", _behind(full)]
    for name, record in records.items():
        parts += [f"## {name}: {record.machine['device']}", *_details(record)]
    return "\n\n".join(parts)


def _bars(records: Records) -> str:
    """Every bar, beside the worst of the rows it is about."""
    head = "run|tree|optimizer|quantity|against|wanted|found|spread|worst on|verdict"
    lines = []
    for run, record in records.items():
        for bar in record.bars:
            found = ["", "", ""]
            if rows := bar.rows(record.rows):
                worst = rows[0]
                found = [
                    f"{worst.ratio(bar.against):.2f}",
                    spread(worst, bar.against),
                    f"{worst.tree}, {worst.optimizer}" if len(rows) > 1 else "",
                ]
            name = [run, bar.tree, bar.optimizer, bar.quantity, bar.against]
            verdict = bar.verdict(record.rows)
            name = ["all" if part == "*" else part for part in name]
            lines.append([*name, f"{bar.least:.2f}", *found, verdict])
    met = sum(line[-1] == "met" for line in lines)
    says = f"What the project asks of itself: {met} of {len(lines)} met."
    return f"{says}\n\n{markdown(head.split('|'), lines)}"


def _behind(records: Records) -> str:
    """Every line where some library is ahead of steepest, the worst first."""
    head = "run|tree|optimizer|quantity|against|ratio|spread|steepest|other|beside it"
    found = []
    for run, record in records.items():
        for row in record.rows:
            if row.unit == "B/s":  # its "s" is there already
                continue
            for who in row.others:
                if who != COPY and row.ratio(who) < 1:
                    best = [amount(row.best(x), row.unit) for x in (OURS, who)]
                    name = [run, row.tree, row.optimizer, row.quantity, who]
                    much = [times(row.ratio(who)), spread(row, who), *best]
                    line = [*name, *much, _beside(row, who, record.rows)]
                    found.append((row.ratio(who), line))
    if not found:
        return "Nothing."
    lines = [line for _, line in sorted(found, key=lambda pair: pair[0])]
    compared = sum(
        row.unit != "B/s" and who != COPY
        for record in records.values()
        for row in record.rows
        for who in row.others
    )
    says = f"{len(lines)} of {compared} comparisons."
    return f"{says}\n\n{markdown(head.split('|'), lines)}"


def _beside(row: Row, who: str, rows: Iterable[Row]) -> str:
    """What the same run knows that may explain a line."""
    said = []
    if row.rounds > 1 and row.reaches(who, 1.0):
        said.append("the spread reaches 1")
    cell = lambda row: (row.section, row.tree, row.optimizer)
    for other in rows:
        if row.quantity != "step" or cell(other) != cell(row) or who not in other.times:
            continue
        if other.quantity == "bandwidth" and COPY in other.times:
            ours, theirs = (other.best(x) / other.best(COPY) for x in (OURS, who))
            said.append(f"{ours:.0%} of a copy's bandwidth, {who} {theirs:.0%}")
        if other.quantity in ("copied", "temporary") and other.ratio(who) < 1:
            said.append(f"more bytes {other.quantity}")
    return "; ".join(said)


def _details(record: Record) -> Iterator[str]:
    """Where it was, on what, and every section."""
    if record.quick:
        yield "**A quick run on tiny trees: its numbers say nothing.**"
    machine = {"made by": f"`{record.command}`", **record.machine}
    yield "\n".join(f"- {name}: {what}" for name, what in machine.items())
    trees = [
        [name, tree["says"], f"{tree['leaves']:,}", f"{tree['params']:,}"]
        for name, tree in record.trees.items()
    ]
    if trees:
        yield markdown(["tree", "what", "leaves", "params"], trees)
    for section in dict.fromkeys(row.section for row in record.rows):
        title, text = SECTIONS.get(section, (section.capitalize(), ""))
        rows = [row for row in record.rows if row.section == section]
        yield f"### {title}"
        if text:
            yield text
        if section == "profile":
            yield from _profile(rows)
        else:
            yield _ratios(rows)
    yield "### All times"
    yield "The best of all rounds of each."
    yield _all_times([row for row in record.rows if row.unit == "s"])


def _ratios(rows: list[Row]) -> str:
    """A line for each optimizer on a tree, a column for each quantity."""
    columns = dict.fromkeys(
        (row.quantity, who) for row in rows for who in _compared(row)
    )
    several = len({who for _, who in columns if who}) > 1
    head = [f"{x}, {who}" if several and who else x for x, who in columns]
    cells: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for row in rows:
        line = cells.setdefault((row.tree, row.optimizer), {})
        line |= {(row.quantity, who): _cell(row, who) for who in _compared(row)}
    lines = [
        [*name, *(line.get(column, "") for column in columns)]
        for name, line in cells.items()
    ]
    return markdown(["tree", "optimizer", *head], lines)


def _compared(row: Row) -> list[str]:
    """The contenders that have a column of their own; bytes share one."""
    return [who for who in row.others if who != COPY] if row.unit == "s" else [""]


def _cell(row: Row, who: str) -> str:
    ours = amount(row.best(OURS), row.unit)
    if row.unit == "B/s":
        return f"{ours}, {row.ratio(COPY):.0%}" if COPY in row.times else ours
    if row.unit == "B":
        theirs = [amount(row.best(other), "B") for other in row.others]
        differs = [x for x in dict.fromkeys(theirs) if x != ours]
        behind = any(row.ratio(other) < 1 for other in row.others)
        return " / ".join([f"**{ours}**" if behind else ours, *differs])
    ratio = times(row.ratio(who))
    around = spread(row, who)
    ratio = f"**{ratio}**" if row.ratio(who) < 1 else ratio
    return f"{ratio} ({around})" if around else ratio


def _profile(rows: list[Row]) -> Iterator[str]:
    """Loop by loop; and what that says about the whole."""
    lines = []
    for row in rows:
        share = f"{row.ratio(COPY):.0%}" if COPY in row.times else ""
        theirs = amount(row.best("optax"), "s") if "optax" in row.times else ""
        ours = amount(row.best(OURS), "s")
        lines.append([row.optimizer, row.note, ours, theirs, share])
    yield markdown(["what", "streams", "time", "Optax", "of a copy"], lines)
    named = {row.optimizer: row for row in rows}
    whole, parts = named.get("the whole step"), named.get("the four in sum")
    if whole and parts:
        ms = lambda x: f"{1e3 * x:.1f} ms"
        floor = whole.best(COPY)
        yield (
            f"The loops alone take {ms(parts.best(OURS))} in sum, the whole step "
            f"{ms(whole.best(OURS))}. At the speed of the plain `a + b`, the 11 "
            "streams of one loop for each result, as XLA makes them, would take "
            f"{ms(floor)}; the 8 streams of one loop for all results "
            f"{ms(floor * 8 / 11)}."
        )


def _all_times(rows: list[Row]) -> str:
    who = list(dict.fromkeys(who for row in rows for who in row.times))
    lines = [
        [
            row.tree,
            row.optimizer,
            row.quantity,
            *(amount(row.best(x), "s") if x in row.times else "" for x in who),
            str(row.rounds),
            row.note,
        ]
        for row in rows
    ]
    return markdown(["tree", "optimizer", "quantity", *who, "rounds", "note"], lines)


def kept() -> dict[str, Record]:
    """The runs in `benchmarks/results`, by the names of their files."""
    return {path.stem: Record.load(path) for path in sorted(RESULTS.glob("*.json"))}


if __name__ == "__main__":
    PAGE.write_text(page(kept()))
