"""The stages of the suite: equal budgets, edges, voids, and seeds used once."""

from math import inf, log, log2

import pytest

from steepest.race.suite import ARMS, arms_named, SIZES
from steepest.race.suite._protocol import (
    Entry,
    MARGIN,
    missing,
    MORE_SEEDS,
    more_seeds,
    PROGRAMS,
    SEEDS,
    STAGE_1,
    STAGE_2,
    stages,
    Tuned,
    work,
)

from .suites import ARM, driven

SIZE = SIZES["full"]
TUNED = {"adamw": Entry(Tuned(3e-3, 0.6)), "muon": Entry(Tuned(5e-3, 0.3))}


def bowl(best, decay=0.6):
    """A loss with its least value at one learning rate and one decay."""

    def loss(rate, some, seed):
        far = abs(log2(some / decay)) if some else 0
        return 1 + abs(log2(rate / best)) + far / 2 + 1e-3 * seed % 7

    return loss


def log3(x):
    return log(x) / log(3)


def test_the_best_numbers_win():
    entry, _ = driven(stages(ARM["adamw"], SIZE, {}), bowl(4e-3))
    assert entry == Entry(Tuned(pytest.approx(4e-3), 0.6), programs=3)
    entry, _ = driven(stages(ARM["adamw"], SIZE, {}), bowl(4e-3 * 2**0.5))
    assert entry.tuned == pytest.approx((4e-3 * 2**0.5, 0.6))
    assert not entry.edge and not entry.void


@pytest.mark.parametrize("k", [-5, -3, -2, -1, 0, 1, 3])
def test_full_runs_may_need_other_rates_than_short_ones(k):
    """Stage 2 begins below the best rate, and goes on once beyond its three rates."""
    best = 4e-3 * 2 ** (k / 2)
    loss = lambda *x: bowl(4e-3 if x[-1] == STAGE_1[0] else best)(*x)
    entry, requests = driven(stages(ARM["adamw"], SIZE, {}), loss)
    assert entry.tuned == pytest.approx((best, 0.6))
    full = [x for x in requests if x.stage == "full"]
    assert len(full) == (2 if k == -1 else 3)  # the last one is of other decays
    assert all(len(x.members) == SIZE.members for x in full)


@pytest.mark.parametrize("rate, decay", [(2e-3, 1.8), (8e-3, 0.2)])
def test_full_runs_may_need_another_decay_than_short_ones(rate, decay):
    """Where the product of the rate and the decay is about the same."""

    def full(x, some, seed):
        product = abs(log2(x * some / (4e-3 * 0.6)))
        return 1 + 0.2 * product + abs(log3(some / decay))

    loss = lambda *x: (bowl(4e-3) if x[-1] == STAGE_1[0] else full)(*x)
    entry, requests = driven(stages(ARM["adamw"], SIZE, {}), loss)
    assert entry.tuned == pytest.approx((rate, decay))
    last = [x for x in requests if x.stage == "full"][-1]
    assert entry.tuned in {x[:2] for x in last.members}


def test_the_search_does_not_follow_gains_that_may_be_noise():
    """A flat valley has an end anywhere."""
    slope = lambda gain: (
        lambda rate, decay, seed: bowl(2e-3)(rate, 0, seed) + gain * log3(decay)
    )
    flat, _ = driven(stages(ARM["adamw"], SIZE, {}), slope(MARGIN / 2.1))
    assert flat.programs == 2
    steep, _ = driven(stages(ARM["adamw"], SIZE, {}), slope(MARGIN * 1.1))
    assert steep.programs == PROGRAMS


@pytest.mark.parametrize("decay", [0.6 / 9, 0.6 * 27])
def test_a_decay_at_the_edge_moves_the_search(decay):
    """Until the best one lies inside."""
    entry, requests = driven(stages(ARM["adamw"], SIZE, {}), bowl(4e-3, decay))
    assert entry.tuned == pytest.approx((4e-3, decay)) and not entry.edge
    decays = {x.decay for r in requests if r.stage == "short" for x in r.members}
    assert min(decays) < decay < max(decays)


@pytest.mark.parametrize("way, edge", [(1, "lowest"), (-1, "highest")])
def test_a_decay_that_stays_at_the_edge_is_marked(way, edge):
    loss = lambda rate, decay, seed: bowl(4e-3)(rate, 0, seed) + way * log2(decay) / 9
    entry, _ = driven(stages(ARM["adamw"], SIZE, {}), loss)
    assert entry.edge == edge and entry.programs == PROGRAMS and not entry.void


def test_the_search_ends_among_worse_neighbours():
    """All eight neighbours of the best pair were tried."""
    loss = bowl(1.6e-2, 1.8)
    entry, requests = driven(stages(ARM["adamw"], SIZE, {}), loss)
    short = [x for r in requests if r.stage == "short" for x in r.members]
    tried = {(round(log2(x.rate / 2e-3)), round(x.decay, 9)) for x in short}
    assert len(tried) == len(short)  # no pair is tried twice
    near = {(3 + i, round(0.6 * 3.0**j, 9)) for i in (-1, 0, 1) for j in (0, 1, 2)}
    assert near <= tried and entry.programs < PROGRAMS


