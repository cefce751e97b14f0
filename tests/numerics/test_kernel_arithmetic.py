"""Kernels compute the same in fewer instructions; what has no bounds stays as it is."""

import re
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import _kernel_arithmetic, root
from steepest.numerics._kernel_arithmetic import for_kernel, number_of_code

X = jax.random.normal(jax.random.key(0), (4, 8))
Y = jnp.exp(jax.random.normal(jax.random.key(1), (4, 8)))
C = jnp.float32(0.3)
TINY = float(np.finfo(np.float32).tiny)
# Subnormal, tiny and huge numbers among them.
ODD = [0.0, -0.0, 1e-45, 1e-39, TINY, 1e-30, 0.5, 1.0, 1e30, 3e38, np.inf, np.nan]
ODD = np.array([*ODD, -1e-39, -2.0, -3e38, -np.inf], np.float32)

BY_NUMBERS = {
    "a number": lambda x, y, c: x / c,
    "a constant": lambda x, y, c: x / 0.7,
    "inside jit": lambda x, y, c: jax.jit(lambda x: (x / c, {"y": y / c}))(x),
    "broadcast": lambda x, y, c: x / jnp.broadcast_to(c, x.shape),
}
BY_OTHERS = {
    "an array": lambda x, y, c: x / y,
    "a row": lambda x, y, c: x / y[:1],
    "of numbers": lambda x, y, c: x * (c / 3),
    "whole numbers": lambda x, y, c: jnp.arange(6) // 4,
}
# What has bounds, with the instructions it takes.
SQRT, RCP = "sqrt.approx.ftz.f32", "rcp.approx.ftz.f32"
KNOWN = {
    "adam": (lambda x, y, c: x / (root(y / c + 0.0) + 1e-8), [SQRT, RCP]),
    "a root": (lambda x, y, c: root(y) * x, [SQRT]),
    "any root": (lambda x, y, c: x / (jnp.sqrt(y) + 1e-8), [RCP]),
    "the other way round": (lambda x, y, c: x / (1e-8 + root(y)), [SQRT, RCP]),
    "a floor": (lambda x, y, c: x / jnp.sqrt(jnp.maximum(1e-9, y)), [SQRT, RCP]),
    "in [tiny, 2^126]": (lambda x, y, c: x / jnp.clip(y, TINY, 2.0**126), [RCP]),
    "inside jit": (
        lambda x, y, c: x / jax.jit(lambda x: x + 1e-8)(jax.jit(root)(y)),
        [SQRT, RCP],
    ),
    "one of two": (
        lambda x, y, c: x / jnp.where(x > 0, jnp.sqrt(jnp.maximum(y, 1)), 2.0),
        [SQRT, RCP],
    ),
    "an array of constants": (
        lambda x, y, c: x / (root(y) + jnp.full(x.shape, 1e-8)),
        [SQRT, RCP],
    ),
    "the smaller of two": (
        lambda x, y, c: x / jnp.minimum(root(y), jnp.sqrt(x) + 1.0),
        [SQRT, RCP],
    ),
}
half = partial(jnp.asarray, dtype=jnp.float16)
UNKNOWN = {
    "no bounds": lambda x, y, c: x / y,
    "no lower bound": lambda x, y, c: x / jnp.sqrt(y),
    "no upper bound": lambda x, y, c: x / jnp.maximum(y, 1e-8),
    "above the upper bound": lambda x, y, c: x / jnp.clip(y, 1.0, 2.0**127),
    "a subnormal bound": lambda x, y, c: x / jnp.clip(y, 1e-39, 1.0),
    "a root of them": lambda x, y, c: jnp.sqrt(jnp.clip(y, 1e-39, 1.0)),
    "a difference": lambda x, y, c: x / (jnp.sqrt(y) - 1e-8),
    "a negative number": lambda x, y, c: x / (jnp.sqrt(y) + -1e-8),
    "a number only known later": lambda x, y, c: x / (jnp.sqrt(y) + c),
    "a floor only known later": lambda x, y, c: x / jnp.sqrt(jnp.maximum(y, c)),
    "a negative floor": lambda x, y, c: jnp.sqrt(jnp.maximum(y, -1.0)),
    "one of two": lambda x, y, c: x / jnp.where(x > 0, jnp.sqrt(y) + 1, y),
    "the larger of two": lambda x, y, c: x / jnp.maximum(jnp.sqrt(x) + 1, y),
    "if one is NaN": lambda x, y, c: x / jnp.maximum(jnp.sqrt(x) + 1, jnp.sqrt(y)),
    "a product": lambda x, y, c: x / (jnp.clip(y, 1e-30, 1) * jnp.clip(x, 1e-30, 1)),
    "half precision": lambda x, y, c: half(x) / (root(half(y)) + half(1e-4)),
    "a cast": lambda x, y, c: x / root(half(y)).astype(jnp.float32),
    "a number": lambda x, y, c: jnp.sqrt(jnp.maximum(c, 1.0)) / jnp.clip(c, 1.0, 2.0),
}


