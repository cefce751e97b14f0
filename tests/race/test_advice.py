"""Which optimizer to use: the rule, the reasons and the code."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.race import recommendation, results
from steepest.race._breadth import breadth
from steepest.race._choice import as_good
from steepest.race._standings import standing, standings
from steepest.race.entrants import code_of, entrant
from steepest.race.entrants._names import _USUAL
from steepest.race.report import columns, verdict
from steepest.race.report._numbers import NOTHING

from .outcomes import digits, EDGES, outcome, RATES, sweep

QUIET = {"noise": 0.0005}


def _choices(*sweeps, **changes):
    advice = recommendation(outcome(*sweeps, **changes))
    assert advice is not None
    return advice.first, advice.second


def test_a_clear_winner_is_used_whatever_it_costs():
    dear = sweep("muon", speed=9.0, state=99.0, **QUIET)
    cheap = sweep("adamw", skill=0.95, **QUIET)
    first, second = _choices(cheap, dear, target=None)
    assert first.row.name == "muon" and second.row.name == "adamw"
    assert "significantly better than every other" in first.why
    assert "significantly worse" in second.why
    assert "but its steps are faster: 1.0 ± 0.0 ms against 9.0 ± 0.0 ms" in second.why


@pytest.mark.parametrize(
    ("cheap", "target", "why", "other"),
    [
        ({"pace": 3.0, "speed": 2.0}, 0.96, "it reaches the target sooner", "later"),
        ({"speed": 0.5}, 0.999, "its steps are faster: 500 ± 0 µs against", "slower"),
        ({"state": 4.0}, 0.999, "its state is smaller: 4 against", "larger"),
    ],
    ids=["target", "step", "state"],
)
def test_ties_go_to_the_cheaper(cheap, target, why, other):
    best = sweep("muon", skill=0.985)
    first, second = _choices(sweep("adamw", skill=0.983, **cheap), best, target=target)
    assert first.row.name == "adamw" and second.row.name == "muon"
    assert f"no clear difference from muon (0.986 ± 0.001), but {why}" in first.why
    assert "the best mean, but it" in second.why and other in second.why


def test_a_small_difference_in_cost_decides_nothing():
    first, second = _choices(sweep("adamw", speed=0.95), sweep("muon", skill=0.986))
    assert first.row.name == "muon"
    assert first.why.endswith(
        "no clear difference from adamw, and none is clearly cheaper."
    )
    assert second.why.endswith("no clear difference from the best.")


def _paced(s, *paces):
    """The sweep, with these times per step in turn, in ms."""
    parts = np.resize(paces, len(s.steps) - 1) * 1e-3 * np.diff(s.steps) * s.runs
    return replace(s, seconds=(0.0, *map(float, np.cumsum(parts))))


def test_times_that_are_noise_decide_nothing():
    """The first was said to have faster steps than the second."""
    noisy = _paced(sweep("adamw", skill=0.985), 0.05, 0.212, 0.45)
    some = _paced(sweep("lion", skill=0.984), 0.168, 0.170, 0.172)
    fast = _paced(sweep("muon", skill=0.983), 0.148, 0.150, 0.152)
    assert not noisy.timed and some.timed and fast.timed
    first, second = _choices(noisy, some, fast, target=0.9)
    assert first.row.name == "adamw" and second.row.name == "muon"
    assert first.why.endswith("from lion and muon, and none is clearly cheaper.")
    headers, rows = columns(outcome(noisy, some, target=0.9))
    times = [row[headers.index("time per step")] for row in rows]
    assert times == ["< 412 µs", "170 ± 2 µs"]
    assert rows[0][headers.index("time to target")].startswith("< ")


def test_steps_below_the_resolution_have_no_time():
    lost = _paced(sweep("sgd", skill=0.9845), 0.0, 0.0, 0.0, 0.009)
    first, _ = _choices(lost, sweep("adamw"), target=None)
    assert "faster" not in first.why and "sooner" not in first.why
    for s, text in (lost, "< 1.1 µs"), (_paced(lost, 0.0), NOTHING):
        headers, rows = columns(outcome(s))
        assert rows[0][headers.index("time per step")] == text


def test_what_reaches_the_target_is_preferred_even_if_times_are_noise():
    near = _paced(sweep("adamw", skill=0.985), 0.05, 0.212, 0.45)
    highest = near.metric[RATES.index(3e-3)].max(axis=-1)
    never = replace(near, name="lion", metric=near.metric * 0.9999)
    never.metric[..., -1] = near.metric[..., -1] + 0.0001
    first, _ = _choices(never, near, target=float(highest.min()))
    assert first.row.name == "adamw"
    assert "every seed of it reaches the target, unlike lion" in first.why


def test_the_sentence_names_who_is_slower():
    best = sweep("muon", skill=0.987)
    others = sweep("adamw", skill=0.984), sweep("lion", skill=0.983, speed=2.0)
    first, _ = _choices(best, *others, target=None)
    assert first.row.name == "muon"
    assert first.why.endswith(
        "no clear difference from adamw and lion, but its steps are faster: "
        "1.0 ± 0.0 ms against 2.0 ± 0.0 ms for lion."
    )


LOST = {"limit": 1e-9}


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([sweep("lion", skill=0.9, **QUIET)], "significantly better than every other"),
        ([sweep("lion", **LOST)], "while lion diverged"),
        ([sweep("lion", **LOST), sweep("sgd", **LOST)], "while every other diverged"),
        (
            [sweep("lion", skill=0.9, **QUIET), sweep("sgd", **LOST)],
            "significantly better than lion, while sgd diverged",
        ),
    ],
    ids=["worse", "diverged", "all diverged", "both"],
)
def test_diverged_optimizers_were_not_compared(others, words):
    race = outcome(sweep("adamw", **QUIET), *others)
    assert f", {words}." in recommendation(race).first.why
    assert verdict(race).endswith(f"; {words}.")


def test_without_progress_there_is_no_winner():
    s = sweep("adamw", rates=(1e-3, 1e-2), **QUIET)
    worse = replace(s, metric=0.9 - s.metric)
    still = replace(s, name="lion", metric=s.metric[..., :1] + 0 * s.metric)
    chance = np.random.default_rng(0).normal(size=s.metric.shape) * 1e-3
    lucky = replace(s, name="sgd", metric=still.metric + chance)
    race = outcome(worse, still, lucky)
    assert race.recommendation() is None
    assert verdict(race).startswith(
        "No winner: no optimizer improved on the initial accuracy, 0.1"
    )
    assert outcome(worse, still, s).recommendation().first.row.name == "adamw"
    uneven = replace(s, metric=s.metric - np.array([0.0, 9.0, 99.0])[:, None])
    uneven.metric[..., -1] = 1.0  # gains of 1 to 100
    assert outcome(uneven).recommendation() is not None
    unknown = replace(s, metric=s.metric.copy())
    unknown.metric[..., 0] = np.inf
    assert outcome(unknown).recommendation() is not None


def test_of_equal_rates_the_middle_one_is_taken():
    """All have the accuracy 1: the lowest would be the worst choice."""
    s = sweep(rates=(1e-4, 1e-3, 1e-2, 1e-1, 1.0), limit=9)
    s.metric[:, :, -1] = 1.0
    row = standing(s, "higher")
    assert (row.rate, row.edge) == (1e-2, False)
    assert row.breadth.factor == pytest.approx(1e4)
    s.metric[3:, :, -1] = np.nan
    s.metric[2, 0, -1] += 1e-7  # rounding of the mean
    row = standing(s, "higher")
    assert (row.rate, row.edge) == (1e-3, False)
    s.metric[1:3, :, -1] = 0.9
    row = standing(s, "higher")
    assert (row.rate, row.edge) == (1e-4, True)


def test_the_more_forgiving_wins_if_all_else_is_equal():
    rates = (1e-4, 1e-3, 1e-2, 1e-1)
    wide = sweep("adamw", best=3e-3, skill=0.984, rates=rates)
    flat = replace(wide, name="lion", metric=wide.metric.copy())
    flat.metric[:, :, 1:] = wide.metric[1:2, :, 1:]
    narrow = replace(wide, metric=wide.metric.copy())
    narrow.metric[1, :, -1] += 0.001
    narrow.metric[[0, 2, 3], :, -1] = 0.2
    first, _ = _choices(narrow, flat)
    assert first.row.name == "lion"
    assert "more forgiving: ≥ " in first.why
    assert "1,000 against " in first.why


def test_few_seeds_do_not_make_a_bad_optimizer_equal():
    """The test finds no clear difference, but the mean is far behind."""
    noisy = sweep("sgd", skill=0.93, seeds=(0, 1), noise=0.02, state=0.0, speed=0.1)
    race = outcome(sweep("adamw", seeds=(0, 1), noise=0.02), noisy)
    rows = standings(race)
    assert rows[1].verdict == "no clear difference"
    assert [row.name for row in as_good(race, rows)] == ["adamw"]
    first, second = _choices(*race.sweeps)
    assert "adamw" == first.row.name and "sgd may be as good" in first.why
    assert second.row.name == "sgd"


def test_one_seed_is_said_to_be_weak():
    first, _ = _choices(sweep(seeds=(0,)), sweep("lion", seeds=(0,), state=1.0))
    assert first.row.name == "lion"
    assert first.why.endswith("With one seed, this may be chance.")


def test_a_rate_at_the_edge_asks_for_more():
    first, _ = _choices(sweep(best=1e-5), sweep("lion", skill=0.5))
    assert "1e-4 is the lowest rate tried: try lower ones too." in first.why


@pytest.mark.parametrize("name", ["nothing", "all diverged"])
def test_without_results_there_is_no_advice(name):
    assert EDGES[name]().recommendation() is None


def test_the_text_has_the_code():
    text = str(digits().recommendation())
    assert text.startswith("Use lion at 3e-4: accuracy 0.981 ± 0.004; no clear differ")
    assert "\n    tx = steepest.lion(3e-4)\nSecond choice: adamw at 3e-3: " in text


def test_the_advice_is_in_the_json():
    told = json.loads(results(digits()))
    first = told["recommendation"]["first"]
    assert first["name"] == "lion" and first["code"] == "steepest.lion(3e-4)"
    assert told["recommendation"]["second"]["learning_rate"] == 3e-3
    row = next(row for row in told["standings"] if row["name"] == "adamw")
    assert row["breadth"]["low"] < 3e-3 < row["breadth"]["high"]
    assert row["breadth"]["factor"] == row["breadth"]["high"] / row["breadth"]["low"]
    assert row["seconds_spread"] == pytest.approx(0.0, abs=1e-12)


EXPRESSIONS = {
    "adamw": "steepest.adamw(1e-2)",
    "sgd(momentum=0.9)": "steepest.sgd(1e-2, momentum=0.9)",
    "sgd(3 * rate)": "steepest.sgd(3 * 1e-2)",
    "adamw(1e-3)": "steepest.adamw(0.001)",
    "lookahead(adamw)": "steepest.lookahead(steepest.adamw(1e-2), sync_period=5, "
    "slow_step_size=0.5)",
    "chain(clip_by_global_norm(1.0), adam(b1=-0.5 + 1))": "steepest.chain("
    "steepest.clip_by_global_norm(1.0), steepest.adam(1e-2, b1=-0.5 + 1))",
    "contrib.prodigy": "steepest.contrib.prodigy(1e-2)",
    "MultiSteps(lion, 2)": "steepest.MultiSteps(steepest.lion(1e-2), 2)"
    ".gradient_transformation()",
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_the_code(text):
    assert code_of(text, rate=1e-2, steps=7) == EXPRESSIONS[text]


def test_a_schedule_is_part_of_the_code():
    code = code_of(
        "adam", rate=0.3, steps=7, schedule="linear_schedule(rate, 0, steps)"
    )
    assert code == "steepest.adam(steepest.linear_schedule(0.3, 0, 7))"


@pytest.mark.parametrize("text", [*EXPRESSIONS, *_USUAL])
def test_the_code_runs_and_makes_the_optimizer_of_the_race(text):
    """Also with the values that a race fills in."""
    if text == "lookahead":
        text = "lookahead(sgd)"
    elif text == "sam":
        text = "sam(sgd)"
    elif text == "add_noise":
        text = "chain(add_noise(0.1, 0.5), sgd)"
    ours = entrant(text, steps=7).make(1e-2)
    made = eval(code_of(text, rate=1e-2, steps=7), {"steepest": steepest})
    params = {"w": jnp.full((2, 3), 0.5)}
    if "lookahead" in text:
        params = steepest.LookaheadParams.init_synced(params)
    grads = {"w": jnp.arange(6.0).reshape(2, 3) / 7}
    results = []
    for tx in map(steepest.with_extra_args_support, (ours, made)):
        state, again = tx.init(params), lambda params, k: grads
        results.append(tx.update(grads, state, params, grad_fn=again)[0])
    for a, b in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_array_equal(a, b)


def test_good_rates_are_interpolated():
    """From 0.1 to 1.0 over three rates: half a decade is worth as much as the rest."""
    s = sweep(rates=(1e-3, 1e-2, 1e-1), seeds=(0,), times=2, limit=9)
    s.metric[:, 0, 0] = 0.0
    s.metric[:, 0, 1] = 0.96, 1.0, 0.96
    width = breadth(s, 1, "higher")
    assert width.low == pytest.approx(10**-2.5) and width.high == pytest.approx(
        10**-1.5
    )
    assert width.factor == pytest.approx(10) and not width.open
    s.metric[2, 0, 1] = 0.99
    assert breadth(s, 1, "higher").high == 1e-1 and breadth(s, 1, "higher").open
    s.metric[0, 0, 1] = np.nan
    assert breadth(s, 1, "higher").low == 1e-2
    assert standing(s, "higher").breadth == breadth(s, 1, "higher")
    # Low positive metrics are compared by their logarithms: 2% of a factor of 10^5.
    s.metric[:, 0, 0], s.metric[:, 0, 1] = 1.0, (1e-3, 1e-5, 1.25e-5)
    assert breadth(s, 1, "lower").high == 1e-1
