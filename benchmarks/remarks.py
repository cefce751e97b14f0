"""What was found out about the results of the quality suite, for its page.

Sentences about the results are computed from them, and say nothing if they lack the
numbers. Texts at module level, such as `_LION`, tell of earlier runs, whose results are
not kept, and of what was chosen after they were seen.
"""

from collections.abc import Mapping, Sequence
from math import isclose
from textwrap import fill

import numpy as np

from steepest.race.suite import Record, Table, table_of
from steepest.race.suite._protocol import FINAL, NARROWING, PROGRAMS, SEEDS

from .fits import Fits, repeated, table_of_texts, with_less_text
from .sizes import (
    against,
    difference,
    int8_in_all,
    listed,
    NEAR_MUON,
    near_muon,
    order,
    pairs,
    TWINS,
)
from .variations import Losses, of_int8, of_momenta, of_roundings

_PLATEAU = 2.2  # nats


def remarks(
    records: Mapping[str, Record],
    more: Mapping[str, Losses] = {},
    momenta: Mapping[str, Losses] = {},
    passes: Mapping[str, Fits] = {},
    roundings: Mapping[str, Losses] = {},
) -> dict[str, str]:
    """Lists of what the results mean, by the names of the sizes.

    Args:
        records: the results of each size.
        more: losses in float32 and int8 of more runs of the small size, by optimizer.
        momenta: losses with momenta of 0.9 and 0.95, likewise.
        passes: losses with all of the text and with a part of it, likewise.
        roundings: losses with and without the roundings of a GPU, likewise.
    """
    tables = {name: table_of(record) for name, record in records.items()}
    less_text = with_less_text(passes, tables["small"]) if "small" in tables else ""
    found: dict[str, list[str]] = {}
    for name, record in records.items():
        table = tables[name]
        some = [_same(record, table), _tuning(record, table), _plateau(record, table)]
        some += [_int8(table), _late(table), repeated(record, table)]
        if name == "full" and table.line("lion"):
            some += [_LION, _SEEDS, _EARLIER]
        if name == "full" and table.lines:
            some += [_MODEL]
        if name != "full" and table.lines:
            some += [_CHOSEN]
        if name == "longer":
            some += [near_muon(table, tables.get("small"))]
        if name == "small":
            some += [of_int8(more), int8_in_all(tables), of_momenta(momenta)]
            some += [of_roundings(roundings)]
            gpu = tables.get("longer") or tables.get("full")
            some += [order(table, gpu), _STEPS, _START, _AGAIN]
            some += [less_text]
        full = records.get("full")
        if full is not None and full is not record and full.params == record.params:
            some += [against(record, table, full, tables["full"])]
        found[name] = [item for item in some if item]
    wrap = {"initial_indent": "- ", "subsequent_indent": "  ", "width": 88}
    said = {
        name: "\n".join(
            ["What was found out:", "", *(fill(item, **wrap) for item in some)]
        )
        for name, some in found.items()
        if some
    }
    if less_text and "small" in said:
        said["small"] += f"\n\n{table_of_texts(passes)}"
    return said


_LION = (
    "**Lion** ended 0.1299 ± 0.0069 nats behind AdamW in an earlier run of this size, "
    "tuned alike, with its published `b2` of 0.99. That averages over the last 100 "
    "steps, which is too long for runs of 750. The 0.95 was chosen after that, to be "
    "that of Adam: six pairs of betas were tried on the seed of stage 1, where `b1 = "
    "b2 = 0.9` was better still by 0.01 nats."
)

_EARLIER = (
    "**Earlier rules**: these runs are older than those below. The momentum of Muon, "
    "its relatives, SOAP and MARS was 0.95, as published. Stage 1 followed every gain, "
    "and stage 2 tried no other decays."
)

_CHOSEN = (
    "**Chosen after results were seen**: the momentum of 0.9, after a trial on two "
    "cores (`python -m benchmarks.momenta`); that gains of less than 0.003 nats do not "
    "count in stage 1, and that stage 2 tries other decays, after a search on a GPU "
    "had followed such gains to a decay 80 times smaller; and where the searches of "
    "soap_muon and of hyperball methods begin, at what earlier runs chose."
)

