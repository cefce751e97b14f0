"""The zoom line search: every trial as in Optax, and Wolfe conditions as in SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import line_search

import steepest

from ._lines import DIFFICULT, line, searched
from ._refused import INF, NAN, NOT_FLAGS, refuses

CASES = {
    "default": {},
    "few trials": {"max_linesearch_steps": 6},
    "bounded": {"max_learning_rate": 3.0},
    "a small slope": {"curv_rtol": 0.01, "stepsize_precision": 1e-2},
    "exactly": {"approx_dec_rtol": None, "slope_rtol": 0.3, "curv_rtol": 0.4},
    "large leaps": {"increase_factor": 4.0, "curv_rtol": 0.2},
    "tolerant": {"tol": 0.1, "curv_rtol": 0.01, "stepsize_precision": 1e-3},
    "from one": {"initial_guess_strategy": "one", "max_learning_rate": 0.5},
    "to the end": {"max_linesearch_steps": 40, "curv_rtol": 1e-6},
}


def _make(m, **options):
    return m.scale_by_zoom_linesearch(**{"max_linesearch_steps": 20, **options})


@pytest.mark.parametrize("name", list(CASES))
def test_every_trial_is_optaxs(name):
    """Seven kinds of functions: the same trials, result and report."""
    with jax.enable_x64(True):
        ours = searched(_make(steepest, **CASES[name]))
        promotion = jax.numpy_dtype_promotion("standard")
        with promotion, jax.numpy_rank_promotion("allow"):
            theirs = searched(_make(optax, **CASES[name]))
            want = [theirs(*line(kind, k)) for kind in DIFFICULT for k in range(12)]
        found = [ours(*line(kind, k)) for kind in DIFFICULT for k in range(12)]
    assert max(len(trials) for trials, _ in want) > 3
    for (trials, end), (want_trials, want_end) in zip(found, want, strict=True):
        assert len(trials) == len(want_trials)
        np.testing.assert_allclose(trials, want_trials, 1e-7, 1e-12)
        np.testing.assert_allclose(end, want_end, 1e-6, 1e-9)


@pytest.mark.parametrize("c2", [0.9, 0.1])
def test_scipy_agrees_that_the_step_is_good(c2):
    """Both strong Wolfe conditions hold; if SciPy finds a step, so do we."""
    c1, met = 1e-4, 0
    with jax.enable_x64(True):
        tx = _make(steepest, slope_rtol=c1, curv_rtol=c2, approx_dec_rtol=None)
        search = searched(tx)
        for k in range(25):
            phi, _, u = line("smooth", k)
            _, end = search(phi, 1.0, u)
            a, value, grad = end[:3]
            f = lambda x, phi=phi: phi(float(x[0]))[0]
            df = lambda x, phi=phi: np.array([phi(float(x[0]))[1]])
            if line_search(f, df, np.zeros(1), np.array([u]), c1=c1, c2=c2)[0] is None:
                continue
            met += 1
            (f0, slope), (fa, _) = phi(0.0), phi(a * u)
            assert fa <= f0 + c1 * a * slope * u
            assert abs(grad * u) <= c2 * abs(slope * u)
            np.testing.assert_allclose(value, fa)
    assert met > 20


def test_nothing_is_finite():
    """It does not move, reports that, and starts afresh the next time."""
    with jax.enable_x64(True):
        search = searched(_make(steepest, max_linesearch_steps=5))
        nowhere = lambda x: (np.nan if x > 0 else 1.0, -1.0)
        trials, (a, value, grad, n, decrease, _) = search(nowhere, 1.0, 1.0)
        assert (a, value, grad, n, decrease) == (0, 1, -1, 5, np.inf)
        assert trials == [1, 0.5, 0.25, 0.125, 0.0625]
        trials, (a, *_) = search(lambda x: ((x - 1) ** 2, 2 * (x - 1)), 0.0, 1.0)
        assert trials == [1] and a == 1  # Optax tries 0 again and again


def test_a_direction_that_is_not_finite_is_not_taken():
    """Zero times NaN would be NaN."""
    tx, p = _make(steepest, max_linesearch_steps=3), jnp.ones(2)
    u = jnp.array([jnp.nan, 1.0])
    known = {"value": 2.0, "grad": p, "value_fn": lambda p: jnp.sum(p * p)}
    u, state = tx.update(u, tx.init(p), p, **known)
    assert not u.any() and state.learning_rate == 0 and state.value == 2


def test_uphill_it_takes_the_last_step():
    with jax.enable_x64(True):
        search = searched(_make(steepest, max_linesearch_steps=3))
        _, (a, *_) = search(lambda x: (x, 1.0), 1.0, 1.0)
        assert a == 0.25


def test_extra_arguments_reach_the_function():
    f = lambda p, scale, *, shift=0.0: jnp.sum((scale * p - shift) ** 2)
    tx, p = _make(steepest), jnp.ones(2)
    value, g = jax.value_and_grad(f)(p, 2.0, shift=1.0)
    known = {"value": value, "grad": g, "value_fn": f}
    u, state = tx.update(-g, tx.init(p), p, **known, scale=2.0, shift=1.0)
    np.testing.assert_allclose(state.value, f(p + u, 2.0, shift=1.0))
    heard = []

    def open_to_all(p, **others):
        heard.append(others)
        return jnp.sum(p**2)

    tx.update(-p, tx.init(p), p, **{**known, "value_fn": open_to_all}, batch=3)
    assert heard[0] == {"batch": 3}  # an error in Optax


def test_half_precision_is_searched_in_float32():
    """And the stored values belong to the params after rounding."""
    p = {"w": jnp.array([3.0, -1.0], jnp.bfloat16), "none": None}
    f = lambda p: jnp.sum(p["w"].astype(jnp.float32) ** 2)
    tx = steepest.chain(steepest.sgd(0.3), _make(steepest))
    value, g = jax.value_and_grad(f)(p)
    u, (_, state) = tx.update(g, tx.init(p), p, value=value, grad=g, value_fn=f)
    assert u["w"].dtype == state.grad["w"].dtype == jnp.bfloat16
    assert state.learning_rate.dtype == state.value.dtype == jnp.float32
    assert state.value == f(steepest.apply_updates(p, u))


def test_verbose_says_why(capfd):
    uphill = {"value": 1.0, "grad": jnp.ones(1), "value_fn": lambda p: jnp.sum(p)}
    tx, p = _make(steepest, max_linesearch_steps=2, verbose=True), jnp.ones(1)
    for update in (tx.update, jax.jit(lambda u, s, p: tx.update(u, s, p, **uphill))):
        more = uphill if update is tx.update else {}
        update(p, tx.init(p), p, **more)
        jax.effects_barrier()
        assert (
            "scale_by_zoom_linesearch: no step size was accepted in 2"
            in capfd.readouterr().out
        )
    tx.update(-p, tx.init(p), p, **{**uphill, "value_fn": lambda p: jnp.sum(p * p) / 2})
    assert not capfd.readouterr().out


def test_errors(as_users_do):
    with pytest.raises(ValueError, match="initial_guess_strategy is 'last'"):
        _make(steepest, initial_guess_strategy="last")
    with pytest.raises(TypeError, match="curv_rtol"):
        _make(steepest, curv_rtol="small")
    tx, p = _make(steepest), jnp.ones(2)
    known = {"value": 1.0, "grad": p, "value_fn": lambda p: jnp.sum(p)}
    state = tx.init(p)
    for name in known:
        less = {k: x for k, x in known.items() if k != name}
        with pytest.raises(TypeError, match=f"scale_by_zoom_linesearch: .*`{name}`"):
            tx.update(p, state, p, **less)
    with pytest.raises(TypeError, match="needs `params`"):
        tx.update(p, state, **known)
    with pytest.raises(TypeError, match=r"Unexpected keyword arguments \['batch'\]"):
        tx.update(p, state, p, **known, batch=3)
    for f, found in {
        lambda p: p: r"an array of float32 of shape \(2,\)",
        lambda p: (jnp.sum(p), 1): "a tuple",
        lambda p: jnp.sum(p).astype(complex): r"an array of complex64 of shape \(\)",
        lambda p: jnp.sum(p).astype(int): r"an array of int32 of shape \(\)",
    }.items():
        with pytest.raises(TypeError, match=f"value_fn returned {found}"):
            tx.update(p, state, p, **{**known, "value_fn": f})
    for other, message in [
        (
            {"value": jnp.ones(2)},
            r"value is an array of float32 of shape \(2,\), expected",
        ),
        ({"value": "low"}, "value is a str, expected one real number"),
        ({"value_fn": 3.0}, "value_fn is a float, expected a function"),
        ({"value_fn": lambda p, batch: 1.0}, "missing a required argument: 'batch'"),
        ({"value_fn": lambda: 1.0}, "with the params .*: too many positional"),
    ]:
        with pytest.raises(TypeError, match=f"scale_by_zoom_linesearch: .*{message}"):
            tx.update(p, state, p, **{**known, **other})
    with pytest.raises(TypeError, match=r"leaf \['n'\] of the params has dtype int32"):
        tx.init({"w": p, "n": jnp.arange(2)})
    with pytest.raises(
        TypeError, match="EmaState, expected a ScaleByZoomLinesearchState"
    ):
        tx.update(p, steepest.ema(0.9).init(p), p, **known)


@pytest.mark.usefixtures("as_users_do")
@pytest.mark.parametrize("name", ["updates", "params", "grad", "state's `grad`"])
@pytest.mark.parametrize(
    "odd, message",
    [
        ({"b": jnp.ones(2)}, r"leaf \['\w'\] is in the"),
        ({"a": jnp.ones(3)}, r"leaf \['a'\] has shape \(\d,\) in the"),
        ({"a": "ones"}, r"leaf \['a'\] of the .* is a str, expected an array"),
    ],
    ids=["structure", "shape", "string"],
)
def test_trees_that_do_not_fit_are_named(name, odd, message):
    tx, tree = _make(steepest), {"a": jnp.ones(2)}
    trees = dict.fromkeys(["updates", "params", "grad", "state's `grad`"], tree)
    updates, params, grad, kept = {**trees, name: odd}.values()
    state = tx.init(tree)._replace(grad=kept)
    with pytest.raises(
        (TypeError, ValueError), match=f"^scale_by_zoom_linesearch: {message}"
    ):
        known = {"value": 1.0, "value_fn": lambda p: jnp.sum(p["a"])}
        tx.update(updates, state, params, grad=grad, **known)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.scale_by_zoom_linesearch,
        5,
        max_learning_rate=[0.0, -1.0, NAN],
        tol=[-1.0, NAN],
        increase_factor=[0.0, -1.0, NAN],
        slope_rtol=[-0.1, 1.5],
        curv_rtol=[-0.1, NAN],
        approx_dec_rtol=[-0.1, NAN],
        stepsize_precision=[-0.1, NAN],
        verbose=NOT_FLAGS,
    )
    refuses(
        steepest.scale_by_zoom_linesearch,
        max_linesearch_steps=[0, -1, 2.5, INF, NAN, "5", None],
    )
