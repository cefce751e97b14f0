"""What several sizes of the quality suite say together, for its page."""

from collections.abc import Mapping, Sequence
from itertools import combinations

from steepest.race.suite import ARMS, Line, Record, Table
from steepest.race.suite._statistics import Paired, paired

TWINS = [(arm.name, arm.twin) for arm in ARMS if arm.equal and "int8" in arm.name]
NEAR_MUON = [arm.name for arm in ARMS if arm.close]  # Muon is the first


def near_muon(table: Table, small: Table | None) -> str:
    """How the optimizers that end near Muon differ from it, on a GPU and on two cores.

    Args:
        table: of the GPU.
        small: of two cores.
    """
    if small is None:
        return ""
    found = []
    for name in NEAR_MUON[1:]:
        tests = [difference(x.line(name), x.line("muon")) for x in (table, small)]
        if None not in tests:
            found.append(f"{name} {tests[0]} and {tests[1]}")
    if not found:
        return ""
    return f"**Near Muon**, in nats, here and on two cores: {'; '.join(found)}."


def int8_in_all(tables: Mapping[str, Table]) -> str:
    """How many int8 arms of all sizes end near their twins.

    Args:
        tables: of each size.
    """
    tests = [
        difference(table.line(name), table.line(twin or ""))
        for table in tables.values()
        for name, twin in TWINS
    ]
    known = [test for test in tests if test is not None]
    if len(tables) < 2 or not known:
        return ""
    near = sum(abs(test.mean) <= test.error for test in known)
    lower = sum(test.mean < 0 for test in known)
    return (
        f"**int8 in all tables**: {near} of {len(known)} differences are within one "
        f"standard error, where two thirds would be if arms were equal. In {lower} of "
        f"{len(known)}, int8 has the lower loss."
    )


def against(record: Record, table: Table, full: Record, before: Table) -> str:
    """What more steps or larger batches change."""
    times = {key: record.size[key] / full.size[key] for key in ("steps", "batch")}
    words = {"steps": "as many steps", "batch": "the batch"}
    changed = [f"{x:.3g} times {words[key]}" for key, x in times.items() if x != 1]
    found = []
    now, then = table.line("adamw"), before.line("adamw")
    if now and then:
        found.append(
            f"one run of AdamW varies by {now.sigma:.4f} nats instead of "
            f"{then.sigma:.4f}"
        )
    now, then = table.line("muon"), before.line("muon")
    if now and then and now.steps and then.steps:
        found.append(
            f"AdamW needs {now.steps:.2f} times the steps of Muon instead of "
            f"{then.steps:.2f} times"
        )
    now, then = table.line("lion"), before.line("lion")
    if now and then and now.adamw and then.adamw:
        found.append(
            f"Lion differs from AdamW by {now.adamw.mean:+.4f} nats instead of "
            f"{then.adamw.mean:+.4f}"
        )
    if not changed or not found:
        return ""
    return f"**With {listed(changed)}**, {listed(found)}."


_CLEAR = 2.8  # standard errors: a difference of five pairs is significant at 5%


def order(small: Table, gpu: Table | None) -> str:
    """The best three on two cores and on a GPU, by their differences from Muon."""
    if gpu is None:
        return ""
    known = {x.name for x in small.lines} & {x.name for x in gpu.lines}
    behind = lambda line: line.muon.mean if line.muon else 0.0
    first = lambda table: [
        line.name
        for line in sorted(table.lines, key=behind)
        if not line.arm.equal and line.name in known
    ][:3]
    here, there = first(small), first(gpu)
    same = "the same three in another order" if {*here} == {*there} else "not the same"
    same = "the same" if here == there else same
    return (
        f"**Order**: the first three are {listed(here)}; on the GPU, of the arms that "
        f"are in both tables, {listed(there)}: {same}. The two differ in the model, "
        f"the batches and the steps. {_agreement(small, gpu, sorted(known))}"
    ).strip()


def _agreement(small: Table, gpu: Table, names: Sequence[str]) -> str:
    """How many pairs of arms that clearly differ have the same order in both tables."""
    clear = []
    for pair in combinations(names, 2):
        tests = [difference(*map(table.line, pair)) for table in (small, gpu)]
        known = [test.t for test in tests if test is not None]
        if len(known) == 2 and min(map(abs, known)) >= _CLEAR:
            clear.append(known[0] * known[1] > 0)
    if not clear:
        return ""
    return (
        f"Of the {len(clear)} pairs of optimizers that differ by at least {_CLEAR} "
        f"standard errors in both, {sum(clear)} have the same order."
    )


def listed(some: Sequence[str]) -> str:
    return f"{', '.join(some[:-1])} and {some[-1]}" if len(some) > 1 else "".join(some)


def difference(a: Line | None, b: Line | None) -> Paired | None:
    return None if a is None or b is None else paired(a.losses, b.losses)


def pairs(a: Line, b: Line) -> int:
    return min(len(a.losses), len(b.losses))
