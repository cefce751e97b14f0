"""Similar leaves share a call, and the results are the same."""

import jax
import jax.numpy as jnp
import numpy as np

import steepest
from steepest.engine.leaves._batches import alike, batches


def test_every_place_is_in_one_batch():
    kinds = ["a"] * 13 + [None] + ["b"] * 3 + ["a"] * 2
    found = batches(kinds)
    assert sorted(k for row in found for k in row) == [*range(13), *range(14, 19)]
    assert [len(row) for row in found] == [8, 4, 2, 1, 2, 1]
    assert all(len({kinds[k] for k in row}) == 1 for row in found)


def test_only_what_is_alike_shares_a_call():
    x = jnp.ones((3, 2))
    assert alike(x) == alike(2 * x)
    assert alike(x) != alike(x.T)
    assert alike(x) != alike(x.astype("bfloat16"))
    assert alike(x) != alike(jax.device_put(x, jax.devices()[1]))


def test_leaves_on_several_devices():
    """A model placed by hand: outside `jit`, each leaf stays on its device."""
    tx = steepest.adamw(0.1)
    p = [jax.device_put(jnp.ones(3), d) for d in jax.devices()[:3]]
    u, state = tx.update(p, tx.init(p), p)
    p = steepest.apply_updates(p, u)
    for i, x in enumerate(p):
        assert x.devices() == {jax.devices()[i]} == state[0].mu[i].devices()


def test_twenty_equal_leaves_are_twenty_leaves():
    tx = steepest.chain(steepest.clip_by_global_norm(1.0), steepest.adam(0.1))
    many = [jnp.array([float(k), -1.0]) for k in range(20)]
    u, state = tx.update(many, tx.init(many), many)
    one = jnp.stack(many)
    v, kept = tx.update(one, tx.init(one), one)
    np.testing.assert_allclose(jnp.stack(u), v, rtol=1e-5)
    np.testing.assert_allclose(jnp.stack(state[1][0].nu), kept[1][0].nu, rtol=1e-5)