def kernel(f):
    """As a kernel on a GPU computes `f`, and as an interpreted one does."""
    return for_kernel(f, interpret=False)


interpreted = partial(for_kernel, interpret=True)


def instructions(f, *arguments):
    return re.findall(r"\w+\.approx\.ftz\.f32", str(jax.make_jaxpr(f)(*arguments)))


def _divisions_of_arrays(f):
    lines = str(jax.make_jaxpr(f)(X, Y, C)).splitlines()
    return [line for line in lines if "= div" in line and "[] = div" not in line]


def same_bits(a, b):
    """NaN equals NaN, and 0 is not -0."""
    a, b = np.asarray(a), np.asarray(b)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.signbit(a) & (a == 0), np.signbit(b) & (b == 0))


@pytest.mark.parametrize("name", BY_NUMBERS)
def test_divisions_become_products(name):
    f = BY_NUMBERS[name]
    g = interpreted(f)
    assert _divisions_of_arrays(f) and not _divisions_of_arrays(g)
    assert not _divisions_of_arrays(kernel(f))
    assert jax.tree.structure(f(X, Y, C)) == jax.tree.structure(g(X, Y, C))
    pairs = zip(*map(jax.tree.leaves, (f(X, Y, C), g(X, Y, C))), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=3e-7)


def test_xla_divides_by_numbers_in_the_same_way():
    f = BY_NUMBERS["a number"]
    same_bits(jax.jit(f)(X, Y, C), interpreted(f)(X, Y, C))


@pytest.mark.parametrize("name", BY_OTHERS)
def test_other_divisions_stay(name):
    f = BY_OTHERS[name]
    for g in (kernel(f), interpreted(f)):
        assert len(_divisions_of_arrays(f)) == len(_divisions_of_arrays(g))
        same_bits(f(X, Y, C), g(X, Y, C))


def test_functions_with_their_own_derivative():
    f = lambda x, y, c: jax.nn.relu(x) / c
    np.testing.assert_allclose(interpreted(f)(X, Y, C), f(X, Y, C), rtol=1e-6)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zero_is_not_added(zero):
    """XLA does not add it, either: -0 stays -0."""
    for f in (lambda x: x + zero, lambda x: zero + x):
        assert " add " in str(jax.make_jaxpr(f)(ODD))
        assert " add " not in str(jax.make_jaxpr(kernel(f))(ODD))
        same_bits(interpreted(f)(ODD), jax.jit(f)(ODD))


def test_other_numbers_are_added():
    for f in (
        lambda x, c: x + 1e-45,
        lambda x, c: x + c,
        lambda x, c: jnp.float32(0) + c,
        lambda x, c: jnp.zeros(3) + c,  # has a larger shape than c
        lambda x, c: jnp.arange(3) + 0,
    ):
        assert " add " in str(jax.make_jaxpr(kernel(f))(X, C)), f


@pytest.mark.parametrize("name", KNOWN)
def test_bounds_shorten_roots_and_divisions(name):
    f, wanted = KNOWN[name]
    assert instructions(kernel(f), X, Y, C) == wanted
    assert instructions(interpreted(f), X, Y, C) == []


@pytest.mark.parametrize("name", UNKNOWN)
def test_without_bounds_nothing_changes(name):
    f = UNKNOWN[name]
    assert instructions(kernel(f), X, Y, C) == []
    assert str(jax.make_jaxpr(kernel(f))(X, Y, C)).count(" sqrt") == str(
        jax.make_jaxpr(f)(X, Y, C)
    ).count(" sqrt")


