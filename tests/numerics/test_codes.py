"""Numbers in 8 or 4 bits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import Coded, encode
from steepest.numerics._codes import MAPS

KINDS = list(MAPS)
FEW = ("signed4", "dithered4")
# The relative error of a Gaussian array, a little above what was measured.
ERRORS = {
    "signed8": 0.01,
    "signed4": 0.17,
    "dithered4": 0.18,
    "unsigned8": 0.007,
    "float8": 0.028,
}


def numbers(kind, shape, seed=0):
    x = jax.random.normal(jax.random.key(seed), shape)
    return x if MAPS[kind].signed else x * x


def same(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(x, float), np.asarray(y, float))


@pytest.mark.parametrize("kind", KINDS)
def test_codes_and_levels_are_inverse(kind):
    """Codes stay when nothing changes, so a skipped step leaves them bit for bit."""
    for n in (48, 256, 700):
        q = encode(numbers(kind, (3, 5, n)), kind)
        assert q.shape == (3, 5, n)
        assert q.codes.shape == ((3, 5, n // 2) if kind in FEW else q.shape)
        assert q.scales.shape == (3, 5, -(-n // min(n, MAPS[kind].size)))
        same(q, encode(q.decode(), kind))
    this = MAPS[kind]
    codes = jnp.arange(1.0, this.top + 1)
    if kind != "float8":
        np.testing.assert_array_equal(this.to_code(this.to_level(codes)), codes)


@pytest.mark.parametrize("kind", KINDS)
def test_the_error_is_small(kind):
    x = numbers(kind, (16, 512))
    off = encode(x, kind).decode() - x
    assert jnp.linalg.norm(off) < ERRORS[kind] * jnp.linalg.norm(x)
    assert jnp.linalg.norm(off) > 0.5 * ERRORS[kind] * jnp.linalg.norm(x)


@pytest.mark.parametrize("kind", KINDS)
def test_only_zero_has_code_zero(kind):
    """In 8 bits. The smallest of 8 levels is too large for tiny numbers."""
    if kind == "dithered4":
        q = encode(jnp.array([1e-9, 1.0, -1.0, 0.0]), kind)
        assert q.codes.tolist() == [7 * 16, 9]  # 0 and 7, -7 and 0
        return
    if kind == "signed4":
        q = encode(jnp.array([0.001, 1.0, -1.0, 0.5]), kind)
        assert q.codes.tolist() == [7 * 16, 5 * 16 + 9]  # 0 and 7, -7 and 5
        return
    x = jnp.array([[0.0, 1e-30, 1.0, 0.5], [0, 0, 0, 0], [0, 2e-38, 1e30, 0]])
    x = jnp.where(jnp.arange(4) == 2, -x, x) if MAPS[kind].signed else x
    q = encode(x, kind)
    np.testing.assert_array_equal(np.asarray(q.codes == 0), np.asarray(x == 0))
    np.testing.assert_array_equal(np.sign(q.decode()), np.sign(x))
    assert q.scales[1, 0] == 0


def test_random_codes_have_the_right_mean():
    """And are one of the two neighbours."""
    z = jnp.linspace(-1, 1, 20_000).reshape(200, 100).at[:, 0].set(1)
    y = encode(z, "dithered4").decode()
    levels = (jnp.arange(8.0) / 7) ** 2
    k = jnp.searchsorted(levels, jnp.abs(z).ravel()).reshape(z.shape)
    near = (jnp.abs(y) >= 0.999 * levels[k - 1]) & (jnp.abs(y) <= 1.001 * levels[k])
    assert (near | (z == 0)).all()
    for part in (slice(0, 60), slice(96, 104), slice(140, 200)):  # of all sizes
        np.testing.assert_allclose(y[part].mean(), z[part].mean(), atol=0.005)
    assert jnp.abs(y - z).mean() > 0.03


@pytest.mark.parametrize("kind", KINDS)
def test_infinity_and_nan_stay_alone(kind):
    """Neither lost nor spread to the other 255 elements, in many steps."""
    x = numbers(kind, (2, 300)).at[0, 5].set(jnp.nan).at[0, 9].set(jnp.inf)
    if MAPS[kind].signed:
        x = x.at[0, 7].set(-jnp.inf)
    plain = encode(jnp.where(jnp.isfinite(x), x, 0), kind).decode()
    y = encode(x, kind).decode()
    for _ in range(50):
        y = encode(y, kind).decode()
    odd = ~jnp.isfinite(x)
    np.testing.assert_array_equal(np.asarray(y[odd]), np.asarray(x[odd]))
    np.testing.assert_array_equal(y[1], plain[1])
    step = 1 / 3 if kind in FEW else 1 / 8
    most = jnp.max(jnp.abs(plain))
    assert jnp.max(jnp.abs(jnp.where(odd, 0, y - plain))) < step * most
    # Alone in a row of zeros, too.
    rows = jnp.array([[0.0, jnp.nan, 0.0, 0.0], [jnp.inf, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(encode(rows, kind).decode(), rows)


@pytest.mark.parametrize("kind", KINDS)
def test_any_magnitude(kind):
    for dtype, sizes in (("float32", (1e-31, 3e38)), ("float64", (1e-300, 1e300))):
        with jax.enable_x64(dtype == "float64"):
            for size in sizes:
                z = numbers(kind, (2, 300)).astype(dtype)
                z = z / jnp.max(jnp.abs(z))
                q = encode(z * size, kind)
                assert q.dtype == q.scales.dtype == q.decode().dtype == dtype
                wanted = encode(z, kind).decode()
                y = np.asarray(q.decode()) / np.asarray(size, dtype)
                np.testing.assert_allclose(y, wanted, 1e-3, 2e-6)


def test_negative_numbers_have_no_code_in_a_nonnegative_map():
    q = encode(jnp.array([-3.0, 1.0, 0.0]), "unsigned8")
    assert q.decode().tolist() == [0, 1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_apart(kind):
    """So codes do not depend on how other axes are split over devices."""
    x = numbers(kind, (4, 6, 300))
    whole = encode(x, kind)
    parts = [encode(part, kind) for part in jnp.split(x, 2, axis=1)]
    same(whole, jax.tree.map(lambda *xs: jnp.concatenate(xs, axis=1), *parts))
    each = jax.vmap(lambda row: encode(row, kind))(x)
    same(whole, each)
    same(jax.vmap(Coded.decode)(each), whole.decode())


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_codes_are_the_same(kind):
    x = numbers(kind, (8, 700))
    same(encode(x, kind), jax.jit(lambda x: encode(x, kind))(x))


def test_bytes():
    x = numbers("signed8", (64, 1024))
    sizes = {k: sum(y.nbytes for y in jax.tree.leaves(encode(x, k))) for k in KINDS}
    assert sizes["signed8"] == sizes["unsigned8"] == 64 * (1024 + 4 * 4)
    assert sizes["float8"] == sizes["signed8"]
    assert sizes["signed4"] == 64 * (512 + 8 * 4)
