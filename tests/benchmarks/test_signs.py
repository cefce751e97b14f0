"""The comparison of Lion's updates tells good stores from bad ones."""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import signs


def test_float32_is_the_same():
    found = signs.compared(lambda m, key: m, 1.0, 50)
    assert found["agreement"] == 1
    assert found["along the mean"] == found["error"] == 0


def test_the_cube_is_the_map_of_the_library():
    m = jax.random.normal(jax.random.key(0), (4, 256)) ** 3
    key = jax.random.key(1)
    np.testing.assert_allclose(
        signs.nearest("cube", m, key), signs.library(m, key), rtol=1e-3
    )


def test_at_random_the_mean_is_right():
    m = jax.random.normal(jax.random.key(0), (1, 256))
    keys = jax.random.split(jax.random.key(1), 2000)
    for name in signs.MAPS:
        draws = jax.vmap(lambda key, name=name: signs.at_random(name, m, key))(keys)
        np.testing.assert_allclose(jnp.mean(draws, 0), m, atol=5e-3)


def test_a_linear_map_loses_signs():
    ours, linear = (
        signs.compared(signs.STORES[name], 1.0, 300)
        for name in ('`"int8"`', "linear, nearest")
    )
    assert ours["agreement"] > 0.97 > 0.9 > linear["agreement"]
    assert abs(ours["along the mean"]) < 0.01 < -linear["along the mean"]
