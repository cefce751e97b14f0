"""Decaying noise, the same as Optax's for the same key."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

G = {"w": jnp.ones((3, 2)), "b": [jnp.zeros(2), None]}
KEYS = {
    "integer": lambda: 5,
    "numpy": lambda: np.int32(5),
    "array": lambda: jnp.array(5),
    "key": lambda: jax.random.key(5),
    "old key": lambda: jax.random.PRNGKey(5),
}


def _step(m, key, g, eta=0.1, gamma=0.55):
    tx = m.add_noise(eta, gamma, key)
    return tx.update(g, tx.init(g))


@pytest.mark.parametrize("name", KEYS)
def test_a_key_of_any_kind(name):
    u, state = _step(steepest, KEYS[name](), G)
    with jax.numpy_dtype_promotion("standard"):
        want, other = _step(optax, 5, G)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-6), u, want)
    assert state._fields == other._fields
    assert state.rng_key == other.rng_key
    assert state.rng_key.dtype == other.rng_key.dtype


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_numbers_of_every_dtype_are_optaxs(dtype):
    """Up to the rounding of the sum, which is computed in float32 here."""
    g = jnp.zeros(3, dtype)
    u, _ = _step(steepest, 5, g)
    with jax.numpy_dtype_promotion("standard"):
        want, _ = _step(optax, 5, g)
    assert u.dtype == g.dtype
    np.testing.assert_allclose(
        u.astype(complex), want.astype(complex), 1e-2 if dtype != "complex64" else 1e-6
    )


def test_another_implementation_of_keys():
    key = jax.random.key(0, impl="rbg")
    tx = steepest.add_noise(0.1, 0.5, key)
    state = tx.init(G)
    assert state.rng_key.dtype == key.dtype
    assert tx.update(G, state)[1].rng_key.dtype == key.dtype


def test_the_variance_is_what_the_paper_says():
    eta, gamma, g = 0.3, 0.55, jnp.zeros(20000)
    tx = steepest.add_noise(eta, gamma, 0)
    state = tx.init(g)
    update = jax.jit(tx.update)
    for t in range(1, 5):
        u, state = update(g, state)
        np.testing.assert_allclose(jnp.var(u), eta / t**gamma, rtol=0.05)
        np.testing.assert_allclose(jnp.mean(u), 0, atol=0.02)
    assert state.count == 4


def test_steps_and_leaves_differ():
    g = {"a": jnp.zeros(4), "b": jnp.zeros(4)}
    tx = steepest.add_noise(0.1, 0.0, 0)
    u, state = tx.update(g, tx.init(g))
    v, _ = tx.update(g, state)
    rows = [u["a"], u["b"], v["a"], v["b"]]
    assert len({tuple(x.tolist()) for x in rows}) == 4


def test_without_variance_there_is_no_noise():
    u, _ = _step(steepest, 0, G, eta=0.0)
    np.testing.assert_array_equal(u["w"], G["w"])


def test_keys_may_be_mapped_over():
    found = jax.vmap(lambda key: _step(steepest, key, jnp.zeros(3))[0])(jnp.arange(2))
    for k in range(2):
        want, _ = _step(steepest, k, jnp.zeros(3))
        np.testing.assert_allclose(found[k], want, rtol=1e-6)


def test_without_a_key_it_says_so():
    with pytest.warns(UserWarning, match="add_noise: got no `key`"):
        tx = steepest.add_noise(0.1, 0.5)
    assert tx.init(G).rng_key == jax.random.key(0)


def test_seed_is_the_old_name():
    with pytest.warns(DeprecationWarning, match="add_noise: `seed` is deprecated"):
        tx = steepest.add_noise(0.1, 0.5, seed=7)
    assert tx.init(G).rng_key == jax.random.key(7)


def test_what_is_refused(as_users_do):
    with pytest.raises(ValueError, match="add_noise: got both `key` and `seed`"):
        steepest.add_noise(0.1, 0.5, 0, seed=0)
    for key in ("seed", 1.5, True, jnp.ones(3), [0]):
        with pytest.raises(
            TypeError, match=r"add_noise: key is .*, expected a whole number"
        ):
            steepest.add_noise(0.1, 0.5, key)
    tx = steepest.add_noise(0.1, 0.5, 0)
    with pytest.raises(
        TypeError, match="add_noise: the state is a EmptyState, expected a A"
    ):
        tx.update(G, steepest.EmptyState())
    with pytest.raises(
        TypeError, match=r"add_noise: leaf \['w'\] of the updates is a s"
    ):
        tx.update({"w": "x"}, tx.init(G))


def test_integers_get_real_noise():
    tx = steepest.add_noise(0.1, 0.5, 0)
    u, _ = tx.update(jnp.ones(3, int), tx.init(G))
    assert u.dtype == jnp.float32 and float(jnp.std(u)) > 0
    with pytest.raises(ValueError, match=r"add_noise: eta is -0\.1"):
        steepest.add_noise(-0.1, 0.5, 0)