_MODEL = (
    "**Earlier model**: matrices of the layers started with a standard deviation of "
    "1 / √width, and those that add to the residual stream with a smaller one. All "
    "start with 0.5 / √width now, because hyperball methods keep the norms of the "
    "start: with them, those matrices stayed small."
)

_START = (
    "**Start**, chosen after results were seen: all matrices of the layers start with "
    "one standard deviation. In an earlier run of this size, those that add to the "
    "residual stream started smaller, and muon_h, which keeps norms, ended 0.0070 ± "
    "0.0028 nats behind Muon, although it could tune a factor on all norms together."
)

_AGAIN = (
    "**Newer rows**: soap, soap every step, soap_muon and shampoo were measured again, "
    "because turns come a step earlier after every eight periods, and the coordinates "
    "of SOAP's updates are limited now. They ended +0.0031 ± 0.0016, -0.0047 ± 0.0016, "
    "-0.0176 ± 0.0017 and +0.0417 ± 0.0027 nats from Muon before, at other learning "
    "rates and decays. AdamW, measured again beside shampoo, gave the same bits. The "
    "times of these rows are of other machines."
)

_SEEDS = (
    "**Seeds**: the int8 arms and Muon had 11, and the other matrix optimizers 5, when "
    "their bars were first looked at. The rest were added after that."
)

_STEPS = (
    "**Steps**: an earlier run of this size had 200 steps, which were too few. AdamW "
    "needed 1.71 times the steps of Muon, SOAP was 0.0379 ± 0.0057 nats behind Muon, "
    "and muon_h 0.0258 ± 0.0030 ahead of it. The length was chosen after that, and "
    "after 800 steps had been tried with AdamW, Muon and Lion."
)


def _same(record: Record, table: Table) -> str:
    """How far equal runs drift apart."""
    adamw, optax = table.line("adamw"), table.line("optax adamw")
    test = difference(adamw, optax)
    if adamw is None or optax is None or test is None:
        return ""
    many = pairs(adamw, optax)
    if adamw.losses[:many] == optax.losses[:many]:
        again = "So do two runs of one seed. " if not adamw.floor else ""
        return (
            f"**AdamW and Optax's** end with the same loss, to the last bit, for all "
            f"{many} seeds. {again}The tests compare both optimizers step by step."
        )
    spread = test.error * many**0.5
    here, there = _curves(record, "adamw"), _curves(record, "optax adamw")
    part = record.size["steps"] // here.shape[1]
    apart = np.abs(here[: len(SEEDS)] - there[: len(SEEDS)]).mean(axis=0)
    return (
        "**AdamW and Optax's** differ by rounding at first, and grow apart: the mean "
        f"training loss of the first {part} steps by {apart[0]:.1g} nats, that of the "
        f"last {part} by {apart[-1]:.1g}. In the end, two runs of one seed differ by "
        f"{spread:.4f} nats (standard deviation), {spread / adamw.sigma:.2f} sigma, so "
        f"the mean of {many} seeds is known to ±{test.error / adamw.sigma:.2f} sigma. "
        f"Two runs of one seed in one program differ by {adamw.floor:.2g} nats with "
        f"AdamW and by {optax.floor:.2g} with Optax's. The tests compare both "
        "optimizers step by step."
    )


def _tuning(record: Record, table: Table) -> str:
    """How long the searches were, and where they ended."""
    tuned = [line for line in table.lines if line.arm.twin is None]
    if not tuned:
        return ""
    many = [line.entry.programs for line in tuned]
    stage_2 = lambda line: [
        ran for ran in record.arms[line.name].ran if ran.stage == NARROWING
    ]
    of_rates = [  # the others are of several decays
        [
            ran
            for ran in stage_2(line)
            if len({decay for _, decay, _ in ran.members}) < 2
        ]
        for line in tuned
    ]
    further = sum(len(some) > 1 for some in of_rates)
    other = sum(
        not isclose(line.entry.tuned.decay, some[0].members[0][1])
        for line, some in zip(tuned, of_rates, strict=True)
        if some and line.entry.tuned
    )
    sides = [line.side for line in tuned]
    edges = [line.entry.edge for line in tuned]
    limit = sum(x >= PROGRAMS for x in many)
    return (
        f"**Tuning**: the {len(tuned)} tuned arms needed {np.mean(many):.1f} programs "
        f"of stage 1 on average; {limit} used all {PROGRAMS}. Stage 2 went on beyond "
        f"its first three learning rates for {further}, and chose another decay than "
        f"stage 1 for {other}. In the end, "
        f"{_counted(sides, 'learning rate')}, and {_counted(edges, 'decay')}."
    )


