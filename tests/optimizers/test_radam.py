"""RAdam alone."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from ._refused import NAN, NOT_FLAGS, refuses
from ._steps import steps

G = jnp.array([3.0, -0.5])


def test_it_begins_as_the_mean_of_the_gradient():
    """For five steps, with the default arguments; then it is Adam with small steps."""
    us, _ = steps(steepest.scale_by_radam(), [G] * 7)
    for u in us[:5]:
        np.testing.assert_allclose(u, G, rtol=1e-5)
    for u in us[5:]:
        assert (jnp.abs(u) < 0.1).all()


def test_it_ends_as_adam():
    """With small decay rates, r is soon 1."""
    gs = [G, -G] * 40
    ours, _ = steps(steepest.radam(0.1, b2=0.75), gs)
    want, _ = steps(steepest.adam(0.1, b2=0.75), gs)
    np.testing.assert_allclose(ours[-1], want[-1], rtol=1e-4)


@pytest.mark.parametrize("b2", [0.0, 1 / 3, 0.5, 0.6])
def test_with_hardly_a_memory_it_is_never_adam(b2):
    """`rho` stays below 4, where the paper's formula is not defined."""
    us, _ = steps(steepest.scale_by_radam(b1=0.0, b2=b2, threshold=0.0), [G] * 4)
    for u in us:
        np.testing.assert_allclose(u, G, rtol=1e-6)


def test_a_low_threshold_does_not_take_roots_of_negative_numbers():
    """Optax gives NaN for each step with `threshold <= rho < 4`."""
    us, _ = steps(steepest.scale_by_radam(threshold=0.0), [G] * 6)
    assert all(np.isfinite(u).all() for u in us)
    np.testing.assert_allclose(us[3], G, rtol=1e-5)
    assert (jnp.abs(us[4]) < 0.1).all()


def test_a_high_threshold_waits():
    us, _ = steps(steepest.scale_by_radam(threshold=1e9), [G] * 8)
    np.testing.assert_allclose(us[-1], G, rtol=1e-5)


def test_impossible_numbers_are_refused():
    with pytest.raises(ODD, match=r"^radam: threshold is nan"):
        steepest.radam(0.1, threshold=float("nan"))
    with pytest.raises(ODD, match=r"^radam: b2 is 1.5"):
        steepest.radam(0.1, b2=1.5)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(steepest.scale_by_radam, nesterov=NOT_FLAGS, threshold=[NAN, "5"])
