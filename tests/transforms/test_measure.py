"""Measuring updates without changing them."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

P = {"a": jnp.array([1.0, 2.0, 2.0]), "b": None}
G = {"a": jnp.array([0.0, 3.0, 4.0]), "b": None}


def _norm(tree):
    return jnp.sqrt(sum(jnp.sum(x * x) for x in jax.tree.leaves(tree)))


def _two(tree):
    return {"norm": _norm(tree), "size": jnp.array(3)}


MAKERS = {
    "snapshot": lambda m: m.snapshot("two", _two),
    "measure_with_ema": lambda m: m.measure_with_ema(_norm, 0.9),
    "measure_with_ema, biased": lambda m: m.measure_with_ema(
        lambda g: [_norm(g), jnp.max(g["a"])], 0.5, False, jnp.bfloat16
    ),
    "monitor": lambda m: m.monitor(
        {
            "z": _two,
            "a": m.measure_with_ema(_norm, 0.9),
            "twice": m.scale(2.0),
        }
    ),
    "a chain": lambda m: m.chain(
        m.snapshot("before", _norm), m.scale(2.0), m.monitor({"after": _norm})
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_same_as_optax(name):
    ours, theirs = (MAKERS[name](m) for m in (steepest, optax))
    state, other = ours.init(P), theirs.init(P)
    assert str(jax.tree.structure(state)) == str(jax.tree.structure(other))
    for t in range(3):
        g = jax.tree.map(lambda x, t=t: x * (t + 1), G)
        u, state = ours.update(g, state, P)
        with jax.numpy_dtype_promotion("standard"):
            want, other = theirs.update(g, other, P)
    assert str(jax.tree.structure(state)) == str(jax.tree.structure(other))
    for x, y in zip(
        jax.tree.leaves((u, state)), jax.tree.leaves((want, other)), strict=True
    ):
        assert x.dtype == y.dtype
        tolerance = 1e-2 if "biased" in name else 1e-5  # Optax averages in bfloat16
        np.testing.assert_allclose(
            x.astype(float), y.astype(float), tolerance, tolerance
        )


def test_updates_pass_as_they_are():
    for tx in (steepest.snapshot("n", _norm), steepest.monitor({"n": _norm})):
        u, _ = tx.update(G, tx.init(P), P, value=1.0)
        assert u is G


def test_names_are_found_again():
    tx = MAKERS["a chain"](steepest)
    _, state = tx.update(G, tx.init(P), P)
    assert steepest.tree.get(state, "before") == 5
    assert steepest.tree.get(state, "after") == 10


def test_a_snapshot_can_be_scanned_and_begins_with_the_params():
    tx = steepest.snapshot("norm", _norm)
    state = tx.init(P)
    assert state.measurement["norm"] == 3
    step = lambda state, _: (tx.update(G, state, P)[1], None)
    state, _ = jax.lax.scan(step, state, None, length=2)
    assert state.measurement["norm"] == 5


def test_a_mean_can_be_scanned_also_of_integers():
    """Optax's mean is an integer before the first step, and a float after it."""
    tx = steepest.measure_with_ema(_two, 0.9)
    state = tx.init(P)
    assert state[1].ema["size"].dtype == jnp.float32

    def step(state, _):
        u, state = tx.update(G, state, P)
        return state, u

    state, u = jax.lax.scan(step, state, None, length=2)
    np.testing.assert_allclose(u["size"], [3, 3], rtol=1e-5)
    np.testing.assert_allclose(u["norm"], [5, 5], rtol=1e-5)


@pytest.mark.parametrize("name", ["snapshot", "measure_with_ema", "monitor"])
def test_init_takes_shapes(name):
    tx = MAKERS[name](steepest)
    found = tx.init(jax.eval_shape(lambda: P))
    kinds = lambda tree: [(x.shape, x.dtype) for x in jax.tree.leaves(tree)]
    assert kinds(found) == kinds(tx.init(P))


def test_measures_hear_extra_arguments():
    def update(g, state, p=None, *, value, **extra):
        return value, state

    heard = steepest.GradientTransformationExtraArgs(steepest.init_empty_state, update)
    tx = steepest.monitor({"loss": heard, "norm": _norm})
    _, state = tx.update(G, tx.init(P), P, value=7.0)
    assert state.measurements == {"loss": 7.0, "norm": 5.0}


def test_nothing_is_measured_before_the_first_step():
    assert steepest.monitor({"norm": _norm}).init(P).measurements == {}
    assert steepest.monitor({}).update(G, steepest.monitor({}).init(P))[1] == ({}, ())


@pytest.mark.usefixtures("as_users_do")
def test_what_is_no_measure_is_refused():
    with pytest.raises(
        TypeError, match=r"monitor: measures.'norm'. is a int, expected a func"
    ):
        steepest.monitor({"norm": 3})


@pytest.mark.usefixtures("as_users_do")
@pytest.mark.parametrize(
    "call, said",
    [
        (
            lambda: steepest.snapshot(3, _norm),
            "snapshot: measure_name is a int, expected a",
        ),
        (
            lambda: steepest.snapshot("x", 3),
            "snapshot: measure is a int, expected a func",
        ),
        (
            lambda: steepest.measure_with_ema(3, 0.9),
            "measure_with_ema: measure is a int",
        ),
        (
            lambda: steepest.monitor([_norm]),
            "monitor: measures is a list, expected a dict",
        ),
        (
            lambda: steepest.monitor({"x": _norm}).update(G, ()),
            "monitor: the state is a tuple, expected a MonitorState",
        ),
    ],
    ids=["name", "snapshot", "mean", "list", "state"],
)
def test_what_is_refused(call, said):
    with pytest.raises(TypeError, match=said):
        call()


@pytest.mark.parametrize("g", [1.0, np.float32(1.0)], ids=["weak", "strong"])
def test_weakly_typed_params_compile_once(g):
    """In Optax twice, since the first measurement is weakly typed."""
    p, g = jnp.array(1.0), jnp.array(g)
    assert p.weak_type
    tx, traces = steepest.snapshot("size", jnp.abs), []

    @jax.jit
    def step(g, state, p):
        traces.append(None)
        return tx.update(g, state, p)

    state = tx.init(p)
    for _ in range(3):
        _, state = step(g, state, p)
    assert len(traces) == 1 and not state.measurement["size"].weak_type
