"""The backtracking line search: trial by trial as in Optax, and its failures."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

from ._lines import DIFFICULT, line, searched
from ._refused import INF, NAN, NOT_FLAGS, refuses

CASES = {
    "default": {},
    "few trials": {"max_backtracking_steps": 2},
    "the gradient kept": {"store_grad": True, "decrease_factor": 0.3},
    "loosely": {"atol": 0.1, "rtol": 0.01, "slope_rtol": 0.3},
    "from above": {"increase_factor": float("inf"), "max_learning_rate": 5.0},
}
BOWL = lambda x: ((x - 1) ** 2, 2 * (x - 1))


def _make(m, **options):
    given = {"max_backtracking_steps": 15, **options}
    return m.scale_by_backtracking_linesearch(**given)


@pytest.mark.parametrize("name", list(CASES))
def test_every_trial_is_optaxs(name):
    with jax.enable_x64(True):
        ours = searched(_make(steepest, **CASES[name]))
        promotion = jax.numpy_dtype_promotion("standard")
        with promotion, jax.numpy_rank_promotion("allow"):
            theirs = searched(_make(optax, **CASES[name]))
            want = [theirs(*line(kind, k)) for kind in DIFFICULT for k in range(10)]
        found = [ours(*line(kind, k)) for kind in DIFFICULT for k in range(10)]
    assert max(len(trials) for trials, _ in want) > 2
    for (trials, end), (want_trials, want_end) in zip(found, want, strict=True):
        assert len(trials) == len(want_trials)
        np.testing.assert_allclose(trials, want_trials, 1e-10)
        np.testing.assert_allclose(end, want_end, 1e-8, 1e-12)


def test_armijo():
    """The longest step of `1, 0.8, 0.64, ...` that decreases the value enough."""
    with jax.enable_x64(True):
        search = searched(_make(steepest, slope_rtol=0.2))
        for k in range(20):
            phi, _, u = line("smooth", k)
            _, (a, *_, error) = search(phi, 1.0, u)
            if error:
                continue
            f0, slope = phi(0.0)
            good = lambda a, f0=f0, slope=slope, phi=phi, u=u: (
                phi(a * u)[0] <= f0 + 0.2 * a * slope * u
            )
            assert good(a)
            assert a == 1 or not good(a / 0.8)


def test_it_begins_a_little_above_the_last_step():
    with jax.enable_x64(True):
        search = searched(_make(steepest))
        assert search(BOWL, 0.2, 1.0)[0] == pytest.approx([0.3])
        assert search(BOWL, 0.9, 1.0)[0] == [1.0]


def test_the_value_of_a_rejected_point_is_not_stored():
    """The value belongs to a rejected trial; Optax stores it anyway."""
    with jax.enable_x64(True):
        search = searched(_make(steepest, max_backtracking_steps=3, store_grad=True))
        broken = lambda x: (1.0 - x if x else np.nan, -1.0)
        trials, (a, value, *_, error) = search(broken, 1.0, 1.0)
        assert len(trials) == 4 and (a, value, error) == (0, np.inf, np.inf)
        assert search(BOWL, 0.0, 1.0)[0] == [1.0]  # Optax keeps trying 0


def test_a_function_in_another_precision():
    """Optax cannot differentiate it."""
    tx, p = _make(steepest, store_grad=True), jnp.array([2.0])
    f = lambda p: jnp.sum(p**2).astype(jnp.float16)
    u, state = tx.update(-p, tx.init(p), p, value=f(p), grad=2 * p, value_fn=f)
    np.testing.assert_allclose(state.grad, 2 * (p + u))
    assert state.value.dtype == jnp.float32


def test_the_slope_of_complex_params():
    """`grad` and the stored gradient follow the convention of `jax.grad`."""
    z, f = jnp.array([1 + 2j, -1j]), lambda z: jnp.sum(jnp.abs(z - 1) ** 2)
    tx = _make(steepest, store_grad=True, slope_rtol=0.4)
    value, g = jax.value_and_grad(f)(z)
    u, state = tx.update(-g.conj(), tx.init(z), z, value=value, grad=g, value_fn=f)
    np.testing.assert_allclose(state.grad, jax.grad(f)(z + u), 1e-5)
    fall = state.learning_rate * 0.4 * jnp.sum(jnp.abs(g) ** 2)
    assert f(z + u) <= value - fall + 1e-5


def test_verbose_says_why(capfd):
    tx, p = _make(steepest, max_backtracking_steps=1, verbose=True), jnp.ones(1)
    tx.update(p, tx.init(p), p, value=1.0, grad=p, value_fn=jnp.sum)
    jax.effects_barrier()
    said = capfd.readouterr().out
    assert (
        "scale_by_backtracking_linesearch: no step size was accepted in 2 trials"
        in said
    )


def test_errors(as_users_do):
    with pytest.raises(TypeError, match="max_learning_rate"):
        _make(steepest, max_learning_rate=None)
    tx, p = _make(steepest), jnp.ones(2)
    known = {"value": 1.0, "grad": p, "value_fn": lambda p: jnp.sum(p)}
    for name in known:
        less = {k: x for k, x in known.items() if k != name}
        with pytest.raises(TypeError, match=f"needs `{name}`"):
            tx.update(p, tx.init(p), p, **less)
    with pytest.raises(TypeError, match=r"Unexpected keyword arguments \['batch'\]"):
        tx.update(p, tx.init(p), p, **known, batch=3)
    with pytest.raises(TypeError, match=r"value is an array of float32 of shape \(2"):
        tx.update(p, tx.init(p), p, **{**known, "value": p})
    with pytest.raises(TypeError, match="EmaState, expected a ScaleByBacktracking"):
        tx.update(p, steepest.ema(0.9).init(p), p, **known)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.scale_by_backtracking_linesearch,
        5,
        slope_rtol=[-0.1, 1.5],
        decrease_factor=[0.0, 1.0, -1.0, NAN],
        increase_factor=[0.0, -1.0, NAN],
        max_learning_rate=[0.0, -1.0, NAN, None],
        atol=[-1.0, NAN],
        rtol=[-1.0, NAN],
        store_grad=NOT_FLAGS,
        verbose=NOT_FLAGS,
    )
    refuses(
        steepest.scale_by_backtracking_linesearch,
        max_backtracking_steps=[-1, 2.5, INF, NAN, "5", None],
    )
