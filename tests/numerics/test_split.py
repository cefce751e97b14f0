"""A float32 as a half-precision number and a correction, bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest.numerics import Corrected, dither, joined, landed, seeds, split
from steepest.numerics._split import joined_bfloat16, split_bfloat16

HALVES = pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
LOW = [0, 1, 2, 0x7FFE, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF, 0x1234, 0xC0DE]
LEAST = np.float32(3.3961775e38)  # the least number that bfloat16 rounds to infinity


def _floats():
    """Float32 numbers of every sign, exponent and upper mantissa; also inf and NaN."""
    bits = np.arange(1 << 16, dtype=np.uint32)[:, None] << 16 | np.array(LOW, np.uint32)
    return bits.ravel().view(np.float32)


def _bits(x):
    return np.asarray(x).view(np.uint32)


# Compiled: eager, each operation is a program of its own.
_split = jax.jit(split, static_argnums=(1, 2))
_land = jax.jit(landed, static_argnums=2)
_join = jax.jit(joined)


@jax.jit
def _there_and_back(x):
    p, c = split(x, jnp.bfloat16, jnp.int16)
    return p, joined(p, c)


def test_nothing_is_lost():
    """Compiled: XLA must not see that the round trip changes nothing."""
    x = _floats()
    p, y = map(np.asarray, _there_and_back(x))
    fits = np.abs(x) < LEAST
    np.testing.assert_array_equal(_bits(y)[fits], _bits(x)[fits])
    large = np.isfinite(x) & ~fits
    assert large.any() and np.isfinite(p[large].astype(np.float32)).all()
    np.testing.assert_allclose(y[large], x[large], 3e-3)
    np.testing.assert_array_equal(y[np.isinf(x)], x[np.isinf(x)])
    assert np.isnan(y[np.isnan(x)]).all()


def test_the_half_is_the_nearest():
    x = _floats()
    x = x[np.abs(x) < LEAST]
    p, y = _there_and_back(x)
    cast = x.astype(jnp.bfloat16)
    other = np.asarray(p).view(np.uint16) != cast.view(np.uint16)
    # Halfway, they go away from zero, and a cast goes to the even one.
    assert (_bits(x[other]) & 0xFFFF == 0x8000).all()
    assert other.sum() == 255 * 128  # every other tie
    assert (np.asarray(p) != np.asarray(y)).any()


def test_float16_is_exact_but_for_tiny_numbers():
    x = _floats()
    x = x[np.abs(x) < 65504]
    p, c = _split(x, "float16", "int16")
    y = np.asarray(_join(p, c))
    exact = np.abs(x) >= 2.0**-17
    np.testing.assert_array_equal(_bits(y)[exact], _bits(x)[exact])
    assert np.abs(y - x).max() <= 2.0**-41
    np.testing.assert_array_equal(np.asarray(p)[exact & (c == 0)], x[exact & (c == 0)])


@HALVES
def test_numbers_that_do_not_fit_stop_at_the_largest(dtype):
    top = float(jnp.finfo(dtype).max)
    x = jnp.array([3.4e38, -3.4e38, 1e6 if dtype == "float16" else 3.4e38])
    for c in ("int16", "int8"):
        p, _ = _split(x, dtype, c)
        np.testing.assert_array_equal(np.asarray(p, float), [top, -top, top])


def _pairs(dtype, seed=0):
    """Weights, corrections and steps: some tiny, some that jump 40 binades or to 0."""
    rng, n = np.random.default_rng(seed), 40_000
    w = rng.normal(size=n) * 2.0 ** rng.integers(-12, 12, n)
    w[:2000] = 2.0 ** rng.integers(-12, 12, 2000)  # powers of two
    w = w.astype(np.float32)
    step = rng.normal(size=n) * np.abs(w) * 2.0 ** rng.integers(-30, 2, n)
    step[::4] = -w[::4] * (1 + rng.normal(size=n // 4) * 2.0**-22)
    p, c = _split(w, dtype, "int16")
    return p, c, jnp.float32(step)


def _sum(p, u, library):
    with jax.numpy_dtype_promotion("standard"):
        return library.apply_updates(p, u)


@HALVES
@pytest.mark.parametrize("library", [steepest, optax])
def test_the_update_lands(dtype, library):
    """Also where the weight shrinks by 2^20 in one step."""
    p, c, step = _pairs(dtype)
    new = _join(p, c) + step
    u, rest = _land(new, p, "int16")
    q = _sum(p, u, library)
    assert q.dtype == p.dtype and u.dtype == jnp.float32
    got, want = np.asarray(_join(q, rest)), np.asarray(new)
    off = got != want if dtype == "bfloat16" else np.abs(got - want) > 2.0**-41
    # The documented exception: a power of two that changes its sign, and shrinks.
    before = np.asarray(p, np.float32)
    known = (np.frexp(before)[0] % 0.5 == 0) & (before * want < 0)
    assert not (off & ~(known & (np.abs(want) < np.abs(before) * 2.0**-15))).any()
    assert (np.abs(got - want) <= np.abs(before) * 2.0**-23 + 2.0**-41).all()
    assert (np.abs(np.asarray(q) / before)[want != 0] < 2.0**-20).any()


def test_the_exception():
    """From 1 to an odd multiple of 2^-24 below zero: no float32 update can do it."""
    p, new = jnp.array([1.0], jnp.bfloat16), jnp.array([-3 * 2.0**-24])
    u, c = _land(new, p, "int16")
    q = steepest.apply_updates(p, u)
    assert abs(float(_join(q, c)[0] - new[0])) <= 2.0**-24
    u, c = _land(-new, p, "int16")
    assert _join(steepest.apply_updates(p, u), c) == -new


def test_no_change_keeps_every_bit():
    x = _floats()
    p = jnp.asarray(x[np.abs(x) > 1e-37][:: len(LOW)].astype(jnp.bfloat16))
    p = jnp.concatenate([p, jnp.array([0.0, -0.0, jnp.inf, -jnp.inf], p.dtype)])
    u, c = _land(p.astype(jnp.float32), p, "int16")
    q = steepest.apply_updates(p, u)
    np.testing.assert_array_equal(
        np.asarray(q).view(np.uint16), np.asarray(p).view(np.uint16)
    )
    assert not c.any()


def test_zero_has_corrections_of_both_signs():
    """A number below the least bfloat16 keeps its sign, on either zero."""
    x = jnp.asarray(np.array([3, 3 | 1 << 31], np.uint32).view(np.float32))
    for zero in (0.0, -0.0):
        p = jnp.full(2, zero, jnp.bfloat16)
        u, c = _land(x, p, "int16")
        q = steepest.apply_updates(p, u)
        np.testing.assert_array_equal(_bits(_join(q, c)), _bits(x))


def test_a_correction_of_infinity_is_ignored():
    p = jnp.array([jnp.inf, -jnp.inf], jnp.bfloat16)
    c = jnp.array([5, -5], "int16")
    np.testing.assert_array_equal(_join(p, c), np.array([np.inf, -np.inf]))


@HALVES
def test_eight_bits_are_nearest_or_unbiased(dtype):
    """Also at the end of the range, where rounding up moves the half by one."""
    ulp = float(jnp.finfo(dtype).eps)
    x = 1 + ulp * jnp.linspace(0.48, 0.52, 41, dtype=jnp.float32)
    near = _join(*_split(x, dtype, "int8"))
    assert np.abs(np.asarray(near - x)).max() <= ulp / 512 * 1.001
    many = jnp.broadcast_to(x, (20_000, 41))
    noise = jax.random.bits(jax.random.key(0), many.shape, jnp.uint8)
    p = jnp.ones(many.shape, dtype)
    u, c = _land(many, p, "int8", noise)
    got = np.asarray(_join(steepest.apply_updates(p, u), c), np.float64)
    assert np.abs(got - np.asarray(x)).max() <= ulp / 256 * 1.001
    np.testing.assert_allclose(got.mean(0), x, rtol=0, atol=ulp / 256 / 50)
    assert set(np.unique(c)) >= {-128, 127}


@pytest.mark.parametrize("dtype", [jnp.int16, jnp.int8])
def test_fewer_operations_give_the_same_bits(dtype):
    """For bfloat16, and numbers up to 2^100, zero and subnormal ones included."""
    bits = np.random.default_rng(3).integers(0, 2**32, 20000, np.uint32)
    x = bits.view(np.float32)
    x = np.where(np.abs(x) <= 2.0**100, x, 0)  # NaN becomes 0, too
    x = jnp.asarray([*x, 0.0, -0.0, 1e-45, -1e-40, 1.0, -(2.0**100)], jnp.float32)
    noise = jnp.asarray(np.random.default_rng(4).integers(0, 256, x.size), jnp.uint8)
    for some in (None, noise) if dtype == jnp.int8 else (None,):
        half, correction = split(x, jnp.bfloat16, dtype, some)
        p, c = split_bfloat16(x, dtype, some)
        as_bits = lambda h: np.asarray(h).view(np.uint16)
        np.testing.assert_array_equal(as_bits(p), as_bits(half))
        np.testing.assert_array_equal(c, correction)
        wide, quick = joined(half, correction), joined_bfloat16(half, correction)
        np.testing.assert_array_equal(_bits(quick), _bits(wide))


def test_what_fewer_operations_cannot_join_is_seen():
    special = jnp.array([jnp.inf, -jnp.inf, jnp.nan, 0.0, -0.0], jnp.bfloat16)
    c = jnp.array([0, 0, 0, -1, -128], jnp.int8)
    assert not np.isfinite(joined_bfloat16(special, c)).any()


@pytest.mark.parametrize("bits", [16, 8])
def test_corrected_numbers_are_stored_as_split_does(bits):
    x = jax.random.normal(jax.random.key(0), (3, 40))
    half = x.astype(jnp.bfloat16)
    seed = seeds(jax.random.key(1), 1)[0] if bits == 8 else None
    was = Corrected(half, jnp.zeros(x.shape, f"int{bits}"), seed)
    assert (was.shape, was.dtype) == ((3, 40), jnp.float32)
    np.testing.assert_array_equal(was.decode(), half.astype(jnp.float32))
    new = was.like(x)
    noise = None if seed is None else dither(seed, x, jnp.uint8)
    same = split(x, jnp.bfloat16, f"int{bits}", noise)
    assert all(bool(jnp.all(a == b)) for a, b in zip(new[:2], same, strict=True))
    off = np.abs(new.decode() - x) / np.abs(x)
    assert off.max() <= (0 if bits == 16 else 2.0**-15)
