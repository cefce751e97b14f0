"""Which numbers the codes stand for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics._maps import cube_root, fourth_root, power_code, power_level


@pytest.mark.parametrize(
    ("root", "power", "error"), [(cube_root, 1 / 3, 5e-5), (fourth_root, 1 / 4, 1.5e-4)]
)
def test_roots_from_bits_are_close(root, power, error):
    rng = np.random.default_rng(0)
    z = np.exp(rng.uniform(np.log(1e-37), 0, 100_000)).astype(np.float32)
    found = np.asarray(root(jnp.asarray(z)), np.float64)
    np.testing.assert_allclose(found, z.astype(np.float64) ** power, rtol=error)


@pytest.mark.parametrize("root", [cube_root, fourth_root])
def test_the_roots_of_zero_and_of_the_smallest_numbers_are_finite(root):
    z = jnp.array([0.0, 1e-45, 1e-40, 1.2e-38, 1.0], jnp.float32)
    found = np.asarray(root(z))
    assert found[0] == 0
    assert np.isfinite(found).all()
    assert found[-1] == pytest.approx(1, rel=1.5e-4)


@pytest.mark.parametrize(("top", "power"), [(127, 3), (255, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_level_has_its_own_code(top, power, dtype):
    with jax.enable_x64(dtype == "float64"):
        code = jnp.arange(top + 1).astype(dtype)
        level = power_level(code, top=top, power=power)
        assert level.dtype == dtype
        assert float(level[-1]) == 1.0  # exactly
        np.testing.assert_array_equal(power_code(level, top=top, power=power), code)
