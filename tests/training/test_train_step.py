"""One step for every optimizer."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest import contrib, make_train_step

X = jnp.linspace(-1, 1, 24).reshape(8, 3)
Y = X @ jnp.array([1.0, -2.0, 0.5]) + 0.3
LINE = {"w": jnp.zeros(3), "b": jnp.zeros(())}


def error(p, x, y):
    return jnp.mean((x @ p["w"] + p["b"] - y) ** 2)


def _begin(tx, p=LINE):
    p = jax.tree.map(jnp.array, p)
    return p, tx.init(p)


OPTIMIZERS = {
    "adam": lambda: steepest.adam(0.3),
    "lbfgs": steepest.lbfgs,
    "backtracking": lambda: steepest.chain(
        steepest.sgd(1.0), steepest.scale_by_backtracking_linesearch(20)
    ),
    "polyak": lambda: steepest.polyak_sgd(1.0),
    "momo": contrib.momo,
    "plateau": lambda: steepest.chain(steepest.adam(0.3), contrib.reduce_on_plateau()),
    "sam": lambda: contrib.sam(steepest.sgd(0.1), steepest.sgd(0.01), opaque_mode=True),
    "sophia": lambda: contrib.sophia(0.03),
    "schedule_free": lambda: contrib.schedule_free_sgd(0.2),
    "guard": lambda: steepest.guard(steepest.adam(0.3)),
    "MultiSteps": lambda: steepest.MultiSteps(steepest.sgd(0.3), 2),
    "route": lambda: steepest.route({"w": steepest.lbfgs(), "b": steepest.sgd(0.1)}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_any_optimizer_goes_down_and_compiles_once(name):
    calls = []

    def counted(p, x, y):
        calls.append(len(values))  # only called while a step is traced
        return error(p, x, y)

    tx = OPTIMIZERS[name]()
    step = make_train_step(counted, tx)
    p, state = _begin(tx)
    values = []
    for _ in range(25):
        p, state, value = step(p, state, X, Y)
        values.append(float(value))
    assert values[-1] < 0.2 * values[0]
    assert set(calls) == {0}


@pytest.mark.parametrize("make", [optax.lbfgs, optax.scale_by_backtracking_linesearch])
def test_line_searches_of_optax_go_down(make):
    """They raise an error for extra arguments that `value_fn` does not take."""
    search = make() if make is optax.lbfgs else optax.chain(optax.sgd(1.0), make(20))
    step = make_train_step(error, search)
    with jax.numpy_dtype_promotion("standard"):
        p, state = _begin(search)
        for _ in range(9):
            p, state, value = step(p, state, X, Y)
    assert value < 0.1 * error(LINE, X, Y)


def test_it_is_the_loop_that_one_would_write():
    tx = steepest.adamw(0.1)
    step = make_train_step(error, tx)
    p, state = _begin(tx)
    q, other = _begin(tx)
    for _ in range(3):
        p, state, value = step(p, state, X, Y)
        want, g = jax.value_and_grad(error)(q, X, Y)
        u, other = tx.update(g, other, q)
        q = steepest.apply_updates(q, u)
        np.testing.assert_allclose(value, want, 1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-5), p, q)


def test_pieces_are_the_whole_batch():
    tx, noise = steepest.sgd(0.1, 0.9), jnp.array(0.5)

    def loss(p, x, y, noise):
        return error(p, x, y) + noise * p["b"] ** 2, x @ p["w"]

    whole = make_train_step(loss, tx, has_aux=True)
    cut = make_train_step(loss, tx, has_aux=True, microbatch_size=2)
    p, _, (value, out) = whole(
        *_begin(tx, {**LINE, "w": jnp.ones(3)}), X, Y, noise=noise
    )
    q, _, (again, parts) = cut(
        *_begin(tx, {**LINE, "w": jnp.ones(3)}), X, Y, noise=noise
    )
    close = lambda a, b: np.testing.assert_allclose(a, b, 1e-6)
    jax.tree.map(close, (p, value, out), (q, again, parts))
    assert out.shape == (8,)


def test_inside_a_loop_of_jax():
    tx = steepest.adam(0.3)
    step = make_train_step(error, tx)

    @jax.jit
    def train(p, state):
        def body(carry, _):
            *carry, value = step(*carry, X, Y)
            return carry, value

        return jax.lax.scan(body, [p, state], length=25)

    _, values = train(*_begin(tx))
    assert values[-1] < 0.2 * values[0]


def test_the_gradient_of_lookahead_is_at_the_fast_params():
    tx = steepest.lookahead(steepest.sgd(0.3), 2, 0.5)
    step = make_train_step(error, tx)
    p = steepest.LookaheadParams.init_synced(jax.tree.map(jnp.array, LINE))
    state = tx.init(p)
    for _ in range(20):
        p, state, value = step(p, state, X, Y)
    assert value < 0.2 * error(LINE, X, Y)


def test_what_a_search_has_computed_is_not_computed_again():
    calls = []

    def loss(p):
        note = lambda x: (calls.append(1), x)[1]
        here = jax.lax.stop_gradient(p["b"])
        here = jax.pure_callback(note, jax.ShapeDtypeStruct((), jnp.float32), here)
        return error(p, X, Y) + 0 * here

    def evaluations(same_loss):
        tx = steepest.lbfgs()
        step = make_train_step(loss, tx, same_loss=same_loss)
        p, state = _begin(tx)
        calls.clear()
        for _ in range(3):
            p, state, _ = step(p, state)
        jax.block_until_ready(p)
        return len(calls)

    assert evaluations(None) == evaluations(False) - 2


def test_complex_params_go_down():
    loss = lambda p: jnp.abs(p - (1 + 2j)) ** 2
    tx = steepest.sgd(0.3)
    step = make_train_step(loss, tx)
    p = jnp.array(0j)
    state = tx.init(p)
    for _ in range(20):
        p, state, _ = step(p, state)
    np.testing.assert_allclose(p, 1 + 2j, 1e-3)


def test_old_buffers_are_given_up():
    tx = steepest.adam(0.1)
    p, state = _begin(tx)
    make_train_step(error, tx)(p, state, X, Y)
    assert p["w"].is_deleted()
    assert state[0].mu["w"].is_deleted()


@pytest.mark.parametrize(
    "call, says",
    [
        (
            lambda: make_train_step(0.1, steepest.adam(0.1)),
            "loss is a float, expected a fun",
        ),
        (
            lambda: make_train_step(error, steepest.adam),
            "tx is a function, expected a grad",
        ),
        (
            lambda: make_train_step(lambda p: p, steepest.sgd(0.1))(
                jnp.ones(2), ((), ())
            ),
            "loss returns shape (2,), expected one number",
        ),
    ],
    ids=["loss", "optimizer", "many"],
)
def test_bad_arguments(call, says, as_users_do):
    with pytest.raises(TypeError) as raised:
        call()
    assert f"make_train_step: {says}" in str(raised.value)
