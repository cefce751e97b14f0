"""The suite runs, is interrupted, goes on, and never mixes results."""

import json
import re
from dataclasses import asdict
from functools import partial
from math import log2

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.race.suite import (
    _members,
    _run,
    ARMS,
    arms_named,
    Record,
    run_suite,
    SIZES,
    table_of,
)
from steepest.race.suite._arms import Numbers
from steepest.race.suite._members import Member, Members, one_run, Rest, Result
from steepest.race.suite._record import as_text, Ran
from steepest.race.suite._text import windows
from steepest.race.suite._transformer import init, parts_of, scaled
from steepest.race.terminal._command import main

from .suites import ARM, LOREM, ran, TINY


@pytest.fixture(autouse=True)
def promotion():
    """As users have it: Optax's AdamW needs it."""
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(autouse=True)
def text(monkeypatch):
    """A short text instead of the standard library."""
    train = np.frombuffer(LOREM, np.uint8)
    test = windows(train, TINY.windows, TINY.places)
    data = {"train": jnp.asarray(train), "test": jnp.asarray(test)}
    monkeypatch.setattr(_run, "data_of", lambda size: data)
    return data


class Fake(Members):
    """Programs that take no time. The loss depends on the rate, decay and seed."""

    def __init__(self, arm, size, data):
        self.arm, self.digest, self.compile_seconds = arm, f"program {arm.name}", 0.5

    def compile(self):
        return self

    def __call__(self, members, rest, steps, parts=None):
        self.asked.append((self.arm.name, steps))
        best = self.arm.rate * TINY.warm
        ends = [1 + abs(log2(x.rate / best)) + 1e-3 * x.seed for x in members]
        return Result(ends, [[2.0, 1.0]] * len(members), 1e-3)

    def step_seconds(self, few, many):
        return 1e-3


@pytest.fixture
def fake(monkeypatch):
    """A class of fake programs, which lists what was asked of it."""
    kind = type("AnyFake", (Fake,), {"asked": []})
    monkeypatch.setattr(_run, "Members", kind)
    return kind


QUIET = {"say": lambda line: None, "ahead": 0}


def test_a_suite_runs_from_end_to_end(tmp_path):
    """Truly: two programs are compiled and train a tiny model."""
    path = tmp_path / "new" / "quality.json"
    record = run_suite(TINY, arms_named(["adamw", "adamw int8"]), path, **QUIET)
    assert not any(arm.skipped for arm in record.arms.values())
    assert as_text(asdict(Record.load(path))) == as_text(asdict(record))
    assert record.params > 1000 and record.arms["adamw"].state_bytes > 0
    adamw = record.arms["adamw"]
    assert {each.stage for each in adamw.ran} >= {"short"}
    assert adamw.tuned is not None and not adamw.skipped
    if adamw.tuned.tuned is not None:  # four steps may well be void
        final = adamw.stage("final").losses
        assert len(final) == 6 and final[0] == final[5]


def test_members_are_independent_and_repeatable(text):
    """One program of several runs gives what the single runs give."""
    members = [Member(3e-3, 0.1, 1), Member(1e-2, 0.1, 2)]
    program = Members(ARM["adamw"], TINY, text)
    first, again = (program(members, Rest(0.0, 0.0), 3) for _ in range(2))
    assert first.nats == again.nats and first.nats[0] != first.nats[1]
    zero = jnp.float32(0)
    alone = jax.jit(partial(one_run, ARM["adamw"], TINY))
    for member, nats in zip(members, first.nats, strict=True):
        numbers = jnp.float32(member.rate), jnp.float32(member.decay)
        seed, steps = jnp.uint32(member.seed), jnp.int32(3)
        parts = jnp.int32(parts_of(text["test"]))
        final, _ = alone(*numbers, seed, zero, zero, steps, parts, text)
        assert float(final) == pytest.approx(nats, rel=1e-5)


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_every_arm_can_be_traced(arm, text):
    if arm.needs:
        pytest.importorskip(arm.needs)
    f, i = jnp.float32(1e-3), jnp.int32(3)
    run = partial(one_run, arm, TINY)
    final, curve = jax.eval_shape(run, f, f, jnp.uint32(1), f, f, i, i, text)
    assert final.shape == () and curve.shape == (_members.CURVE,)
    state, params = _members.state_bytes(arm, TINY)
    assert state > params  # more than one byte for each


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_all_momenta_are_equal(arm):
    """Also those of wrappers, such as `mars`, and of the optimizer inside."""
    numbers = Numbers(lambda t: 1e-3, 0.1, lambda t: 1e-3, 0.1, 4)
    known = re.findall(r"\b(?:adam_)?(?:b1|beta)=([\d.]+)", repr(arm.make(numbers)))
    assert set(known) == (
        set() if arm.name in ("optax adamw", "adafactor") else {"0.9"}
    )