def test_only_in_float32():
    f = lambda x, y: x / (root(y) + 1e-8)
    with jax.enable_x64(True):
        x = np.ones(3)
        assert instructions(kernel(f), x, x) == []
        narrow = lambda x, y: f(x, y.astype(np.float32))
        assert instructions(kernel(narrow), x.astype(np.float32), x) == [SQRT, RCP]


def flushed(x):
    """What instructions with `ftz` read and write: zero for subnormal numbers."""
    return jnp.where(jnp.abs(x) < TINY, jnp.sign(x) * 0, x)


def on_gpu(asm, *, args, constraints, pack, result_shape_dtypes):
    """What the instructions give on a GPU, up to their last bit."""
    (x,), (result,) = args, result_shape_dtypes
    assert (constraints, pack, x.dtype) == ("=f,f", 1, jnp.float32)
    assert (x.shape, x.dtype) == (result.shape, result.dtype)
    function = {
        f"{SQRT} $0, $1;": jnp.sqrt,
        f"{RCP} $0, $1;": lambda x: 1 / x,
    }[asm]
    return [flushed(function(flushed(x)))]


@pytest.mark.parametrize("name", KNOWN)
def test_no_number_is_outside_of_its_bounds(name, monkeypatch):
    """Odd numbers have the same results with instructions that do not scale them."""
    f, _ = KNOWN[name]
    backend = SimpleNamespace(elementwise_inline_asm=on_gpu)
    monkeypatch.setattr(_kernel_arithmetic, "triton", lambda: backend)
    x, y = (jnp.asarray(z) for z in np.meshgrid(ODD, ODD))
    plain, short = interpreted(f)(x, y, C), kernel(f)(x, y, C)
    assert jnp.isinf(plain).any() and jnp.isnan(plain).any()
    np.testing.assert_allclose(short, plain, rtol=3e-7, atol=0)
    same_bits(jnp.signbit(short) & (short == 0), jnp.signbit(plain) & (plain == 0))


@pytest.mark.parametrize("name", KNOWN)
def test_interpreted_kernels_keep_all_bits(name):
    f, _ = KNOWN[name]
    x, y = np.meshgrid(ODD, ODD)
    same_bits(jax.jit(interpreted(f))(x, y, C), jax.jit(f)(x, y, C))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_all_codes_as_numbers(dtype, monkeypatch):
    """The assembly is executed here, four codes at a time."""

    def executed(asm, *, args, constraints, pack, result_shape_dtypes):
        assert (constraints, pack) == ("=r,=r,=r,=r,r", 4)
        (codes,) = args
        words = np.asarray(codes).reshape(-1, 4).copy().view(np.uint32)[:, 0]
        registers = {"$4": words}
        for name, to, *others in re.findall(r"(\w+)\.b32 ([$\w]+), ([^;]+);", asm):
            a, *rest = others[0].split(", ")
            numbers = [int(x, 16) for x in rest]
            registers[to] = OPERATIONS[name](registers[a], *numbers)
        found = np.stack([registers[f"${k}"] for k in range(4)], -1).view(np.int32)
        (result,) = result_shape_dtypes
        return [jnp.asarray(found.reshape(result.shape), result.dtype)]

    backend = SimpleNamespace(elementwise_inline_asm=executed)
    monkeypatch.setattr(_kernel_arithmetic, "triton", lambda: backend)
    codes = np.arange(256).astype(np.uint8).view(dtype).reshape(2, 128)
    found = number_of_code(jnp.asarray(codes))
    assert found.dtype == jnp.float32
    same_bits(found, codes.astype(np.float32))


def permuted(a, b, selector):
    """`prmt`: each digit of the selector is the number of a byte of `a` or `b`."""
    sources = [a >> 8 * k & 255 for k in range(4)] + [
        b >> 8 * k & 255 for k in range(4)
    ]
    digits = [selector >> 4 * k & 15 for k in range(4)]
    return sum(np.uint32(sources[d]) << np.uint32(8 * k) for k, d in enumerate(digits))


OPERATIONS = {
    "mov": lambda a: a,
    "xor": lambda a, b: a ^ np.uint32(b),
    "prmt": permuted,
}
