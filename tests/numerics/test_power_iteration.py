"""The largest eigenvalue: Optax step by step, and NumPy's eigenvalues."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

ROOT = np.random.default_rng(0).normal(size=(4, 4))
SYMMETRIC = ROOT @ ROOT.T
OPTIONS = {
    "plain": {},
    "no steps": dict(num_iters=0),
    "three steps": dict(num_iters=3),
    "loose": dict(error_tolerance=0.05),
    "never satisfied": dict(error_tolerance=-1.0, num_iters=30),
    "key": dict(key=jax.random.key(3)),
}
ours = jax.jit(steepest.power_iteration)
theirs = jax.jit(optax.power_iteration)


def _same(matrix, rtol=1e-5, ours=ours, theirs=theirs, **options):
    mine = ours(matrix, **options)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        wanted = theirs(matrix, **options)
    assert jax.tree.structure(mine) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(wanted), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def test_same_as_optax():
    for change in OPTIONS.values():
        options = {"num_iters": 100, "error_tolerance": 1e-6, **change}
        options = {"key": jax.random.key(0), **options}
        _same(jnp.asarray(SYMMETRIC, jnp.float32), **options)
        del options["key"]
        _same(jnp.asarray(SYMMETRIC, jnp.float32), v0=np.ones(4, np.int32), **options)


def test_the_defaults_are_optax_s():
    plain = steepest.power_iteration, optax.power_iteration
    _same(jnp.asarray(SYMMETRIC, jnp.float32), 1e-5, *plain)


def test_same_as_optax_in_64_bits():
    with jax.enable_x64(True):
        for sign in (1, -1):
            _same(jnp.asarray(sign * SYMMETRIC), rtol=1e-12)
        _same(jnp.asarray(SYMMETRIC, jnp.float32), v0=jnp.ones(4), rtol=1e-6)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_in_half_precision(dtype):
    matrix = jnp.asarray(SYMMETRIC).astype(dtype)
    value, vector = ours(matrix)
    assert value.dtype == vector.dtype == dtype
    exact = np.linalg.eigvalsh(np.asarray(matrix, np.float64))[-1]
    np.testing.assert_allclose(float(value), exact, rtol=jnp.finfo(dtype).eps)


def test_functions_of_trees():
    start = {"a": jnp.ones(2), "b": jnp.ones((2, 2))}
    stretch = lambda v: {"a": 3 * v["a"], "b": v["b"]}
    of = lambda f: jax.jit(lambda v0: f(stretch, v0=v0, num_iters=4))
    _same(start, 1e-5, of(steepest.power_iteration), of(optax.power_iteration))
    value, vector = jax.jit(lambda v0: steepest.power_iteration(stretch, v0=v0))(start)
    np.testing.assert_allclose(value, 3, rtol=1e-6)
    np.testing.assert_allclose(vector["a"], 0.5**0.5, rtol=1e-5)


def test_it_is_the_largest_by_modulus():
    values, vectors = np.linalg.eigh(-SYMMETRIC)
    value, vector = ours(jnp.asarray(-SYMMETRIC, jnp.float32))
    np.testing.assert_allclose(value, values[0], rtol=1e-5)
    np.testing.assert_allclose(abs(vector @ vectors[:, 0]), 1, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_squares_do_not_overflow(scale):
    value, _ = ours(jnp.asarray(scale * SYMMETRIC, jnp.float32))
    np.testing.assert_allclose(
        value, scale * np.linalg.eigvalsh(SYMMETRIC)[-1], rtol=1e-5
    )


def test_of_zero_it_is_zero():
    """Optax returns NaN."""
    value, vector = steepest.power_iteration(jnp.zeros((3, 3)))
    assert value == 0
    np.testing.assert_allclose(jnp.linalg.norm(vector), 1, rtol=1e-6)


def test_many_at_once_and_nothing():
    many = jnp.asarray(np.stack([SYMMETRIC, 2 * SYMMETRIC]), jnp.float32)
    values, _ = jax.vmap(lambda a: steepest.power_iteration(a))(many)
    np.testing.assert_allclose(values[1], 2 * values[0], rtol=1e-5)
    value, vector = steepest.power_iteration(jnp.zeros((0, 0)))
    assert value == 0 and vector.shape == (0,)


@pytest.mark.parametrize("shape", [(3, 4), (3,), (2, 3, 3)], ids=str)
def test_the_matrix_must_be_square(shape):
    with pytest.raises(ValueError, match="power_iteration: matrix has shape"):
        steepest.power_iteration(jnp.ones(shape))


def test_a_function_needs_a_beginning():
    with pytest.raises(ValueError, match="power_iteration: matrix is a function"):
        steepest.power_iteration(lambda v: v)


@pytest.mark.parametrize(
    "arguments, said",
    [
        (dict(matrix="a"), "matrix is a str, expected an array of numbers."),
        (
            dict(matrix=jnp.eye(2), v0=jnp.ones(3)),
            "v0 has shape (3,) and matrix has shape (2, 2)",
        ),
        (
            dict(matrix=jnp.eye(2), num_iters=-1),
            "num_iters is -1, expected a number that",
        ),
        (
            dict(matrix=jnp.eye(2), error_tolerance="a"),
            "error_tolerance is a str, expected a",
        ),
        (dict(matrix=jnp.eye(2), key=0), "key is a int, expected one random key."),
        (
            dict(matrix=jnp.eye(2, dtype=int)),
            "matrix has dtype int32, expected real numbers",
        ),
        (
            dict(matrix=lambda v: v, v0={"w": "a"}),
            "leaf ['w'] of v0 is a str, expected an",
        ),
        (
            dict(matrix=lambda v: v["w"], v0={"w": jnp.ones(2)}),
            "the function returns PyTreeDef(*) with shapes [(2,)], expected a tree",
        ),
    ],
    ids=["text", "v0", "steps", "tolerance", "key", "integers", "leaf", "structure"],
)
def test_bad_arguments_are_refused(arguments, said, as_users_do):
    with pytest.raises((TypeError, ValueError)) as caught:
        steepest.power_iteration(**arguments)
    assert str(caught.value).startswith(f"power_iteration: {said}")
