"""ADOPT alone."""

import jax.numpy as jnp
import numpy as np
import pytest

from steepest import contrib

G = jnp.array([1.0, -2.0, 0.0])


def test_the_first_step_does_not_move():
    tx = contrib.scale_by_adopt()
    u, state = tx.update(G, tx.init(G))
    assert not u.any() and not state.mu.any()
    np.testing.assert_allclose(state.nu, G**2)


def test_steps_are_clipped_at_the_fourth_root_of_the_count():
    tx = contrib.scale_by_adopt(b1=0.0, b2=0.0)
    state = tx.init(G)
    for count in range(1, 4):
        _, state = tx.update(G, tx.init(G))
        state = state._replace(count=jnp.array(count, jnp.int32))
        u, _ = tx.update(100 * G, state)
        np.testing.assert_allclose(u, count**0.25 * jnp.sign(G), rtol=1e-6)


def test_the_clip_is_told_the_count_as_an_integer():
    seen = []

    def most(count):
        seen.append((int(count), count.dtype))
        return 1.0

    tx = contrib.scale_by_adopt(clip_value_fn=most)
    _, state = tx.update(G, tx.init(G))
    tx.update(G, state)
    assert seen == [(0, jnp.int32), (1, jnp.int32)]


def test_without_clipping_the_step_has_its_full_length():
    tx = contrib.scale_by_adopt(b1=0.0, use_clipping=False)
    _, state = tx.update(G, tx.init(G))
    u, _ = tx.update(100 * G, state)
    np.testing.assert_allclose(u, 100 * jnp.sign(G), rtol=1e-6)


def test_a_zero_gradient_first_and_then_training():
    tx = contrib.adopt(0.1)
    _, state = tx.update(0 * G, tx.init(G))
    u, _ = tx.update(G, state)
    np.testing.assert_allclose(u, -0.01 * jnp.sign(G), rtol=1e-6)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"clip_value_fn": 1.0}, "clip_value_fn is a float, expected a function"),
        ({"use_clipping": None}, "use_clipping is None, expected True or False"),
        (
            {"mu_dtype": "float33"},
            "mu_dtype is 'float33', expected a dtype of real numbers",
        ),
    ],
    ids=str,
)
def test_impossible_options(as_users_do, options, said):
    with pytest.raises(TypeError, match=f"^adopt: {said}"):
        contrib.adopt(0.1, **options)


def test_complex_gradients_only_without_clipping():
    g = jnp.array([1 + 1j], jnp.complex64)
    tx = contrib.scale_by_adopt()
    with pytest.raises(
        ValueError, match=r"scale_by_adopt: leaf .* is complex64, expected a"
    ):
        tx.update(g, tx.init(g))
    tx = contrib.scale_by_adopt(use_clipping=False)
    assert tx.update(g, tx.init(g))[0].dtype == g.dtype
