"""Numbers that were Python's."""

import jax.numpy as jnp
import numpy as np

from steepest.core import fraction, knowing, Known


def _known(was, now=None):
    now = jnp.asarray(was if now is None else now)
    with knowing({"b": was}, {"b": now}):
        (b,) = fraction("test", b=now)
    return b


def test_what_is_computed_of_it_alone_is_computed_by_python():
    b, c = _known(0.999), _known(0.9)
    for found, want in [
        (1 - b, 1 - 0.999),
        (-b, -0.999),
        (c / b, 0.9 / 0.999),
        ((1 - c) - (c / b) * (1 - b), (1 - 0.9) - (0.9 / 0.999) * (1 - 0.999)),
        (b**2, 0.999**2),
        (2**b, 2**0.999),
        (b + 1e-9, 0.999 + 1e-9),
    ]:
        assert isinstance(found, Known)
        assert jnp.asarray(found) == np.float32(want)


def test_with_an_array_it_is_an_array():
    x = jnp.array([1.0, 2.0])
    np.testing.assert_array_equal(x * (1 - _known(0.999)), x * 0.001)
    np.testing.assert_array_equal((1 - _known(0.999)) * x, 0.001 * x)
    assert bool(_known(0.5) < 0.6)


def test_once_changed_only_the_array_counts():
    assert jnp.asarray(1 - _known(0.999, now=0.25)) == 0.75
    zero = _known(0.0, now=0.5)
    assert 1 / zero == 2  # what was a division by zero is none now


def test_an_array_of_unknown_origin_is_not_known():
    (b,) = fraction("test", b=jnp.array(0.999))
    assert not isinstance(b, Known)
