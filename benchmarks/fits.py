"""How well optimizers fit text that they have read, for the page of the suite."""

from collections.abc import Mapping, Sequence

import numpy as np

from steepest.race.suite import Line, Record, Table
from steepest.race.suite._members import CURVE
from steepest.race.suite._protocol import FINAL, SEEDS
from steepest.race.suite._statistics import Paired, paired

from .table import markdown

Fits = Mapping[str, Mapping[str, Sequence[float]]]  # text -> where -> losses per seed
_COMPARED = "adamw", "soap", "soap_muon", "muon_h"  # with Muon


def repeated(record: Record, table: Table) -> str:
    """Who fits the text better than Muon, where runs read it more than once.

    Args:
        record: of a suite.
        table: of it.
    """
    size, muon = record.size, table.line("muon")
    many = size["steps"] * size["batch"] * size["places"] / record.train_bytes
    lines = [line for line in map(table.line, _COMPARED) if line is not None]
    if many <= 1 or muon is None or not lines:
        return ""
    parts, fitted = [], []
    for line in lines:
        here, there = _ends(record, line), _ends(record, muon)
        held_out, training = paired(here[0], there[0]), paired(here[1], there[1])
        if held_out is None or training is None:
            continue
        parts.append(f"{line.name} {_nats(training)} and {_nats(held_out)}")
        if training.mean < 0 < held_out.mean:
            fitted.append(line.name)
    if not parts:
        return ""
    said = (
        f"**Repeated text**: a run reads its text {many:.1f} times. Differences from "
        f"Muon in the loss of the last 1/{CURVE} of the training, and of held-out text "
        f"({len(SEEDS)} seeds): {'; '.join(parts)}."
    )
    if fitted:
        verb = "has" if len(fitted) == 1 else "have"
        said += (
            f" So {' and '.join(fitted)} {verb} the lower loss of text that was read "
            "before, and the higher one of new text: that is overfitting, not slow "
            "training. On two cores, less text has the same effect (below). Runs of "
            "this length now read files of installed packages, too, to have enough "
            "text; that was not measured yet."
        )
    return said


def with_less_text(found: Mapping[str, Fits]) -> str:
    """What the table of `table_of_texts` is, or nothing.

    Args:
        found: the losses of `python -m benchmarks.passes`, by optimizer.
    """
    if "muon" not in found or len(found) < 2:
        return ""
    many = len(found["muon"]["new"]["training"])
    return (
        f"**Repeated text**: {many} other seeds at the same learning rates and decays, "
        "with all of the text, of which a run reads a small part, and with so little "
        "that it is read 3.2 times (`python -m benchmarks.passes`). Differences from "
        f"Muon in the loss of the last 1/{CURVE} of the training, and of held-out text:"
    )


def table_of_texts(found: Mapping[str, Fits]) -> str:
    """Differences from Muon in training and of held-out text, with each text.

    Args:
        found: the losses of `python -m benchmarks.passes`, by optimizer.
    """
    rows = [
        [
            name,
            *against_muon(found, name, "new"),
            *against_muon(found, name, "repeated"),
        ]
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
    here, there = (found[x][text] for x in (name, "muon"))
    tests = [paired(here[where], there[where]) for where in ("training", "held-out")]
    return ["diverged" if test is None else _nats(test) for test in tests]


def _ends(record: Record, line: Line) -> tuple[list[float], list[float]]:
    """The losses of held-out text and of the last part of the training, per seed."""
    final = record.arms[line.name].stage(FINAL)
    assert final is not None  # it has a line in the table
    curves = np.array(final.curves, float)[: len(SEEDS)]
    return final.losses[: len(SEEDS)], curves[:, -1].tolist()


def _nats(test: Paired) -> str:
    return f"{test.mean:+.4f} ± {test.error:.4f}"
