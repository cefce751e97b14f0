"""What was found out about the results of the quality suite, for its page.

The sentences are about the results in `benchmarks/results`; their numbers are computed
from them.
"""

from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np

from steepest.race.suite import Line, Record, Table, table_of
from steepest.race.suite._protocol import FINAL, NARROWING, SEEDS, TUNING
from steepest.race.suite._statistics import paired

_PLATEAU = 2.2  # nats


def remarks(records: Mapping[str, Record]) -> dict[str, str]:
    """Lists of what the failed bars mean, by the names of the sizes.

    Args:
        records: the results of each size.
    """
    tables = {name: table_of(record) for name, record in records.items()}
    items: dict[str, list[str]] = {}
    if "full" in records:
        record, table = records["full"], tables["full"]
        items["full"] = [
            _missing(table),
            _same(record, table),
            _plateau(record, table),
            _lion(record),
            _hyperball(record),
            _int8(table),
        ]
    if len(tables) == 2:
        items["small"] = _small(tables["small"], tables["full"])
    wrap = {"initial_indent": "- ", "subsequent_indent": "  ", "width": 88}
    head = "What was found out:"
    return {
        name: "\n".join([head, "", *(fill(item, **wrap) for item in some)])
        for name, some in items.items()
    }


def _small(small: Table, full: Table) -> list[str]:
    here, there = (
        [x.name for x in table.lines if not x.arm.equal and not x.arm.keeps_norms][:3]
        for table in (small, full)
    )
    soap, every = (
        paired(_line(small, name).losses, _line(small, "muon").losses)
        for name in ("soap", "soap every step")
    )
    assert soap is not None and every is not None
    return [
        "**Order**: without muon_h, which could not tune its norms on the GPU, the "
        f"first three are {', '.join(here)}; on the GPU they are {', '.join(there)}. "
        "The two differ in the model, the batches and the steps.",
        "**muon_h** ran twice. In the first run, without a factor on the initial "
        "norms, it was behind Muon. The factor, and the value where its search begins, "
        "were chosen after that, with a trial on two of the five seeds that count. No "
        "other arm had a second look.",
        "**SOAP** that corrects its bases every tenth step differs from Muon by "
        f"{soap.mean:+.4f} nats, and every step by {every.mean:+.4f}: in so few steps, "
        "the bases are not good soon enough. On the GPU both are close to Muon.",
        "**Lion and AdamW** vary much from seed to seed in such short runs. The bars "
        "for Lion and for the steps that Muon saves were meant for longer ones.",
    ]


def _missing(table: Table) -> str:
    names = " and ".join(name for name, _ in table.skipped)
    ends = [line.side for line in table.lines if line.arm.twin is None]
    low, high = ends.count("lowest"), ends.count("highest")
    return (
        f"**Missing**: {names}, and the five more seeds of the twins. The time on the "
        "machine was used up. In this run, stage 2 did not yet go on beyond its three "
        f"learning rates: of {len(ends)} tuned arms, {low} ended at the lowest (AdamW "
        f"and Muon too) and {high} at the highest."
    )


def _same(record: Record, table: Table) -> str:
    adamw, optax = _line(table, "adamw"), _line(table, "optax adamw")
    curves = _curves(record, "adamw")
    part = record.size["steps"] // len(curves[0])
    other = np.abs(curves[: len(SEEDS)] - _curves(record, "optax adamw")[: len(SEEDS)])
    floor = np.abs(curves[0] - curves[-1])
    return (
        "**AdamW and Optax's**: five seeds do not decide this bar here. Two runs of "
        f"AdamW with the same seed, in the same program, end {adamw.floor:.3f} nats "
        f"apart, {adamw.floor / adamw.sigma:.1f} sigma (two of Optax's "
        f"{optax.floor:.3f}): they differ by rounding at first, and grow apart. The "
        f"mean training loss of the first {part} steps differs by "
        f"{other[:, 0].mean():.0e} nats from that with Optax's AdamW, and by "
        f"{floor[0]:.0e} between the two runs of one seed; that of the last {part} "
        f"steps by {other[:, -1].mean():.3f} and {floor[-1]:.3f}. The tests compare "
        "both optimizers step by step."
    )


def _plateau(record: Record, table: Table) -> str:
    names = ("lion", "schedule-free adamw", "adamw", "cautious adamw", "soap", "muon")
    shares = [f"{name} {100 * _share(record, name):.0f}%" for name in names]
    return (
        f"**{_line(table, 'muon').steps:.2f} times the steps, and AdamW's large sigma "
        f"of {_line(table, 'adamw').sigma:.3f} nats**: the training loss stays between "
        "2.3 and 2.5 nats, about what the byte before tells, until attention forms. It "
        f"falls below {_PLATEAU} nats after this part of a run: {', '.join(shares)}. "
        f"Much of the difference is made there, and {record.size['steps']} steps are "
        "too few to make up for it. That is why the model has rotary positions and "
        "normalised queries and keys now."
    )


def _lion(record: Record) -> str:
    arm = record.arms["lion"]
    short = [x for ran in arm.ran if ran.stage == TUNING for x in ran.losses]
    return (
        "**Lion** is the slowest to get there: its best short run ended at "
        f"{min(short):.2f} nats. So stage 1 tuned it for the wrong part of a run, and "
        "stage 2 ended at its highest learning rate. The tests compare Lion with "
        "Optax's, step by step."
    )


def _hyperball(record: Record) -> str:
    name, muon = "muon_h", "muon"
    loss = lambda arm, k: _curves(record, arm)[: len(SEEDS), k].mean()
    full = [ran for ran in record.arms[name].ran if ran.stage == NARROWING]
    pairs = zip(full[0].members[::2], np.reshape(full[0].losses, (-1, 2)), strict=True)
    means = [f"{np.mean(x):.4f} nats at {member[0]:.2g}" for member, x in pairs]
    return (
        f"**{name}**: in stage 2 the lowest of its learning rates was the best "
        f"({', '.join(means)}). Early it is as good as Muon (training loss "
        f"{loss(name, 4):.2f} against {loss(muon, 4):.2f} after an eighth of a run), "
        f"later it is behind ({loss(name, 16):.2f} against {loss(muon, 16):.2f} after "
        "a half, before the rate falls). It keeps the initial norms of matrices, which "
        "others change by weight decay, and a factor on them was not tuned in this "
        "run. It is now, and on two cores the bar passes (below)."
    )


def _int8(table: Table) -> str:
    parts = []
    for twin in ("adamw", "muon", "lion"):
        pair = paired(_line(table, f"{twin} int8").losses, _line(table, twin).losses)
        assert pair is not None
        side = "behind" if pair.mean > 0 else "ahead"
        parts.append(f"{twin} int8 is {abs(pair.mean):.4f} nats {side}")
    return (
        f"**int8**: compared with float32, {', '.join(parts)}. That of Muon is small, "
        "but has the same sign for nearly all seeds. Why AdamW's is ahead is not "
        "known; two equal runs of AdamW differ by more (above)."
    )


def _curves(record: Record, name: str) -> np.ndarray:
    final = record.arms[name].stage(FINAL)
    assert final is not None
    return np.array(final.curves, float)


def _share(record: Record, name: str) -> float:
    """The part of a run until the training loss is below the plateau."""
    curves: Sequence[np.ndarray] = list(_curves(record, name)[: len(SEEDS)])
    return float(np.mean([np.argmax(x < _PLATEAU) / len(x) for x in curves]))


def _line(table: Table, name: str) -> Line:
    line = table.line(name)
    assert line is not None
    return line
