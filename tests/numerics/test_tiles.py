"""Memory in few bits: one kernel, and two reads, give what decoding and encoding do."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.export import DisabledSafetyCheck, export

from benchmarks.abstract_gpu import abstract_gpu
from steepest.numerics import (
    _tiles,
    Corrected,
    encode,
    in_tiles,
    is_coded,
    read_twice,
)
from steepest.numerics._tiles import fits
from steepest.optimizers._adam import adam_formula

# Whole blocks, a short last block, short rows, an odd number of rows.
SHAPES = [(16, 512), (8, 1600), (3, 5, 300), (7, 64)]
NUMBERS = [jnp.float32(0.01), jnp.float32(0.5)]
KERNEL = "__gpu$xla.gpu.triton"


def adam(kept, g, numbers):
    p, mu, nu = kept
    rate, correction = numbers
    mu = 0.9 * mu + 0.1 * g
    nu = 0.999 * nu + 0.001 * g * g
    u = -rate * mu / correction / (jnp.sqrt(nu / correction) + 1e-8)
    return (p + u, mu, nu), u


def arrays(shape, special=False):
    keys = jax.random.split(jax.random.key(0), 4)
    p, m, g = (jax.random.normal(key, shape) for key in keys[:3])
    columns = (1,) * (len(shape) - 1) + shape[-1:]
    g = g * jnp.exp(3 * jax.random.normal(keys[3], columns))
    g = g.at[..., 0].set(0).at[0].mul(1e-30)
    if special:
        g = g.at[1, 5].set(jnp.nan).at[2, 6].set(jnp.inf).at[2, 9].set(-jnp.inf)
        g = g.at[-1].mul(1e25)  # its square overflows
    kept = p, encode(m, "signed8"), encode(m * m, "unsigned8")
    return kept, g


@jax.jit
def by_hand(kept, g):
    plain = jax.tree.map(
        lambda x: x.decode() if is_coded(x) else x, kept, is_leaf=is_coded
    )
    (p, mu, nu), u = adam(plain, g, NUMBERS)
    return (p, kept[1].like(mu), kept[2].like(nu)), u


def kernel(kept, g):
    return jax.jit(partial(in_tiles, adam, interpret=True))(kept, g, NUMBERS)


def twice(kept, g):
    return jax.jit(partial(read_twice, adam))(kept, g, NUMBERS)


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if x.dtype == jnp.float32:
            # A sum and a product may be rounded once or twice, as XLA compiles them.
            # Some new params are small differences of numbers near 1.
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=3e-8)
        else:
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("way", [kernel, twice])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_codes_are_those_of_encode(way, shape):
    same(way(*arrays(shape)), by_hand(*arrays(shape)))


@pytest.mark.parametrize("way", [kernel, twice])
def test_infinity_and_nan_stay_where_they_are(way):
    kept, g = arrays((16, 512), special=True)
    other = kept
    for _ in range(3):
        kept, _ = way(kept, g)
        other, _ = by_hand(other, g)
        same(kept, other)
    mu = np.asarray(kept[1].decode())
    assert np.isnan(mu[1, 5])
    assert np.isinf(mu[2, 6])
    assert np.isfinite(mu).sum() == mu.size - 3
    assert float(jnp.min(kept[2].scales)) < 0


def test_infinity_and_nan_stay_without_new_ones():
    """They are decoded from the memory alone: all new numbers are ordinary."""
    (p, mu, nu), _ = arrays((16, 512))
    m = mu.decode().at[1, 5].set(jnp.nan).at[2, 6].set(-jnp.inf)
    n = nu.decode().at[3, 5].set(jnp.nan).at[4, 300].set(jnp.inf)
    kept = p, mu.like(m), nu.like(n)
    # Of memory that is not stored again: the new numbers would be noticed.
    read = lambda kept, given, numbers: ((kept[0],), given)
    step = partial(in_tiles, read, interpret=True)
    _, found = jax.jit(step)((p,), kept[1:], [])
    same(found, tuple(x.decode() for x in kept[1:]))


def test_under_vmap():
    kept, g = arrays((8, 300))
    two = lambda tree: jax.tree.map(lambda x: jnp.stack([x, x]), tree)
    rates = [jnp.array([0.01, 0.02]), jnp.array([0.5, 0.5])]
    step = partial(in_tiles, adam, interpret=True)
    found = jax.jit(jax.vmap(step))(two(kept), two(g), rates)
    first = jax.tree.map(lambda x: x[0], found)
    same(first, by_hand(kept, g))
    assert not np.allclose(found[1][0], found[1][1])


def test_params_in_half_precision_stay_so():
    (p, mu, nu), g = arrays((8, 256))
    step = lambda kept, g, n: ((kept[0] - g.astype(kept[0].dtype), *kept[1:]), None)
    kept = p.astype(jnp.bfloat16), mu, nu
    (q, *memory), others = in_tiles(step, kept, g, [], interpret=True)
    assert q.dtype == jnp.bfloat16
    assert others is None
    same(memory, [mu, nu])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bits", [16, 8, 0])
def test_weights_in_half_precision(bits, shape):
    """All bits are those of `decode` and `like`, those of random rounding included."""
    (p, mu, nu), g = arrays(shape, special=True)
    p = p.at[0, 1].set(jnp.inf).at[1, 2].set(jnp.nan).at[2].mul(2.0**110)
    seed = None if bits == 16 else jnp.array([7, 11], jnp.uint32)
    # Minus one at zero is what `landed` leaves where a weight changes its sign.
    zero = jnp.zeros(shape, f"int{bits}").at[-1, 0].set(-1) if bits else None
    p = p.at[-1, 0].set(0)
    kept = other = Corrected(p.astype(jnp.bfloat16), zero, seed), mu, nu
    # A product and a sum may be rounded once or twice; these are exact.
    step = lambda kept, g, n: ((kept[0] - g, kept[1], kept[2]), None)
    g = jnp.exp2(jnp.round(jnp.log2(jnp.abs(g))))

    @jax.jit
    def by_hand(kept, g):
        return (kept[0].like(kept[0].decode() - g), *kept[1:])

    for _ in range(2):
        kept, _ = jax.jit(partial(in_tiles, step, interpret=True))(kept, g, [])
        other = by_hand(other, g)
        half = lambda x: np.asarray(jax.lax.bitcast_convert_type(x.half, jnp.uint16))
        np.testing.assert_array_equal(half(kept[0]), half(other[0]))
        jax.tree.map(np.testing.assert_array_equal, kept[0][1:], other[0][1:])
    same(kept[1:], other[1:])


# Neither a sign nor a NaN of either sign is lost, and -0 is zero.
SIGNS = [-1.0, -0.0, -1e-39, -1e-30, -np.nan, np.nan, -np.inf, 2.0**101]


@pytest.mark.parametrize("odd", SIGNS)
@pytest.mark.parametrize("alone", [True, False])
def test_nonnegative_memory_of_other_numbers(odd, alone):
    _, _, nu = arrays((4, 512))[0]
    g = jnp.zeros((4, 512)) if alone else 1e3 * nu.decode()
    g = g.at[1, 300].set(odd)
    step = lambda kept, g, n: ((g,), None)
    (found,), _ = jax.jit(partial(in_tiles, step, interpret=True))((nu,), g, [])
    wanted = encode(g, "unsigned8")
    np.testing.assert_array_equal(found.codes, wanted.codes)
    np.testing.assert_array_equal(found.scales, wanted.scales)
    assert not np.signbit(found.scales[:, 0]).any()


def test_rows_of_one_element_are_left_to_xla(monkeypatch):
    """In the kernel, they would look like scales."""
    monkeypatch.setattr(_tiles, "_one_device", lambda: True)
    for n, known in ((1, False), (2, True)):
        x = jnp.ones((64, n))
        assert fits((x, encode(x, "signed8")), x) == known


def lowered(function, kept, g):
    """The kernel's module, for a GPU."""
    step = jax.jit(partial(in_tiles, function))
    allowed = [DisabledSafetyCheck.custom_call(KERNEL)]
    exported = export(step, platforms=["cuda"], disabled_checks=allowed)
    with abstract_gpu():
        return exported(kept, g, NUMBERS).mlir_module()


