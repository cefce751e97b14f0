"""Polyak's step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ._refused import NAN, refuses

G = jnp.array([3.0, 4.0])


def _step(tx, value, g=G):
    """The factor between gradient and update."""
    u, _ = tx.update(g, tx.init(g), value=value)
    return float(u[0] / g[0])


def test_one_step_to_the_bottom_of_a_cone():
    """`|p|` has the same slope everywhere, so its value is the distance to go."""
    p, tx = jnp.array([3.0, -4.0]), steepest.polyak_sgd(max_learning_rate=jnp.inf)
    value, g = jax.value_and_grad(jnp.linalg.norm)(p)
    u, _ = tx.update(g, tx.init(p), p, value=value)
    np.testing.assert_allclose(p + u, 0, atol=1e-5)


def test_the_formula():
    make = steepest.scale_by_polyak
    assert _step(make(), 10.0) == pytest.approx(10 / 25)
    assert _step(make(f_min=2.0, eps=1.0), 10.0) == pytest.approx(8 / 26)
    assert _step(make(max_learning_rate=0.1), 10.0) == pytest.approx(0.1)
    assert _step(make(), -5.0) == pytest.approx(-5 / 25)
    assert _step(make(variant="sps+"), -5.0) == 0
    assert _step(make(), jnp.array([10.0])) == pytest.approx(10 / 25)
    assert _step(steepest.polyak_sgd(scaling=2.0), 10.0) == pytest.approx(-10 / 50)


@pytest.mark.parametrize("eps", [0.0, 1.0])
def test_without_a_gradient_it_does_not_move(eps):
    """Whatever the value is."""
    tx = steepest.scale_by_polyak(eps=eps, max_learning_rate=jnp.inf)
    for value in (1.0, jnp.inf, jnp.nan):
        u, _ = tx.update(0 * G, tx.init(G), value=value)
        assert (u == 0).all()


def test_errors(as_users_do):
    for maker in (steepest.scale_by_polyak, steepest.polyak_sgd):
        with pytest.raises(ValueError, match="variant is 'sgd'"):
            maker(variant="sgd")
        tx = maker()
        with pytest.raises(TypeError, match=f"^{maker.__name__}: .*`value`"):
            tx.update(G, tx.init(G), G)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.scale_by_polyak,
        f_min=[NAN, None],
        max_learning_rate=[-1.0, NAN, None],
        eps=[-1.0, NAN, None],
        variant=["sgd", None],
    )
    tx, g = steepest.scale_by_polyak(), jnp.ones(2)
    for value in (jnp.ones(2), 1j, "1"):
        with pytest.raises(
            TypeError, match=r"scale_by_polyak: value is an? .*, expected"
        ):
            tx.update(g, tx.init(g), value=value)
    assert tx.update(g, tx.init(g), value=jnp.ones(1))[0].shape == (2,)
