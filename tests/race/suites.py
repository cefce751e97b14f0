"""Made-up suites, for tests that train nothing."""

from dataclasses import asdict

from steepest.race.suite import ARMS, SIZES
from steepest.race.suite._members import Rest, Result
from steepest.race.suite._protocol import (
    Entry,
    FINAL,
    LONGER,
    Member,
    Request,
    SEEDS,
    SHORTER,
    Tuned,
)
from steepest.race.suite._record import ArmRecord, Ran, Record

TINY = SIZES["tiny"]
ARM = {arm.name: arm for arm in ARMS}
REST = Rest(0.0, 0.0)
LOREM = b"def function(argument):\n    return argument + 1\n" * 40


def driven(stages, loss):
    """Answer all requests with a made-up loss: the entry, and the requests."""
    requests = []
    try:
        request = next(stages)
        while True:
            requests.append(request)
            request = stages.send([loss(*member) for member in request.members])
    except StopIteration as stop:
        return stop.value, requests


def ran(losses, stage=FINAL, steps=None):
    """A program with one run per seed; the last stage has another of the first seed."""
    losses = [float(x) for x in losses]
    losses += losses[:1] if stage == FINAL else []
    seeds = [*SEEDS, SEEDS[0]][: len(losses)]
    members = tuple(Member(1e-3, 0.1, seed) for seed in seeds)
    request = Request(stage, steps or TINY.steps, members, REST)
    return Ran.of(request, Result(losses, [[1.0]] * len(losses), 2.0))


def record_of(arms, lengths=None, **skipped):
    """A record of finished arms, from their final losses.

    With `lengths`, AdamW also has its losses for fewer and for more steps.
    """
    record = Record(TINY.as_dict(), {"steps": "4"}, "cpu (here)", "3.11.7", params=1000)
    record.train_bytes, record.seconds = 10**6, 60.0
    for name, losses in arms.items():
        entry = asdict(Entry(Tuned(1e-3, 0.1)))
        found = [ran(losses)]
        if name == "adamw" and lengths is not None:
            steps = TINY.lengths
            found.append(ran(lengths[0], SHORTER, steps[0]))
            found.append(ran(lengths[1], LONGER, steps[1]))
        record.arms[name] = ArmRecord(
            program=name,
            ran=found,
            entry=entry,
            compile_seconds=1.0,
            step_seconds=[0.006, 0.012, 0.018],
            state_bytes=8000,
        )
    for name, why in skipped.items():
        record.arms[name] = ArmRecord(skipped=why)
    return record
