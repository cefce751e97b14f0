"""Hyperball: norms stay, steps have the size asked for, zeros are not silent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import steepest

W = jax.random.normal(jax.random.key(0), (6, 4))
STACK = jnp.stack([W, 3 * W + 1, 0.1 * W**2 + 0.1])
ADAM = steepest.scale_by_adam(0.9, 0.95)

ways = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])
radii = pytest.mark.parametrize("radius", ["init", "now"])


def _sizes(x):
    return np.sqrt((np.asarray(x, float) ** 2).sum((-2, -1)))


def _run(tx, p, steps, *, compiled=True):
    update = jax.jit(tx.update) if compiled else tx.update
    state = tx.init(p)
    for t in range(steps):
        g = jax.tree.map(lambda x, t=t: jnp.cos(3 * x + 2 * t), p)
        u, state = update(g, state, p)
        p = steepest.apply_updates(p, u)
    return p, state


def _paper(p, rate, steps):
    """AdamH for one matrix, in float64."""
    m = v = 0 * p
    size = np.linalg.norm(p)
    for t in range(1, steps + 1):
        g = np.cos(3 * p + 2 * (t - 1))
        m, v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g * g
        u = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.95**t)) + 1e-8)
        w = p - rate * size * u / np.linalg.norm(u)
        p = size * w / np.linalg.norm(w)
    return p


@ways
@radii
def test_adam_on_the_ball_is_that_of_the_paper(compiled, radius):
    tx = steepest.hyperball(ADAM, 0.05, radius=radius)
    p, _ = _run(tx, {"w": W, "none": None, "s": STACK}, 6, compiled=compiled)
    want = _paper(np.asarray(W, float), 0.05, 6)
    np.testing.assert_allclose(p["w"], want, rtol=1e-4, atol=2e-5)
    for k, one in enumerate(STACK):
        want = _paper(np.asarray(one, float), 0.05, 6)
        np.testing.assert_allclose(p["s"][k], want, rtol=1e-4, atol=2e-5)


def _scanned(tx, p, steps):
    @jax.jit
    def run(p, state):
        def step(carry, t):
            p, state = carry
            g = jax.tree.map(lambda x: jnp.cos(3 * x + t.astype(x.dtype)), p)
            u, state = tx.update(g, state, p)
            return (steepest.apply_updates(p, u), state), None

        return jax.lax.scan(step, (p, state), jnp.arange(steps))[0]

    return run(p, tx.init(p))


@pytest.mark.parametrize(
    ("dtype", "radius", "slack"),
    [
        ("float32", "init", 1e-6),
        ("float32", "now", 2e-5),
        ("bfloat16", "init", 4e-3),
        ("float16", "init", 1e-3),
    ],
)
def test_norms_stay_over_a_thousand_steps(dtype, radius, slack):
    tx = steepest.hyperball(ADAM, 0.02, radius=radius)
    p = STACK.astype(dtype)
    q, _ = _scanned(tx, p, 1000)
    assert q.dtype == p.dtype and np.abs(np.asarray(q - p, float)).max() > 0.1
    np.testing.assert_allclose(_sizes(q), _sizes(p), rtol=slack)


def test_a_step_has_the_size_asked_for():
    """Along the sphere: two steps of size `h` at right angles to `p`."""
    p = jnp.array([[3.0, 0.0], [0.0, 0.0]])
    g = jnp.array([[0.0, 0.0], [0.0, 7.0]])
    tx = steepest.hyperball(steepest.identity(), 0.1)
    u, _ = tx.update(g, tx.init(p), p)
    angle = np.arctan2(0.1, 1)
    want = 3 * np.array([[np.cos(angle) - 1, 0], [0, -np.sin(angle)]])
    np.testing.assert_allclose(u, want, atol=1e-6)


def test_the_size_of_the_direction_does_not_matter():
    for c in (1e-30, 1.0, 1e30):
        tx = steepest.hyperball(steepest.scale(c), 0.1)
        u, _ = tx.update(W, tx.init(W), W)
        want = _paper_step(np.asarray(W, float), np.asarray(W, float), 0.1)
        np.testing.assert_allclose(u, want, rtol=1e-4, atol=1e-5)


def _paper_step(p, g, rate):
    w = p - rate * np.linalg.norm(p) * g / np.linalg.norm(g)
    return np.linalg.norm(p) * w / np.linalg.norm(w) - p


def test_each_matrix_of_a_stack_has_its_own_norm():
    tx = steepest.hyperball(ADAM, 0.05)
    state = tx.init(STACK)
    assert state[1].radius.shape == (3,)
    np.testing.assert_allclose(state[1].radius, _sizes(STACK), rtol=1e-6)
    whole = steepest.hyperball(ADAM, 0.05, ndim=3).init(STACK)
    assert whole[1].radius.shape == ()


def test_a_matrix_of_zeros_warns_and_stays():
    tx = steepest.hyperball(ADAM, 0.1)
    p = STACK.at[1].set(0.0)
    with pytest.warns(UserWarning, match=r"shape \(3, 6, 4\) has a matrix of zeros"):
        state = tx.init(p)
    u, state = tx.update(jnp.ones_like(p), state, p)
    assert np.all(np.isfinite(u)) and np.all(u[1] == 0) and np.any(u[0] != 0)
    jax.jit(tx.init)(p)  # cannot know
    tx.init({"empty": jnp.zeros((0, 3)), "none": None})


def test_a_zero_direction_leaves_it_as_it_is():
    tx = steepest.hyperball(steepest.identity(), 0.1)
    p = STACK.astype("bfloat16")
    u, _ = tx.update(jnp.zeros_like(p), tx.init(p), p)
    assert np.all(np.asarray(u, float) == 0)


def test_a_step_onto_zero_is_finite():
    """`w` is zero if the step goes to the center of the ball."""
    tx = steepest.hyperball(steepest.identity(), 1.0)
    p = jnp.array([[2.0, 0.0]])
    u, _ = tx.update(p, tx.init(p), p)
    assert np.all(np.isfinite(u))


def test_params_loaded_after_init():
    """With `init` they get the initial norm, with `now` they keep theirs."""
    for radius, factor in (("init", 1.0), ("now", 5.0)):
        tx = steepest.hyperball(ADAM, 0.01, radius=radius)
        state, p = tx.init(W), 5 * W
        u, state = tx.update(jnp.ones_like(W), state, p)
        np.testing.assert_allclose(_sizes(p + u), factor * _sizes(W), rtol=1e-5)
        np.testing.assert_allclose(state[1].radius, factor * _sizes(W), rtol=1e-5)


def test_a_schedule():
    tx = steepest.hyperball(ADAM, steepest.linear_schedule(0.1, 0.0, 10))
    _, state = _run(tx, W, 5)
    rate = steepest.read(state, "learning_rate", tx)
    np.testing.assert_allclose(rate, 0.06, rtol=1e-5)
    tx = steepest.hyperball(ADAM, lambda t: jnp.where(t == 0, 0.1, 0.0))
    one, _ = _run(tx, W, 1)
    two, _ = _run(tx, W, 2)
    np.testing.assert_allclose(two, one, rtol=1e-5)


def test_memory_in_half_precision_keeps_the_norms():
    tx = steepest.keeping(steepest.hyperball(ADAM, 0.1), memory_dtype="bfloat16")
    state = tx.init(STACK)
    assert state[0].mu.dtype == jnp.bfloat16
    assert state[1].radius.dtype == jnp.float32


@pytest.mark.parametrize(
    "inner", [steepest.adamw(0.1), steepest.guard(steepest.adam(0.1))]
)
def test_an_optimizer_is_no_direction(inner, as_users_do):
    """It would go uphill."""
    with pytest.raises(ValueError, match="hyperball: inner contains a learning rate"):
        steepest.hyperball(inner, 0.1)


def test_around_a_cautious_direction():
    tx = steepest.hyperball(steepest.cautious(ADAM, descent=False), 0.05)
    p, _ = _run(tx, {"w": W, "none": None}, 4)
    np.testing.assert_allclose(_sizes(p["w"]), _sizes(W), rtol=1e-6)


def test_it_can_be_described_and_written():
    tx = steepest.hyperball(ADAM, 0.1, radius="now")
    assert "hyperball" in str(steepest.describe(tx, {"w": W}))
    assert steepest.from_config(steepest.to_config(tx)) == tx


def test_norms_are_of_the_whole_matrix_under_jit():
    """Rows on four devices, columns on two."""
    mesh = jax.make_mesh((2, 4), ("x", "y"))
    p = jnp.cos(jnp.arange(64.0)).reshape(8, 8)
    split = jax.device_put(p, NamedSharding(mesh, PartitionSpec("y", "x")))
    tx = steepest.hyperball(ADAM, 0.05)
    got, _ = _run(tx, split, 3)
    want, _ = _run(tx, p, 3)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(_sizes(got), _sizes(p), rtol=1e-6)


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), "0.1", None])
def test_bad_rates(rate, as_users_do):
    with pytest.raises((TypeError, ValueError), match="hyperball: learning_rate is"):
        steepest.hyperball(ADAM, rate)


@pytest.mark.parametrize("ndim", [0, -1, 1.5])
def test_bad_numbers_of_axes(ndim, as_users_do):
    with pytest.raises((TypeError, ValueError), match="hyperball: ndim is"):
        steepest.hyperball(ADAM, 0.1, ndim=ndim)