def test_all_tuned_arms_have_the_same_budget():
    """AdamW runs at two more lengths."""
    budgets = {}
    for arm in ARMS:
        if arm.twin is None:
            short, full = (bowl(arm.rate * k, arm.decay) for k in (1, 0.5**0.5))
            loss = lambda *x, a=short, b=full: (a if x[-1] == STAGE_1[0] else b)(*x)
            _, requests = driven(stages(arm, SIZE, TUNED), loss)
            tuning = [x for x in requests if x.stage in ("short", "full", "final")]
            runs = [(x.steps, len(x.members)) for x in tuning]
            budgets[arm.name] = sum(steps * many for steps, many in runs)
            assert sum(x.steps for x in requests) == work(arm, SIZE), arm.name
            assert all(len(x.members) <= SIZE.members for x in requests)
    most = max(budgets.values())
    assert {name for name, budget in budgets.items() if budget < most} == set()


def test_no_seed_is_used_in_two_stages():
    _, requests = driven(stages(ARM["muon"], SIZE, TUNED), bowl(4e-3))
    seeds = {}
    for request in requests:
        found = {member.seed for member in request.members}
        seeds.setdefault(request.stage, set()).update(found)
    more = seeds.pop("more")
    assert seeds == {"short": {*STAGE_1}, "full": {*STAGE_2}, "final": {*SEEDS}}
    assert more == {*MORE_SEEDS}
    everyone = [*STAGE_1, *STAGE_2, *SEEDS, *MORE_SEEDS]
    assert len(set(everyone)) == len(everyone)


@pytest.mark.parametrize("best", [2e-3 / 2**4, 2e-3 * 2**6])
def test_a_rate_at_the_edge_moves_the_search(best):
    entry, requests = driven(stages(ARM["adamw"], SIZE, {}), bowl(best))
    assert not entry.void and entry.programs > 2
    assert entry.tuned.rate == pytest.approx(best, rel=0.5)
    rates = {x.rate for r in requests if r.stage == "short" for x in r.members}
    assert min(rates) < best < max(rates)


@pytest.mark.parametrize("way, side", [(1, "lowest"), (-1, "highest")])
def test_a_best_rate_that_stays_at_the_edge_is_void(way, side):
    loss = lambda rate, decay, seed: 2 + way * log2(rate) / 100
    entry, requests = driven(stages(ARM["adamw"], SIZE, {}), loss)
    assert entry.tuned is None and side in entry.void
    assert entry.programs == PROGRAMS
    assert {x.stage for x in requests} == {"short"}


def test_divergence_is_void_only_if_nothing_else_is_left():
    entry, _ = driven(stages(ARM["adamw"], SIZE, {}), lambda *_: inf)
    assert entry.tuned is None and "diverged" in entry.void
    loss = lambda rate, *rest: inf if rate > 5e-3 else bowl(4e-3)(rate, *rest)
    entry, _ = driven(stages(ARM["adamw"], SIZE, {}), loss)
    assert entry.tuned.rate == pytest.approx(4e-3)


def test_twins_and_matrices_use_numbers_of_others():
    _, requests = driven(stages(ARM["muon int8"], SIZE, TUNED), bowl(1.0))
    final, *more = requests
    assert {x[:2] for r in more for x in r.members} == {TUNED["muon"].tuned}
    assert final.rest == TUNED["adamw"].tuned
    assert {x[:2] for x in final.members} == {TUNED["muon"].tuned}
    assert [x.seed for x in final.members] == [*SEEDS, SEEDS[0]]
    _, requests = driven(stages(ARM["muon"], SIZE, TUNED), bowl(4e-3))
    assert {x.rest for x in requests} == {TUNED["adamw"].tuned}
    _, requests = driven(stages(ARM["lion"], SIZE, TUNED), bowl(4e-4))
    assert {x.rest for x in requests} == {(0.0, 0.0)}


def test_arms_that_should_be_equal_or_close_have_more_seeds():
    """They come in full programs."""
    for name in ("muon", "adamw", "soap", "cautious adamw"):
        arm, seeds = ARM[name], () if name == "cautious adamw" else MORE_SEEDS
        assert more_seeds(arm, SIZE) == seeds
        entry, requests = driven(stages(arm, SIZE, TUNED), bowl(arm.rate, arm.decay))
        more = [x for x in requests if x.stage == "more"]
        assert tuple(x.seed for r in more for x in r.members) == seeds
        assert {x[:2] for r in more for x in r.members} <= {entry.tuned}
        assert all(len(r.members) == SIZE.members for r in more)
        assert all(r.steps == SIZE.steps for r in more)
    assert not more_seeds(ARM["muon"], SIZES["small"])


def test_an_arm_says_what_it_depends_on():
    void = {"adamw": Entry(None, "the best learning rate is the lowest one tried")}
    assert not missing(ARM["lion"], {}) and not missing(ARM["soap"], TUNED)
    assert "adamw" in missing(ARM["soap"], void)
    assert "lion" in missing(ARM["lion int8"], TUNED)


def test_arms_bring_those_they_depend_on():
    names = lambda *some: [arm.name for arm in arms_named(some)]
    assert names("muon int8") == ["adamw", "muon", "muon int8"]
    assert names("lion") == ["lion"]
    assert [arm.name for arm in arms_named(None, 2)] == ["adamw", "optax adamw"]
    with pytest.raises(ValueError, match=r"suite: there is no arm 'adam'\. Expected"):
        arms_named(["adam"])