def test_all_matrices_of_the_layers_start_alike():
    """Hyperball methods keep the norms of the start: smaller ones would stay small."""
    layers = init(SIZES["small"], jax.random.key(0))["layers"]
    spread = {name: float(x.std()) for name, x in layers.items() if "norm" not in name}
    expected = 0.5 * SIZES["small"].width ** -0.5
    assert len(spread) == 6
    assert list(spread.values()) == pytest.approx([expected] * 6, rel=0.02)


def test_hyperball_methods_tune_the_norms_they_keep(text):
    """In place of a weight decay; only those of the matrices."""
    params = init(TINY, jax.random.key(0))
    half = scaled(params, jnp.float32(0.5))
    ratio = jax.tree.map(
        lambda a, b: float(jnp.linalg.norm(a / b) / a.size**0.5), half, params
    )
    found = {name for name, x in ratio["layers"].items() if x == pytest.approx(0.5)}
    assert found == {name for name in ratio["layers"] if "norm" not in name}
    assert jax.tree.leaves({**ratio, "layers": 1.0}) == pytest.approx([1.0] * 4)
    members = [Member(3e-3, factor, 1) for factor in (0.5, 1.0)]
    ends = Members(ARM["muon_h"], TINY, text)(members, Rest(1e-3, 0.0), 3).nats
    assert ends[0] != ends[1]


def test_the_learning_rate_warms_up_stays_and_falls():
    at = lambda name, t: float(
        _members.schedule_of(ARM[name], jnp.float32(1), jnp.int32(100))(t)
    )
    assert [at("adamw", t) for t in (0, 2, 50)] == [0.5, 1.0, 1.0]
    assert at("adamw", 75) == pytest.approx(0.5)
    assert at("adamw", 99) == pytest.approx(0.02)
    assert at("schedule-free adamw", 99) == 1.0


