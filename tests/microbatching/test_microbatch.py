"""Microbatches: the same as the whole batch, and the same as Optax."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import microbatching
from steepest.microbatching import AccumulationType, microbatch, reshape_batch_axis

from .optax_too import same

X = jnp.arange(12.0).reshape(6, 2)
WAYS = ["MEAN", "SUM", "RUNNING_MEAN", "CONCAT"]
ways = pytest.mark.parametrize("way", WAYS)


def weighted(w, x):
    return jnp.sum(w * x, axis=0)


def test_the_front_door_has_it():
    assert steepest.microbatch is microbatch


@ways
@pytest.mark.parametrize("size", [1, 2, 6, None])
def test_same_as_optax(way, size):
    same(lambda m: m.microbatch(weighted, 1, size, m.AccumulationType[way])(2.0, X))


@ways
@pytest.mark.parametrize("real", [0, 2])
def test_padding_same_as_optax(way, real):
    def call(m):
        way_ = m.AccumulationType[way]
        f = m.microbatch(weighted, 1, 2, way_, num_real_microbatches=real)
        g = m.microbatch(jnp.sum, 0, 2, way_, num_real_microbatches=jnp.array(real))
        return f(2.0, X), g(X)

    same(call)


def test_trees_of_ways_same_as_optax():
    def call(m):
        way = m.AccumulationType
        tree = {"s": way.SUM, "c": (way.CONCAT, way.CONCAT), "m": way.MEAN}
        f = lambda d: {
            "s": {"x": d["x"].sum(0), "n": jnp.sum(d["i"])},
            "c": (d["x"], d["x"].sum()),
            "m": d["x"].mean(0),
        }
        return m.microbatch(f, 0, 2, tree)({"x": X, "i": jnp.arange(6)})

    same(call)


def test_integers_truths_and_complex_numbers_same_as_optax():
    def call(m):
        f = lambda x: (x.sum(0), (x > 3).any(), x.sum() * 1j, None)
        with jax.numpy_dtype_promotion("standard"):
            return m.microbatch(f, 0, 2)(jnp.arange(6))

    same(call)


def test_where_the_batches_are_same_as_optax():
    def call(m):
        inner = lambda x, y: jnp.sum(x.T * y, axis=0)
        two = m.microbatch(inner, (0, 1), 2, in_axes=(1, 0))(X.T, X)
        named = m.microbatch(inner, 0, 2, argnames="y", in_axes=(1, 0))(X.T, y=X)
        last = m.microbatch(weighted, -1, 3)(2.0, X)
        only = m.microbatch(weighted, (), 3, argnames=("x",))(2.0, x=X)
        other = m.microbatch(lambda x, w: weighted(w, x), 0, 3)(X, w=3.0)
        column = m.microbatch(lambda x: x, 0, 2, m.AccumulationType.CONCAT, in_axes=1)
        return two, named, last, only, other, column(X.T)

    same(call)


def test_compiled_and_differentiated_same_as_optax():
    def call(m):
        f = m.microbatch(weighted, 1, 2, num_real_microbatches=2)
        return jax.jit(f)(2.0, X), jax.grad(lambda w: f(w, X).sum())(2.0)

    same(call)


def test_a_way_of_one_s_own_same_as_optax():
    def call(m):
        tally = m.Accumulator(
            init=lambda s: jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), s),
            update=lambda state, x, i: jax.tree.map(
                lambda s, x: s + x * (i + 1).astype(x.dtype), state, x
            ),
            finalize=lambda state: jax.tree.map(lambda s: 10 * s, state),
            aggregate=lambda x: x,
        )
        f = lambda x: {"a": x.sum(0), "b": x.sum()}
        return m.microbatch(f, 0, 2, tally)(X)

    same(call)


def test_the_number_of_pieces_may_be_traced():
    def value(n):
        return microbatch(weighted, 1, 2, num_real_microbatches=n)(2.0, X)

    found = jax.jit(value)
    np.testing.assert_allclose(found(2), value(2))
    np.testing.assert_allclose(found(7), value(3))  # there are only three


@ways
def test_what_is_not_run_may_be_anything(way):
    x = jnp.array([1.0, 0, 0, 1, 0, 0])
    f = microbatch(
        lambda x: jnp.sum(1 / x), 0, 2, AccumulationType[way], num_real_microbatches=1
    )
    assert jnp.isfinite(f(x)).all()


def test_half_precision_is_summed_in_single():
    """In bfloat16 the sum stops at 256, as Optax's does."""
    ones = jnp.ones(600, jnp.bfloat16)
    for way, wanted in [("SUM", 600), ("MEAN", 1), ("RUNNING_MEAN", 1)]:
        found = microbatch(jnp.sum, 0, 1, AccumulationType[way])(ones)
        assert found.dtype == jnp.bfloat16 and float(found) == wanted