@pytest.mark.parametrize("shape", [(8, 1600), (64, 2)])
def test_it_is_lowered_for_a_gpu_on_a_machine_without_one(shape):
    keys = jax.random.split(jax.random.key(0), 2)
    p, g = (jax.random.normal(key, shape) for key in keys)
    kept = p, encode(p, "signed8"), encode(p * p, "unsigned8")
    module = lowered(adam, kept, g)
    assert KERNEL in module
    assert ("prmt" in module) == (shape[1] % 4 == 0)  # four codes at a time


def adamw(kept, g, numbers):
    p, mu, nu = kept
    constants = {"b1": 0.9, "b2": 0.999, "eps": 1e-8, "eps_root": 0.0}
    u, mu, nu = adam_formula(g, mu, nu, **constants, c1=numbers[0], c2=numbers[1])
    return (p - 1e-3 * (u + 1e-4 * p), mu, nu), None


def test_adamw_has_short_instructions():
    kept, g = arrays((8, 512))
    module = lowered(adamw, kept, g)
    for name in ("sqrt.approx.ftz.f32", "rcp.approx.ftz.f32", "prmt.b32"):
        assert name in module
    # Of the formula, nothing is left of the long ones.
    assert "__nv_sqrtf" not in module
    assert "__nv_sqrtf" in lowered(adam, kept, g)
    same(
        jax.jit(partial(in_tiles, adamw, interpret=True))(kept, g, NUMBERS),
        jax.jit(partial(read_twice, adamw))(kept, g, NUMBERS),
    )
