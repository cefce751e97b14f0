"""Per-example results and gradients: the same as Optax, with fewer restrictions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.microbatching import AccumulationType, micro_grad, micro_vmap

from .optax_too import same

X = jnp.arange(12.0).reshape(6, 2)
Y = jnp.arange(6.0)
W = jnp.array([1.0, 2.0])
WAYS = ["MEAN", "SUM", "RUNNING_MEAN", "CONCAT"]
ways = pytest.mark.parametrize("way", WAYS)


def loss(w, x):
    return (jnp.sum(w * x.reshape(-1)) - 1) ** 2


@ways
@pytest.mark.parametrize("size", [2, None])
def test_results_same_as_optax(way, size):
    def call(m):
        way_ = m.AccumulationType[way]
        f = m.micro_vmap(lambda x: x.sum(), microbatch_size=size, accumulator=way_)
        return f(X), f(jnp.arange(12).reshape(6, 2))

    same(call)


def test_arguments_same_as_optax():
    def call(m):
        f = lambda w, x: w * x
        one = m.micro_vmap(f, in_axes=(None, 0), microbatch_size=2)(2.0, X)
        two = m.micro_vmap(f, in_axes=[0, 1], microbatch_size=2)(Y, X.T)
        named = m.micro_vmap(f, in_axes=(None,), microbatch_size=2)(2.0, x=Y)
        padded = m.micro_vmap(
            lambda x: x.sum(), microbatch_size=2, num_real_microbatches=2
        )(X)
        return one, two, named, padded

    same(call)


def test_arguments_that_optax_does_not_take():
    product = lambda x, y: x * y
    np.testing.assert_allclose(micro_vmap(product, microbatch_size=2)(Y, Y), Y * Y)
    last = micro_vmap(jnp.sum, in_axes=-1, microbatch_size=2)(X.T)
    np.testing.assert_allclose(last, X.sum(1))
    axes = ({"a": 0, "b": None},)
    f = lambda d: d["a"] + d["b"]
    found = micro_vmap(f, in_axes=axes, microbatch_size=2)({"a": Y, "b": 2.0})
    np.testing.assert_allclose(found, Y + 2)


def test_vmap_of_one_s_own():
    seen = []

    def vmap(f, in_axes, out_axes):
        seen.append((in_axes, out_axes))
        return jax.vmap(f, in_axes, out_axes)

    micro_vmap(jnp.sum, microbatch_size=2, vmap_fn=vmap)(X)
    assert set(seen) == {((0,), 0)}


@ways
@pytest.mark.parametrize("size", [3, None])
def test_gradients_same_as_optax(way, size):
    def call(m):
        f = m.micro_grad(
            loss, microbatch_size=size, accumulator=m.AccumulationType[way]
        )
        return f(W, X)

    same(call)


@pytest.mark.parametrize("keep", [True, False], ids=["batches of one", "examples"])
def test_options_same_as_optax(keep):
    def call(m):
        way = m.AccumulationType

        def fun(p, v, x, y):
            value = loss(p["w"], x) * v + p["b"] * jnp.sum(y)
            return value, {"sum": x.sum(), "shape": jnp.zeros(jnp.shape(x))}

        f = m.micro_grad(
            fun,
            has_aux=True,
            argnums=(0, 1),
            batch_argnums=(2, 3),
            keep_batch_dim=keep,
            microbatch_size=2,
            accumulator=({"w": way.SUM, "b": way.MEAN}, way.CONCAT),
            transform_fn=lambda g: jax.tree.map(lambda x: x / 2, g),
            metrics_fn=lambda g: {"b": g[0]["b"]},
            num_real_microbatches=2,
        )
        grads, aux = jax.jit(f)({"w": W, "b": jnp.array(1.0)}, 3.0, X, Y)
        return grads, aux.values, aux.metrics, aux.aux

    same(call)


def test_named_batches_same_as_optax():
    def call(m):
        f = lambda w, x, y: loss(w, x) * jnp.sum(y)
        grads, aux = m.micro_grad(f, microbatch_size=2)(W, X, y=Y)
        return grads, aux.values

    same(call)


def test_metrics_see_the_gradient_as_it_was():
    _, aux = micro_grad(
        loss, transform_fn=lambda g: 0 * g, metrics_fn=lambda g: jnp.sum(g)
    )(W, X)
    each = jax.vmap(jax.grad(loss), (None, 0))(W, X)
    np.testing.assert_allclose(aux.metrics, each.sum(1), rtol=1e-6)
    assert aux._fields == ("values", "metrics", "aux")
    assert aux.aux is None


def test_the_sum_is_the_gradient_of_the_sum():
    whole = jax.grad(lambda w: jnp.sum(jax.vmap(loss, (None, 0))(w, X)))(W)
    grads, _ = micro_grad(loss, microbatch_size=2)(W, X)
    np.testing.assert_allclose(grads, whole, rtol=1e-6)


def test_arguments_after_the_batch_and_numbers_from_the_end():
    """Optax supports neither."""
    f = lambda w, x, v: loss(w, x) * v
    found, _ = micro_grad(f, microbatch_size=2)(W, X, 3.0)
    wanted, _ = micro_grad(loss, batch_argnums=-1)(W, X)
    np.testing.assert_allclose(found, 3 * wanted, rtol=1e-6)


@pytest.mark.parametrize("out_axes", [1, -1, None, (0, 0)], ids=str)
def test_other_out_axes_are_not_supported(out_axes):
    with pytest.raises(NotImplementedError, match="micro_vmap: out_axes is"):
        micro_vmap(jnp.sum, out_axes=out_axes)


@pytest.mark.parametrize(
    "call, error, said",
    [
        (
            lambda: micro_vmap(jnp.sum, microbatch_size=4)(X),
            ValueError,
            "has 6 examples",
        ),
        (lambda: micro_vmap(jnp.sum, (0, 0))(X), ValueError, "in_axes has 2 entries"),
        (
            lambda: micro_vmap(jnp.sum, (None,), microbatch_size=2)(X),
            ValueError,
            "no batch",
        ),
        (
            lambda: micro_vmap(jnp.sum, accumulator="SUM")(X),
            ValueError,
            "accumulator is 'SUM'",
        ),
        (lambda: micro_grad(loss)(W, x=X), IndexError, "batch_argnums is 1"),
        (
            lambda: micro_grad(lambda w, x, y: loss(w, x), batch_argnums=(1, 2))(
                W, X, Y[:4]
            ),
            ValueError,
            "size",
        ),
    ],
    ids=["not divisible", "axes", "no batch", "way", "named", "sizes"],
)
def test_errors_say_what_was_found(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_ways_are_those_of_the_room():
    assert AccumulationType.CONCAT.name == "CONCAT"