def test_axes_from_the_end_and_trees_with_none():
    total = microbatch(lambda x: x.sum(1), 0, 2, in_axes=-1)(X.T)
    np.testing.assert_allclose(total, X.sum(0))
    tree = {"x": X.T, "y": X, "w": 2.0}
    f = lambda d: jnp.sum(d["w"] * d["x"].T * d["y"], axis=0)
    axes = ({"x": 1, "y": 0, "w": None},)
    np.testing.assert_allclose(microbatch(f, 0, 3, in_axes=axes)(tree), f(tree))


def test_an_empty_batch():
    for way, wanted in [("SUM", (2,)), ("MEAN", (2,)), ("CONCAT", (0,))]:
        found = microbatch(weighted, 1, 2, AccumulationType[way])(2.0, X[:0])
        assert found.shape == wanted and not found.any()


@pytest.mark.parametrize("size, axis", [(2, 0), (3, 0), (1, 1), (2, 1)])
def test_reshape_same_as_optax(size, axis):
    tree = {"a": X, "b": None, "c": (X + 1,)}
    same(lambda m: m.reshape_batch_axis(tree, size, axis))


def test_reshape_keeps_numpy_arrays_and_counts_from_the_end():
    cut = reshape_batch_axis(np.arange(6), 3)
    assert isinstance(cut, np.ndarray) and cut.tolist() == [[0, 2, 4], [1, 3, 5]]
    np.testing.assert_array_equal(
        reshape_batch_axis(X.T, 2, -1), reshape_batch_axis(X.T, 2, 1)
    )


def test_accumulators_are_values():
    one, other = (microbatching.Accumulator(abs, max, min, sum) for _ in range(2))
    assert one == other and hash(one) == hash(other)
    with pytest.raises(AttributeError):
        one.init = abs
    assert [way.value for way in AccumulationType] == [1, 2, 3, 4]
    assert [way.name for way in AccumulationType] == WAYS


@pytest.mark.parametrize(
    "call, error, said",
    [
        (lambda: microbatch(weighted, 1, 4)(2.0, X), ValueError, "has 6 examples"),
        (
            lambda: microbatch(lambda x, y: x, (0, 1), 2)(X, X[:4]),
            ValueError,
            r"sizes \[6, 4\]",
        ),
        (lambda: microbatch(weighted, 5, 2)(2.0, X), IndexError, "argnums has 5"),
        (
            lambda: microbatch(weighted, (), 2, argnames="x")(2.0, X),
            KeyError,
            "argnames has 'x'",
        ),
        (lambda: microbatch(weighted, (), 2)(2.0, X), ValueError, "no batch"),
        (lambda: microbatch(weighted, 0, 2)(2.0, X), ValueError, r"shape \(\)"),
        (lambda: microbatch(weighted, 1, 0), ValueError, "microbatch_size is 0"),
        (
            lambda: microbatch(weighted, 1, 2, "SUM")(2.0, X),
            ValueError,
            "accumulator is 'SUM'",
        ),
        (
            lambda: microbatch(jnp.sum, 0, 2, AccumulationType.MEAN)(jnp.arange(6)),
            ValueError,
            "the result is int32, expected real numbers for MEAN",
        ),
        (
            lambda: microbatch(weighted, 1, 2, num_real_microbatches=5)(2.0, X),
            ValueError,
            "num_real_microbatches is 5",
        ),
        (
            lambda: microbatch(weighted, 1, 2, in_axes=(0, 0))(2.0, X),
            ValueError,
            "in_axes has 2 entries",
        ),
        (lambda: reshape_batch_axis({"a": X}, 4), TypeError, r"leaf \['a'\]"),
    ],
    ids=[
        "not divisible",
        "sizes",
        "number",
        "name",
        "no batch",
        "scalar",
        "size 0",
        "way",
        "integers",
        "padding",
        "axes",
        "reshape",
    ],
)
def test_errors_say_what_was_found(call, error, said):
    with pytest.raises(error, match=said):
        call()
