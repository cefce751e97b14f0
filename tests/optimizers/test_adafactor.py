"""Adafactor."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

from ..unusual import ODD
from ._refused import NAN, NOT_DTYPES, NOT_FLAGS, refuses

G = jnp.array([[1.0, -2.0, 4.0], [0.5, 1.0, -2.0]])
# shape -> shapes of row, column and full memory; as in Optax, minimal size 3
SHAPES = {
    (): ((1,), (1,), ()),
    (5,): ((1,), (1,), (5,)),
    (3, 4): ((3,), (4,), (1,)),
    (4, 3): ((3,), (4,), (1,)),
    (3, 3): ((3,), (3,), (1,)),
    (5, 2): ((1,), (1,), (5, 2)),
    (2, 3, 4): ((2, 3), (2, 4), (1,)),
    (4, 3, 2): ((3, 2), (4, 2), (1,)),
    (3, 4, 3): ((3, 3), (3, 4), (1,)),
    (3, 1, 4): ((3, 1), (1, 4), (1,)),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_is_kept(shape):
    state = steepest.scale_by_factored_rms(min_dim_size_to_factor=3).init(
        jnp.zeros(shape)
    )
    found = state.v_row.shape, state.v_col.shape, state.v.shape
    assert found == SHAPES[shape]
    other = optax.scale_by_factored_rms(min_dim_size_to_factor=3).init(jnp.zeros(shape))
    assert found == (other.v_row.shape, other.v_col.shape, other.v.shape)


def _first(tx, g):
    return tx.update(g, tx.init(g), g)


def test_squares_of_rank_one_are_factored_without_loss():
    """Then the update is the sign, as without factoring."""
    tx = steepest.scale_by_factored_rms(min_dim_size_to_factor=2)
    u, _ = _first(tx, G)
    np.testing.assert_allclose(u, jnp.sign(G), rtol=1e-6)
    whole, _ = _first(steepest.scale_by_factored_rms(factored=False), G)
    np.testing.assert_allclose(whole, jnp.sign(G), rtol=1e-6)


def test_the_decay_is_that_of_the_paper():
    """`1 - t^-0.8`: the initial zeros are forgotten at once."""
    tx = steepest.scale_by_factored_rms(epsilon=0.0)
    _, state = _first(tx, jnp.array([2.0]))
    np.testing.assert_allclose(state.v, [4.0], rtol=1e-6)
    _, state = tx.update(jnp.array([0.0]), state, jnp.array([0.0]))
    np.testing.assert_allclose(state.v, [4 * (1 - 2**-0.8)], rtol=1e-6)


def test_a_decay_of_your_own():
    heard = []

    def decay(i, exponent):
        heard.append((int(i), exponent))
        return 0.25

    tx = steepest.scale_by_factored_rms(
        decay_rate=0.5, step_offset=3, decay_rate_fn=decay
    )
    _, state = _first(tx, jnp.array([2.0]))
    assert heard == [(-3, 0.5)]
    np.testing.assert_allclose(state.v, [3.0], rtol=1e-6)


def test_before_the_offset_the_last_gradient_is_all():
    """Optax takes a power of zero or a negative number there."""
    tx = steepest.scale_by_factored_rms(step_offset=2)
    state = tx.init(jnp.ones(1))
    for g in (3.0, -5.0):
        u, state = tx.update(jnp.array([g]), state, jnp.ones(1))
        np.testing.assert_allclose(u, [np.sign(g)], rtol=1e-6)


@pytest.mark.parametrize("factored", [False, True])
def test_zeros_stay_zeros_also_without_epsilon(factored):
    tx = steepest.scale_by_factored_rms(factored, 0.8, 0, 2, 0.0)
    with jax.debug_nans(True):
        u, _ = _first(tx, jnp.zeros((2, 3)))
    np.testing.assert_array_equal(u, jnp.zeros((2, 3)))


def test_rows_of_very_different_size():
    """The product of their means overflows float32; the update has size one."""
    g = jnp.array([[1e-12, 1e-12], [1e18, 1e18]])
    u, _ = _first(steepest.scale_by_factored_rms(min_dim_size_to_factor=2), g)
    np.testing.assert_allclose(u, jnp.ones((2, 2)), rtol=1e-5)


def test_half_precision_keeps_squares_in_float32():
    g = {"w": jnp.ones((2, 3), jnp.bfloat16), "b": jnp.ones(2, jnp.bfloat16)}
    u, state = _first(steepest.scale_by_factored_rms(min_dim_size_to_factor=2), g)
    assert {x.dtype for x in jax.tree.leaves(u)} == {jnp.dtype(jnp.bfloat16)}
    kept = jax.tree.leaves(state._replace(count=None))
    assert {x.dtype for x in kept} == {jnp.dtype(jnp.float32)}


def test_steps_are_relative_to_the_param():
    tx = steepest.adafactor(0.1)
    p = {"a": jnp.full((2, 2), 3.0), "b": jnp.zeros(2)}
    u, _ = tx.update(jax.tree.map(jnp.ones_like, p), tx.init(p), p)
    np.testing.assert_allclose(u["a"], jnp.full((2, 2), -0.3), rtol=1e-5)
    np.testing.assert_allclose(u["b"], jnp.full(2, -1e-4), rtol=1e-5)


def test_what_is_not_asked_for_is_not_there():
    links = lambda **options: len(steepest.adafactor(**options).init(G))
    assert links() == 4
    assert links(learning_rate=0.1, momentum=0.9, weight_decay_rate=0.0) == 7
    assert links(clipping_threshold=None, multiply_by_parameter_scale=False) == 2


def test_the_mean_of_steps_has_a_dtype():
    state = steepest.adafactor(0.1, momentum=0.9, dtype_momentum=jnp.bfloat16).init(G)
    assert steepest.tree.get(state, "ema").dtype == jnp.bfloat16


@pytest.mark.usefixtures("as_users_do")
def test_what_is_refused():
    with pytest.raises(ODD, match=r"^adafactor: decay_rate is -1"):
        steepest.adafactor(decay_rate=-1)
    with pytest.raises(ODD, match="`update` needs `params`"):
        tx = steepest.adafactor(0.1)
        tx.update(G, tx.init(G))


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.scale_by_factored_rms,
        min_dim_size_to_factor=[-1, NAN, "128", None],
        factored=NOT_FLAGS,
        decay_rate_fn=[0.8, None],
    )
    refuses(
        steepest.adafactor,
        multiply_by_parameter_scale=NOT_FLAGS,
        dtype_momentum=NOT_DTYPES,
    )