def _counted(sides: Sequence[str], what: str) -> str:
    low, high = sides.count("lowest"), sides.count("highest")
    if not low and not high:
        return f"no {what} is the lowest or the highest one tried"
    return (
        f"the lowest {what} tried is the best for {low} of them, the highest for {high}"
    )


def _plateau(record: Record, table: Table) -> str:
    """How soon the training loss falls below what pairs of bytes tell."""
    ends: dict[str, float] = {}
    for line in table.lines:
        curves = _curves(record, line.name)[: len(SEEDS)]
        if not line.arm.equal and (curves < _PLATEAU).any(axis=1).all():
            ends[line.name] = float((curves < _PLATEAU).argmax(axis=1).mean())
    if not {"adamw", "muon"} <= ends.keys():
        return ""
    parts = _curves(record, "adamw").shape[1]
    slowest = max(ends, key=lambda name: ends[name])
    share = lambda name: f"{100 * ends[name] / parts:.0f}% of a run for {name}"
    names = dict.fromkeys(["muon", "adamw", slowest])
    return (
        "**The beginning**: the byte before tells enough for 2.3 to 2.5 nats. The "
        f"training loss falls below {_PLATEAU} nats after "
        f"{listed([share(name) for name in names])}"
        f"{', the slowest' if slowest not in ('adamw', 'muon') else ''}."
    )


def _int8(table: Table) -> str:
    """How far the int8 arms are from their twins."""
    parts = []
    for name, twin in TWINS:
        a, b = table.line(name), table.line(twin or "")
        test = difference(a, b)
        if a is None or b is None or test is None:
            continue
        many = pairs(a, b)
        apart = np.subtract(a.losses[:many], b.losses[:many])
        same = max(int((apart > 0).sum()), int((apart < 0).sum()))
        parts.append(
            f"{name} differs by {test} nats, "
            f"{test.mean / b.sigma:+.2f} sigma of {twin}, with the same sign for "
            f"{same} of {many} seeds"
        )
    return f"**int8**: compared with float32, {'; '.join(parts)}." if parts else ""


_FAR = 0.025  # nats: more than most runs of an arm differ


def _late(table: Table) -> str:
    """Whether single runs decide how the matrix optimizers compare."""
    lines = [line for line in map(table.line, NEAR_MUON) if line is not None]
    if not lines or lines[0].name != "muon":
        return ""
    seeds = min(len(line.losses) for line in lines)
    losses = {line.name: np.array(line.losses[:seeds]) for line in lines}
    middle = {name: float(np.median(x)) for name, x in losses.items()}
    far = {name: int((x > middle[name] + _FAR).sum()) for name, x in losses.items()}
    if not any(far.values()):
        return ""
    some = [f"{many} of {seeds} of {name}" for name, many in far.items() if many]
    apart = [f"{name} {x - middle['muon']:+.4f}" for name, x in middle.items()]
    return (
        f"**Late runs**: a few runs end more than {_FAR} nats above the median of "
        f"their arm: {listed(some)}. They move a mean of {seeds} seeds by as much as "
        "these arms differ. By their medians, which no bar uses, the differences from "
        f"Muon are: {', '.join(apart[1:])}."
    )


def _curves(record: Record, name: str) -> np.ndarray:
    """The training losses of the final runs."""
    final = record.arms[name].stage(FINAL)
    assert final is not None  # it has a line in the table
    return np.array(final.curves, float)
