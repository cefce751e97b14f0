"""How well optimizers fit text that they have read, for the page of the suite."""

from collections.abc import Mapping, Sequence
from math import exp, inf

from steepest.race.suite import Line, Record, Table
from steepest.race.suite._members import CURVE
from steepest.race.suite._protocol import FINAL, SEEDS
from steepest.race.suite._statistics import Paired, paired

from .sizes import listed
from .table import markdown

Ends = Mapping[str, Sequence[float]]  # "training" or "held-out" -> losses, per seed
Fits = Mapping[str, Ends]  # by the names of the texts
TEXTS = "new", "repeated"
TIMES = 3.2  # how often the second is read
_COMPARED = "adamw", "soap", "soap_muon", "muon_h"  # with Muon
_MORE = "soap every step", "normuon"  # in a suite
_FEW = 0.1  # the share of text read before that is worth a remark


def repeated(record: Record, table: Table) -> str:
    """Who fits the text better than Muon, where runs read much of it more than once.

    Args:
        record: of a suite.
        table: of it.
    """
    size, muon = record.size, table.line("muon")
    many = size["steps"] * size["batch"] * size["places"] / record.train_bytes
    before = 1 - exp(-many)  # batches are taken at random places
    names = [*_COMPARED, *_MORE]
    lines = [line for line in map(table.line, names) if line is not None]
    if before < _FEW or muon is None or not lines:
        return ""
    parts, fitted = [], []
    for line in lines:
        training, held_out = _apart(_ends(record, line), _ends(record, muon))
        if training is None or held_out is None:
            continue
        parts.append(f"{line.name} {training} and {held_out}")
        if training.mean < held_out.mean - 2 * max(training.error, held_out.error):
            fitted.append(line.name)
    if not parts:
        return ""
    said = (
        f"**Text read before**: a run reads {many:.2g} times as many bytes as its text "
        f"has, at random places, so it has read {before:.0%} of the last ones before. "
        f"Differences from Muon in the loss of the last 1/{CURVE} of the training, and "
        f"of held-out text ({len(SEEDS)} seeds): {'; '.join(parts)}."
    )
    if fitted:
        verb = "is" if len(fitted) == 1 else "are"
        said += (
            f" So {listed(fitted)} {verb} further behind Muon, or less ahead of it, on "
            "new text than on text that was partly read before, which points to "
            "overfitting rather than slow training."
        )
    return said


def _decays(table: Table) -> str:
    """The weight decays of the optimizers that are compared here.

    Args:
        table: of the suite that chose them.
    """
    lines = [table.line(name) for name in ("muon", *_COMPARED)]
    known = [
        f"{line.name} {line.entry.tuned.decay:.2g}"
        for line in lines
        if line and line.entry.tuned and not line.arm.keeps_norms
    ]
    return f" Weight decays: {', '.join(known)}." if known else ""


def with_less_text(found: Mapping[str, Fits], table: Table) -> str:
    """What the table of `table_of_texts` is, or nothing.

    Args:
        found: the losses of `python -m benchmarks.passes`, by optimizer.
        table: of the suite that chose the numbers.
    """
    if "muon" not in found or len(found) < 2:
        return ""
    many = len(found["muon"]["new"]["training"])
    return (
        f"**Repeated text**: {many} other seeds at the same learning rates and decays, "
        "with all of the text, of which a run reads a small part, and with so little "
        f"that it is read {TIMES} times (`python -m benchmarks.passes`)."
        f"{_decays(table)} Differences from Muon in the loss of the last "
        f"1/{CURVE} of the training, and of held-out text:"
    )


def table_of_texts(found: Mapping[str, Fits]) -> str:
    """Differences from Muon in training and of held-out text, with each text.

    Args:
        found: the losses of `python -m benchmarks.passes`, by optimizer.
    """
    rows = [
        [name, *(x for text in TEXTS for x in against_muon(found, name, text))]
        for name in found
        if name != "muon"
    ]
    head = ["training, new text", "held-out", "training, repeated text", "held-out"]
    return markdown(["optimizer", *head], rows)


def against_muon(found: Mapping[str, Fits], name: str, text: str) -> list[str]:
    """How an optimizer differs from Muon, in training and with held-out text.

    Args:
        found: the losses of `python -m benchmarks.passes`, by optimizer.
        name: of the optimizer.
        text: which text it was trained on.
    """
    tests = _apart(found[name][text], found["muon"][text])
    return ["diverged" if test is None else str(test) for test in tests]


def _apart(here: Ends, there: Ends) -> tuple[Paired | None, Paired | None]:
    """How losses differ, at the end of the training and of held-out text."""
    training, held_out = (paired(here[x], there[x]) for x in ("training", "held-out"))
    return training, held_out


def _ends(record: Record, line: Line) -> Ends:
    """The losses of the seeds that all arms have."""
    final = record.arms[line.name].stage(FINAL)
    assert final is not None  # it has a line in the table
    last = [curve[-1] for curve in final.curves]
    training = [inf if x is None else x for x in last]
    ends = {"training": training, "held-out": final.losses}
    return {where: losses[: len(SEEDS)] for where, losses in ends.items()}
