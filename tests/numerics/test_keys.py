"""Keys in all forms."""

import jax
import pytest

from steepest.numerics import key_from


@pytest.mark.parametrize("make", [int, jax.random.key, jax.random.PRNGKey])
def test_all_the_same(make):
    assert key_from("me", make(3)) == jax.random.key(3)


def test_the_old_name():
    with pytest.warns(DeprecationWarning, match="me: `seed` is deprecated"):
        assert key_from("me", None, 3) == jax.random.key(3)


def test_none_and_both():
    with pytest.warns(UserWarning, match="me: got no `key`, using 0"):
        assert key_from("me", None) == jax.random.key(0)
    with pytest.raises(ValueError, match="me: got both `key` and `seed`"):
        key_from("me", 1, 1)
