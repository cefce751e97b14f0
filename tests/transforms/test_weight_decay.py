"""Decoupled weight decay."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

p = {"w": jnp.array([10.0, -30.0]), "head": [jnp.array(30.0), jnp.array(40.0)]}
g = {"w": jnp.array([1.0, 2.0]), "head": [jnp.array(3.0), jnp.array(4.0)]}


def _step(tx):
    return tx.update(g, tx.init(p), p)[0]


def _assert_decayed(updates, w=0.0, first=0.0, second=0.0):
    """Each leaf is its gradient plus this multiple of its param."""
    shares = {"w": w, "head": [first, second]}
    wanted = jax.tree.map(lambda a, g, p: g + a * p, shares, g, p)
    jax.tree.map(lambda u, x: np.testing.assert_allclose(u, x, 1e-6), updates, wanted)


@pytest.mark.parametrize("decay", [0.1, 2, jnp.array(0.1)])
def test_a_share_of_the_params_is_added(decay):
    share = float(decay)
    _assert_decayed(_step(steepest.add_decayed_weights(decay)), share, share, share)


def test_nothing_decays_by_default():
    _assert_decayed(_step(steepest.add_decayed_weights()))


def test_without_decay_the_params_are_not_read():
    """Zero times an infinite weight would be NaN, and reading it takes time."""
    tx = steepest.add_decayed_weights(0.0)
    wild = jax.tree.map(lambda x: x * jnp.inf, p)
    _assert_decayed(tx.update(g, tx.init(p), wild)[0])
    with pytest.raises(ValueError, match="needs `params`"):
        tx.update(g, tx.init(p))


def test_the_decay_may_be_a_schedule():
    tx = steepest.add_decayed_weights(lambda t: 0.5 * t.astype(float))
    state = tx.init(p)
    for t in range(3):
        assert state == steepest.WeightDecaySchedule(count=t)
        updates, state = tx.update(g, state, p)
        _assert_decayed(updates, 0.5 * t, 0.5 * t, 0.5 * t)


def test_a_mask_of_the_same_structure_chooses_leaves():
    mask = {"w": True, "head": [False, True]}
    updates = _step(steepest.add_decayed_weights(0.1, mask))
    _assert_decayed(updates, w=0.1, second=0.1)


def test_a_mask_may_say_one_thing_of_a_subtree():
    updates = _step(steepest.add_decayed_weights(0.1, {"w": False, "head": True}))
    _assert_decayed(updates, first=0.1, second=0.1)


def test_a_mask_may_be_a_function_of_the_params():
    """As commonly used to decay matrices but not biases."""

    def has_axes(params):
        return jax.tree.map(lambda x: x.ndim > 0, params)

    _assert_decayed(_step(steepest.add_decayed_weights(0.1, has_axes)), w=0.1)


def test_a_schedule_goes_with_a_mask():
    tx = steepest.add_decayed_weights(lambda t: 0.1, {"w": True, "head": False})
    state = tx.init(p)
    assert state == steepest.MaskedState(steepest.WeightDecaySchedule(count=0))
    updates, state = tx.update(g, state, p)
    _assert_decayed(updates, w=0.1)
    assert state.inner_state.count == 1


def test_float32_params_get_float32_decay_for_half_gradients():
    """In bfloat16, adding the decay of a large weight would round the gradient away."""
    tx = steepest.add_decayed_weights(1.0)
    x = jnp.array([1.0009765625])
    u, _ = tx.update(jnp.zeros(1, jnp.bfloat16), tx.init(x), x)
    np.testing.assert_array_equal(u, x)


def test_the_decay_may_be_mapped_over():
    def first(decay):
        return _step(steepest.add_decayed_weights(decay))["head"][0]

    np.testing.assert_allclose(jax.vmap(first)(jnp.array([0.0, 0.1])), [3, 6])


@pytest.mark.parametrize("decay", [0.1, lambda t: 0.1])
@pytest.mark.parametrize("mask", [None, {"w": True, "head": False}])
def test_missing_params_are_asked_for(decay, mask):
    tx = steepest.add_decayed_weights(decay, mask)
    with pytest.raises(ValueError) as caught:
        tx.update(g, tx.init(p))
    assert str(caught.value) == (
        "add_decayed_weights: `update` needs `params` and was called without it. "
        "Call `tx.update(grads, state, params)`."
    )


def test_an_infinite_decay_is_refused():
    said = "add_decayed_weights: weight_decay is inf, expected a number that is finite"
    with pytest.raises(ValueError, match=said):
        steepest.add_decayed_weights(float("inf"))


def test_a_decay_that_the_learning_rate_does_not_multiply():
    p, g = jnp.array([2.0]), jnp.array([0.0])
    for rate in (0.1, 1.0):
        tx = steepest.chain(
            steepest.scale_by_adam(),
            steepest.scale_by_learning_rate(rate, flip_sign=False),
            steepest.add_decayed_weights(0.5),
            steepest.scale(-1),
        )
        u, _ = tx.update(g, tx.init(p), p)
        np.testing.assert_allclose(u, [-1.0])


# Cautious weight decay.

G = jnp.array([1.0, -1.0, 0.0, 1.0, -1e-30])
X = jnp.array([5.0, 5.0, 5.0, 0.0, 1e-30])
WANTED = np.array([1.5, -1.0, 0.5, 1.0, -1e-30])  # decays where g x >= 0


def _cautious(tx, steps=1):
    tree, state = {"w": X, "b": X}, tx.init({"w": X, "b": X})
    for _ in range(steps):
        u, state = jax.jit(tx.update)({"w": G, "b": G}, state, tree)
    return u


@pytest.mark.parametrize("mask", [None, {"w": True, "b": False}, "w"])
@pytest.mark.parametrize(
    "decay",
    [
        0.1,
        np.float32(0.1),
        jnp.array(0.1),
        lambda t: 0.1,
        lambda t: jnp.array(0.1),
        steepest.constant_schedule(0.1),
    ],
    ids=["float", "numpy", "jax", "schedule", "of arrays", "ours"],
)
def test_cautious_decay_for_every_kind_of_number_and_mask(decay, mask):
    """No kind of number turns the caution off: dion once lost it for a tensor."""
    u = _cautious(steepest.add_cautious_weight_decay(decay, mask), 2)
    np.testing.assert_allclose(u["w"], WANTED, rtol=1e-6)
    np.testing.assert_allclose(u["b"], WANTED if mask is None else G, rtol=1e-6)


def test_a_traced_cautious_decay():
    step = lambda decay: _cautious(steepest.add_cautious_weight_decay(decay))["w"]
    found = jax.vmap(step)(jnp.array([0.0, 0.1]))
    np.testing.assert_allclose(found, [G, WANTED], rtol=1e-6)


def test_a_cautious_schedule_moves_on():
    tx = steepest.add_cautious_weight_decay(lambda t: 0.1 * t.astype(float), "w")
    for t in range(3):
        u = _cautious(tx, t + 1)
        np.testing.assert_allclose(u["w"], G + t * (WANTED - G), rtol=1e-6)


def test_cautious_adamw_against_the_paper():
    """`x <- x - rate (u + decay 1[u x >= 0] x)`, in float64."""
    tx = steepest.chain(
        steepest.scale_by_adam(),
        steepest.add_cautious_weight_decay(0.3),
        steepest.scale_by_learning_rate(0.05),
    )
    q = jnp.cos(jnp.arange(12.0))
    state, want = tx.init(q), np.asarray(q, float)
    m = v = 0 * want
    for t in range(1, 8):
        g = jnp.sin(3 * q + t)
        u, state = tx.update(g, state, q)
        q = steepest.apply_updates(q, u)
        h = np.sin(3 * want + t)
        m, v = 0.9 * m + 0.1 * h, 0.999 * v + 0.001 * h * h
        step = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        want = want - 0.05 * (step + 0.3 * (step * want >= 0) * want)
    np.testing.assert_allclose(q, want, rtol=1e-4, atol=1e-5)


def test_complex_weights_decay_if_the_angle_is_at_most_90_degrees():
    tx = steepest.add_cautious_weight_decay(0.5)
    x = jnp.array([2.0, 2j, 2.0]).astype("complex64")
    g = jnp.array([1 + 1j, 1j, -1 + 1j]).astype("complex64")
    u, _ = tx.update(g, tx.init(x), x)
    np.testing.assert_allclose(u, [2 + 1j, 2j, -1 + 1j])


def test_without_cautious_decay_the_params_are_not_read():
    tx = steepest.add_cautious_weight_decay(0.0)
    u, _ = tx.update(G, tx.init(G), X * jnp.inf)
    np.testing.assert_array_equal(u, G)
