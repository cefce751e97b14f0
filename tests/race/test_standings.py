"""Who won, by how much, and whether it is significant."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from steepest.race import Outcome, standings, Sweep
from steepest.race._significance import compare, holm
from steepest.race.report import columns, notes, verdict
from steepest.race.report._numbers import seconds

NAN = float("nan")


def _sweep(name, ends, rates=None, seconds=1.0, begin=0.0):
    """Runs that go straight from there to their final values: (rates, seeds)."""
    ends = np.asarray(ends, float)
    metric = np.stack([begin + 0 * np.nan_to_num(ends), ends / 2, ends], axis=-1)
    return Sweep(
        name=name,
        rates=rates or tuple(10.0**-k for k in range(len(ends))),
        seeds=tuple(range(ends.shape[1])),
        steps=(0, 5, 10),
        loss=metric,
        metric=metric,
        seconds=(0.0, seconds / 2, seconds),
        compiling=1.0,
        bytes_per_param=8.0,
        parameters=5,
        planned=10,
    )


def _standings(*sweeps, better="higher", target=None):
    return standings(Outcome("p", "", "accuracy", better, target, "here", sweeps))


A = _sweep("a", [[1, 1, 1.1], [8.0, 9.0, 8.5], [5, 5, 5]])
B = _sweep("b", [[2, 2, 2], [1, 1, 1], [4, 4.1, 4.2]])


def test_the_best_is_first_at_its_best_rate():
    a, b = _standings(B, A)
    assert (a.name, a.rate, a.metric, a.edge) == ("a", 0.1, 8.5, False)
    assert (b.name, b.rate, b.edge) == ("b", 0.01, True)
    assert a.spread == pytest.approx(0.5) and a.verdict == "best" and a.p is None


def test_lower_may_be_better():
    first, second = _standings(A, B, better="lower")
    assert (first.name, first.metric, first.rate) == ("b", 1.0, 0.1)
    assert (second.name, second.rate) == ("a", 1.0)


def test_a_rate_at_which_a_run_diverged_is_not_the_best():
    row = _standings(_sweep("c", [[99, NAN, 99], [1, 1, 1]]))[0]
    assert row.rate == 0.1 and row.diverged == 1


def test_an_optimizer_that_always_diverged_is_last_and_marked():
    rows = _standings(_sweep("c", [[NAN, NAN, NAN]]), B)
    assert [row.name for row in rows] == ["b", "c"]
    assert rows[1].verdict == "diverged" and np.isnan(rows[1].metric)
    assert [row.verdict for row in _standings(_sweep("c", [[NAN, 1, 1]]))] == [
        "diverged"
    ]


def test_an_infinite_metric_has_diverged():
    assert _standings(_sweep("c", [[np.inf, 1, 1], [1, 1, 1]]))[0].rate == 0.1


def test_clear_differences_are_called_so():
    close = _sweep("d", [[8.2, 9.1, 8.3]])
    rows = {row.name: row for row in _standings(A, B, close)}
    assert rows["b"].verdict == "worse" and rows["b"].p < 0.05
    assert rows["d"].verdict in ("best", "no clear difference")
    assert {rows["a"].verdict, rows["d"].verdict} == {"best", "no clear difference"}


def test_low_metrics_are_compared_by_their_factors():
    """The spread of the worse is as large as the difference, and yet it is clear."""
    low, high = _sweep("low", [[1e-9, 3e-9, 2e-9]]), _sweep("high", [[0.1, 0.02, 0.05]])
    first, second = _standings(high, low, better="lower")
    assert first.name == "low" and second.verdict == "worse"
    # Values that may be zero have no logarithm, and accuracies are not compared by
    # ratio.
    zero = _sweep("zero", [[0.0, 0.0, 0.0]])
    assert _standings(high, zero, better="lower")[1].verdict == "no clear difference"
    ends = [[0.1, 0.02, 0.05]]
    assert _standings(_sweep("a", ends), low)[1].verdict == "no clear difference"


def test_the_compared_quantity_is_stated():
    """In the main sentence, and below the table."""
    ends = {"low": [[1e-9, 3e-9, 2e-9]], "high": [[0.1, 0.02, 0.05]]}
    low, high = (_sweep(name, ends[name], begin=1.0) for name in ends)
    zero = _sweep("zero", [[1.0, 0.0, 0.0]])
    how = {"problem": "p", "about": "", "measure": "f", "target": None, "machine": ""}
    result = Outcome(**how, better="lower", sweeps=(low, high))
    assert verdict(result).endswith("than every other (logarithms compared).")
    message = "The p-value compares logarithms of the f, that is ratios instead of"
    assert any(x.startswith(message) for x in notes(result))
    some = Outcome(**how, better="lower", sweeps=(low, high, zero))
    assert any(x.startswith("The p-value of high compares") for x in notes(some))
    rising = tuple(_sweep(name, ends[name]) for name in ends)
    best_is_high = Outcome(**how, better="higher", sweeps=rising)
    assert "logarithms" not in verdict(best_is_high) + " ".join(notes(best_is_high))


def test_a_step_has_a_median_and_a_spread():
    """One evaluation on a busy machine has little weight."""
    times = [0.0, 1.0, 2.0, 3.0, 4.1, 104.1, 105.0]
    some = _sweep("a", [[1.0]])
    many = np.zeros((1, 1, 7))
    busy = replace(
        some,
        steps=tuple(range(0, 70, 10)),
        seconds=tuple(times),
        loss=many,
        metric=many,
    )
    assert busy.step_seconds == pytest.approx(0.1)
    assert 0 < busy.step_spread < 0.01
    assert np.isnan(some.step_spread)
    assert seconds(busy.step_seconds, busy.step_spread) == "100 ± 4 ms"


def test_a_metric_that_was_never_a_number_did_not_diverge():
    numbers = _sweep("a", [[1.0, 2.0]])
    never = replace(numbers, metric=numbers.metric * NAN)
    outcome = Outcome("p", "", "f1", "higher", None, "here", (never,))
    assert verdict(outcome).startswith("No winner: the f1 was always NaN or infinite")
    assert columns(outcome)[1][0][2] == "NaN"
    metric = numbers.metric.copy()
    metric[..., 0] = NAN  # such as a precision without positives
    assert not replace(numbers, metric=metric).diverged.any()


def test_runs_that_began_with_nan_are_told_apart():
    loss = _sweep("a", [[1.0, 2.0]]).loss.copy()
    loss[:, 1] = NAN
    some = replace(_sweep("a", [[1.0, 2.0]]), loss=loss)
    outcome = Outcome("p", "", "f", "higher", None, "here", (some,))
    assert any(
        "a: in 1 of 2 runs the loss was NaN or infinite" in x for x in notes(outcome)
    )


def test_one_seed_says_nothing_of_chance():
    a, b = _standings(_sweep("a", [[1.0]]), _sweep("b", [[0.5]]))
    assert np.isnan(a.spread) and b.p is None
    assert b.verdict == "no clear difference"


def test_steps_and_seconds_to_the_target():
    a, b = _standings(A, B, target=4.25)
    # Half of 8, 9 and 8.5 is reached at step 5 from two seeds, and at 10 from one.
    assert a.steps_to_target == pytest.approx((10 + 5 + 5) / 3)
    assert a.seconds_to_target == pytest.approx((1 + 0.5 + 0.5) / 3 / 9)
    assert a.seconds_spread == pytest.approx(np.std([1, 0.5, 0.5], ddof=1) / 9)
    assert b.steps_to_target is None


def test_an_optimizer_without_a_rate():
    row = _standings(_sweep("lbfgs", [[1.0, 2.0]], rates=(None,)))[0]
    assert row.rate is None and not row.edge


few = st.lists(st.integers(-50, 50), min_size=2, max_size=6)


@given(few, few)
def test_few_or_other_seeds_are_compared_by_welchs_test(a, b):
    p, paired = compare(np.array(a[:4]), np.array(b[:4]))
    assert not paired
    assert compare(np.array(a), np.array(b), shared=False).paired is False
    if np.ptp(a[:4]) == np.ptp(b[:4]) == 0:
        assert p == (1.0 if a[0] == b[0] else 0.0)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scipy warns about equal numbers
            expected = stats.ttest_ind(a[:4], b[:4], equal_var=False).pvalue
        assert p == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_five_shared_seeds_are_compared_in_pairs():
    """A seed that is bad for all optimizers hides no difference."""
    luck = np.array([0.0, 5.0, -3.0, 8.0, 2.0])
    a, b = luck + 1, luck - [0.0, 0.1, -0.1, 0.2, 0.0]
    p, paired = compare(a, b)
    assert p == pytest.approx(stats.ttest_rel(a, b).pvalue) and paired
    assert compare(a, b).p < 1e-3 and compare(a, b, shared=False).p > 0.5
    # The p-values of tiny numbers do not underflow.
    assert compare(1e-200 * a, 1e-200 * b).p == pytest.approx(compare(a, b).p)
    row = _standings(_sweep("a", [a]), _sweep("b", [b]))[1]
    assert row.paired and row.verdict == "worse"


def test_equal_differences_are_no_proof():
    """One image of 450, from every seed: a paired test would be certain."""
    a = np.array([0.9911, 0.9933, 0.9956, 0.9933, 0.9911])
    p, paired = compare(a, (a - 1 / 450).astype(np.float32))
    assert p > 0.05 and not paired


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holms_correction(ps):
    """Never smaller than before, in the same order, and at most 1."""
    result = holm(ps)
    assert all(p <= q <= 1 for p, q in zip(ps, result, strict=True))
    assert min(result) == pytest.approx(min(1.0, len(ps) * min(ps)))
    order = np.argsort(ps, kind="stable")
    assert np.all(np.diff(np.array(result)[order]) >= 0)


def test_the_time_to_target_varies_with_the_time_of_a_step():
    """94 ± 8 ms was called sooner than 136 ± 0 ms, for steps of 0.9 ± 0.4 ms."""
    s = _sweep("a", [[1.0, 1.0]])
    steps = tuple(range(0, 50, 10))
    metric = np.linspace(0, 1, 5) + np.zeros((1, 2, 5))
    metric[0, 1, 2] = 1.0  # the second seed is there after 20 steps, the first after 40
    s = replace(s, steps=steps, metric=metric, loss=metric, planned=40)
    even = replace(s, seconds=(0.0, 10.0, 20.0, 30.0, 40.0))  # of two runs
    (row,) = _standings(even, target=1.0)
    assert row.seconds_to_target == pytest.approx(15)
    assert row.seconds_spread == pytest.approx(np.std([20, 40], ddof=1) * 0.5)
    uneven = replace(s, seconds=(0.0, 8.0, 18.0, 28.0, 40.0))
    (row,) = _standings(uneven, target=1.0)
    noise = uneven.step_spread * 30
    assert row.seconds_spread == pytest.approx(
        np.hypot(np.std([20, 40], ddof=1) * 0.5, noise)
    )
    alone = _sweep("a", [[1.0]])
    assert np.isnan(_standings(alone, target=1.0)[0].seconds_spread)
