"""Per-example gradient clipping."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

from ..unusual import ODD

BOTH = ["per_example_global_norm_clip", "per_example_layer_norm_clip"]
both = pytest.mark.parametrize("name", BOTH)


def _grads(dtype=jnp.float32):
    x = jnp.sin(jnp.arange(1.0, 29.0)).astype(dtype)
    return {"a": x[:12].reshape(4, 3), "b": [x[12:].reshape(4, 2, 2), None]}


OPTIONS = {
    "all": ("per_example_global_norm_clip", {}),
    "uniform": ("per_example_layer_norm_clip", {}),
    "by size": ("per_example_layer_norm_clip", {"uniform": False}),
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("limit", [0.0, 1.7])
def test_same_as_optax(option, dtype, limit):
    name, options = OPTIONS[option]
    with jax.enable_x64(dtype == "float64"):
        grads = _grads(dtype)
        found = getattr(steepest, name)(grads, limit, **options)
        with jax.numpy_rank_promotion("allow"):
            want = getattr(optax, name)(grads, limit, **options)
        assert jax.tree.structure(found) == jax.tree.structure(want)
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x, y, tolerance, tolerance)


def test_by_hand():
    grads = {"w": jnp.array([[30.0], [0.3]]), "b": jnp.array([40.0, 0.4])}
    total, clipped = steepest.per_example_global_norm_clip(grads, 1.0)
    np.testing.assert_allclose(total["w"], [0.9], rtol=1e-6)
    np.testing.assert_allclose(total["b"], 1.2, rtol=1e-6)
    assert clipped == 1
    total, clipped = steepest.per_example_layer_norm_clip(grads, 2**0.5)
    np.testing.assert_allclose(total["w"], [1.3], rtol=1e-6)
    assert clipped == {"w": 1, "b": 1}


def test_at_the_limit_nothing_is_clipped():
    _, clipped = steepest.per_example_global_norm_clip([jnp.array([[3.0, 4.0]])], 5.0)
    assert clipped == 0


@both
def test_half_precision_squares_do_not_overflow(name):
    total, clipped = getattr(steepest, name)([jnp.full((2, 4), 300, jnp.float16)], 1.0)
    assert total[0].dtype == jnp.float16
    np.testing.assert_array_equal(total[0], jnp.ones(4, jnp.float16))
    assert jax.tree.leaves(clipped) == [2]


@both
def test_zeros_and_their_slopes(name):
    clip = getattr(steepest, name)
    with jax.debug_nans(True):
        for limit in (0.0, 1.0):
            slopes = jax.jacobian(lambda g, x=limit: clip([g], x)[0])(jnp.zeros((2, 3)))
            assert np.isfinite(slopes[0]).all()


@both
def test_compiled_with_a_traced_limit(name):
    clip = getattr(steepest, name)
    found = jax.jit(clip)(_grads(), 1.0)
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, 1e-5), found, clip(_grads(), 1.0)
    )


@both
def test_no_leaves_and_no_examples(name):
    clip = getattr(steepest, name)
    assert clip({}, 1.0)[0] == {}
    total, clipped = clip([jnp.zeros((0, 2))], 1.0)
    assert total[0].tolist() == [0, 0]
    assert jax.tree.leaves(clipped) == [0]


@both
@pytest.mark.parametrize("shape", [(), (3, 2)], ids=str)
@pytest.mark.usefixtures("as_users_do")
def test_updates_need_an_axis_of_examples(name, shape):
    with pytest.raises(ValueError, match=rf"{name}: the leaves have shapes \(4, 3\)"):
        getattr(steepest, name)([jnp.ones((4, 3)), jnp.ones(shape)], 1.0)


@both
def test_a_negative_limit_is_refused(name):
    with pytest.raises(ODD, match=f"{name}: .* is -1.0"):
        getattr(steepest, name)(_grads(), -1.0)