def test_an_interrupted_suite_loses_one_program(tmp_path, fake, monkeypatch):
    path, arms = tmp_path / "quality.json", arms_named(["muon"])
    whole = run_suite(TINY, arms, tmp_path / "whole.json", **QUIET)
    many, fake.asked[:] = len(fake.asked), []

    def interrupted(self, members, rest, steps, call=fake.__call__):
        if len(self.asked) == 5:
            raise KeyboardInterrupt
        return call(self, members, rest, steps)

    with monkeypatch.context() as patch:
        patch.setattr(fake, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_suite(TINY, arms, path, **QUIET)
    assert sum(len(arm.ran) for arm in Record.load(path).arms.values()) == 5
    record = run_suite(TINY, arms, path, resume=True, **QUIET)
    assert len(fake.asked) == many  # none of the five ran again
    plain = lambda record: {x: (arm.ran, arm.entry) for x, arm in record.arms.items()}
    assert plain(record) == plain(whole)


def test_results_are_not_overwritten_or_mixed(tmp_path, fake):
    path, arms = tmp_path / "quality.json", arms_named(["adamw"])
    run_suite(TINY, arms, path, **QUIET)
    with pytest.raises(FileExistsError, match="--resume"):
        run_suite(TINY, arms, path, **QUIET)
    with pytest.raises(
        ValueError, match=r"suite: cannot resume.*steps \(4 then, 6 now\)"
    ):
        run_suite(TINY.but(steps=6), arms, path, resume=True, **QUIET)
    path.write_text(json.dumps({"format": 0}))
    with pytest.raises(ValueError, match="has format 0, expected 2"):
        run_suite(TINY, arms, path, resume=True, **QUIET)


def test_a_longer_search_uses_the_runs_of_a_shorter_one(tmp_path, fake):
    """As if the protocol had not asked for the last runs of stage 2 then."""
    path, arms = tmp_path / "quality.json", arms_named(["adamw"])
    first = run_suite(TINY, arms, path, **QUIET)
    tuned = first.arms["adamw"].tuned.tuned
    assert tuned.rate == pytest.approx(ARM["adamw"].rate * TINY.warm)
    record, fake.asked[:] = Record.load(path), []
    last = [ran for ran in record.arms["adamw"].ran if ran.stage == "full"][-1]
    record.arms["adamw"].ran.remove(last)
    record.save(path)
    again = run_suite(TINY, arms, path, resume=True, **QUIET)
    assert fake.asked == [("adamw", TINY.steps)]
    assert again.arms["adamw"] == first.arms["adamw"]


def test_an_arm_with_other_code_begins_again(tmp_path, fake, monkeypatch):
    path, arms = tmp_path / "quality.json", arms_named(["adamw"])
    run_suite(TINY, arms, path, **QUIET)
    many, said = len(fake.asked), []
    run_suite(TINY, arms, path, resume=True, **QUIET)
    assert len(fake.asked) == many
    init = fake.__init__

    def changed(self, *args):
        init(self, *args)
        self.digest = "another"

    monkeypatch.setattr(fake, "__init__", changed)
    before = Record.load(path).arms["adamw"]
    run_suite(TINY, arms, path, resume=True, say=said.append, ahead=0)
    assert len(fake.asked) == many + 1  # the final runs, which end as before
    assert "adamw: its code changed, and its results did not" in said
    after = Record.load(path).arms["adamw"]
    assert (after.program, after.ran, after.entry) == (
        "another",
        before.ran,
        before.entry,
    )
    monkeypatch.setattr(fake, "__init__", init)
    call = fake.__call__
    worse = lambda result: result._replace(nats=[x + 1e-6 for x in result.nats])
    monkeypatch.setattr(fake, "__call__", lambda *args: worse(call(*args)))
    fake.asked.clear()
    run_suite(TINY, arms, path, resume=True, say=said.append, ahead=0)
    assert len(fake.asked) == many + 1
    assert "adamw: its code changed, so it begins again" in said


def test_the_time_budget_skips_what_does_not_fit(tmp_path, fake):
    path, arms = tmp_path / "quality.json", arms_named(["adamw", "lion"])
    record = run_suite(TINY, arms, path, time_budget=1e-9, **QUIET)
    assert all("time budget" in arm.skipped for arm in record.arms.values())
    record = run_suite(TINY, arms, path, resume=True, **QUIET)  # and later goes on
    assert not any(arm.skipped for arm in record.arms.values())


def test_an_arm_may_begin_in_one_call_and_end_in_the_next(tmp_path, fake, monkeypatch):
    """With `partly`; without it, an arm begins only if all of it fits."""
    now = [0.0]
    monkeypatch.setattr(_run.time, "monotonic", lambda: now[0])

    def slow(self, members, rest, steps, call=fake.__call__):
        now[0] += 1e-3 * steps
        return call(self, members, rest, steps)

    monkeypatch.setattr(fake, "__call__", slow)
    path, arms = tmp_path / "quality.json", arms_named(["adamw"])
    some = {"time_budget": 8e-3, **QUIET}
    whole = run_suite(TINY, arms, tmp_path / "whole.json", **some)
    assert "it needs" in whole.arms["adamw"].skipped and not fake.asked
    record = run_suite(TINY, arms, path, partly=True, **some)
    assert "time budget" in record.arms["adamw"].skipped and record.arms["adamw"].ran
    record = run_suite(TINY, arms, path, resume=True, **QUIET)
    assert not record.arms["adamw"].skipped and record.arms["adamw"].tuned


def test_twins_run_with_more_seeds_once(tmp_path, fake):
    size, path = TINY.but(more_seeds=True), tmp_path / "quality.json"
    arms = arms_named(["adamw", "optax adamw", "muon", "muon int8", "cautious adamw"])
    record = run_suite(size, arms, path, **QUIET)
    many = {line.name: len(line.losses) for line in table_of(record).lines}
    twins = ["adamw", "optax adamw", "muon", "muon int8"]
    assert many == {**dict.fromkeys(twins, 17), "cautious adamw": 5}
    fake.asked.clear()
    run_suite(size, arms, path, resume=True, **QUIET)
    assert not fake.asked
    record.arms["muon"].ran.pop()  # a run with an earlier protocol had fewer seeds
    record.save(path)
    run_suite(size, arms, path, resume=True, **QUIET)
    assert fake.asked == [("muon", size.steps)]
    fake.asked.clear()
    record = run_suite(TINY, arms, path, resume=True, **QUIET)  # they are kept
    assert not fake.asked and record.size["more_seeds"]
    assert many == {line.name: len(line.losses) for line in table_of(record).lines}


def test_seeds_are_added_to_what_ran(tmp_path, fake):
    path, arms = tmp_path / "quality.json", arms_named(["adamw", "muon"])
    before = table_of(run_suite(TINY, arms, path, **QUIET))
    fake.asked.clear()
    more = TINY.but(more_seeds=True)
    record = run_suite(more, arms, path, resume=True, **QUIET)
    assert record.size["more_seeds"]
    assert fake.asked == [("adamw", TINY.steps)] * 2 + [("muon", TINY.steps)] * 2
    for old, new in zip(before.lines, table_of(record).lines, strict=True):
        assert len(new.losses) == 17 and new.losses[:5] == old.losses
        assert new.entry == old.entry


def test_an_arm_that_fails_does_not_stop_the_others(tmp_path, fake, monkeypatch):
    init = fake.__init__

    def broken(self, arm, *rest):
        if arm.name == "lion":
            raise ValueError("lion: no")
        init(self, arm, *rest)

    monkeypatch.setattr(fake, "__init__", broken)
    arms = arms_named(["adamw", "lion", "lion int8", "adamw int8"])
    path = tmp_path / "quality.json"
    record = run_suite(TINY, arms, path, say=QUIET["say"], ahead=2)
    skipped = {name: arm.skipped for name, arm in record.arms.items()}
    assert skipped == {
        "adamw": "",
        "adamw int8": "",
        "lion": "ValueError: lion: no",
        "lion int8": "lion has no tuned numbers",
    }


def test_a_missing_package_is_said(tmp_path, fake, monkeypatch):
    monkeypatch.setattr(_run, "find_spec", lambda name: None)
    arms = arms_named(["optax adamw"])
    record = run_suite(TINY, arms, tmp_path / "quality.json", **QUIET)
    assert record.arms["optax adamw"].skipped == "optax is not installed"


def test_a_stop_ends_the_suite(tmp_path, fake):
    path, arms = tmp_path / "quality.json", arms_named(["adamw"])
    record = run_suite(TINY, arms, path, stopped=lambda: True, **QUIET)
    assert record.arms["adamw"].skipped == "the suite was stopped"


def test_diverged_runs_are_saved_as_null(tmp_path):
    one = ran([1.0, float("inf"), 3.0, 4.0, 5.0])
    assert one.nats[1] is None and one.losses[1] == float("inf")
    assert Ran(**json.loads(json.dumps(one.__dict__))) == one


def test_the_command_runs_the_suite(tmp_path, fake, capsys, monkeypatch):
    from steepest.race.terminal import _suite

    monkeypatch.setitem(_suite.SIZES, "small", TINY)
    monkeypatch.chdir(tmp_path)
    tokens = ["race", "bytes", "--suite", "--small", "--optimizers", "adamw,adamw int8"]
    assert main(tokens) == 0
    out = capsys.readouterr().out
    assert "| adamw int8 " in out and "Bars passed: " in out
    folder = tmp_path / "races" / "suite-small"
    names = {path.name for path in folder.iterdir()}
    assert names == {"quality.json", "quality.md", "quality-small.svg"}
    assert main(tokens) == 2  # there are results already
    assert "--resume" in capsys.readouterr().err
    assert main([*tokens, "--resume"]) == 0


WRONG = [
    (["race", "digits", "--suite"], "the problem is digits, expected bytes"),
    (["race", "--suite", "--seeds", "3"], "the suite has no option --seeds"),
    (["race", "--suite", "--optimizers", "adam"], "there is no arm 'adam'"),
]


@pytest.mark.parametrize("tokens, message", WRONG, ids=[x for _, x in WRONG])
def test_wrong_options_of_the_suite(tokens, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(tokens) == 2
    assert message in capsys.readouterr().err
