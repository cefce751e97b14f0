"""Errors that are raised before anything runs."""

import jax
import jax.numpy as jnp
import pytest

from steepest.microbatching import (
    micro_grad,
    micro_vmap,
    microbatch,
    reshape_batch_axis,
)

X = jnp.ones(4)
GRAD = lambda w, x: jnp.sum(w * x)
WHOLE = "expected a whole number or a sequence of whole numbers."
REFUSED = {
    "reshape axis": (lambda: reshape_batch_axis(X, 2, "a"), f"axis is 'a', {WHOLE}"),
    "reshape leaf": (
        lambda: reshape_batch_axis({"w": 1.0}, 2),
        "leaf ['w'] is a float, expected an",
    ),
    "no function": (
        lambda: microbatch(3, 0, 2),
        "fun is a int, expected a function.",
    ),
    "argnums": (lambda: microbatch(jnp.sum, 1.5, 2), f"argnums is 1.5, {WHOLE}"),
    "argnames": (
        lambda: microbatch(jnp.sum, 0, 2, argnames=3),
        "argnames is 3, expected a",
    ),
    "pieces": (
        lambda: microbatch(jnp.sum, 0, 2, num_real_microbatches="a"),
        "num_real_microbatches is a str, expected a number that is whole and at least "
        "0.",
    ),
    "in_axes": (
        lambda: microbatch(jnp.sum, 0, 2, in_axes="a")(X),
        f"in_axes is 'a', {WHOLE}",
    ),
    "in_axes tree": (
        lambda: microbatch(jnp.sum, 0, 2, in_axes={"b": 0})({"a": X}),
        "leaf ['a'] is in the batch and not in the in_axes. Give `in_axes` the",
    ),
    "accumulator": (
        lambda: microbatch(lambda x: {"a": x}, 0, 2, {"b": None})(X),
        "leaf ['a'] is in the result and not in the accumulator. Give `accumulator`",
    ),
    "batch": (
        lambda: microbatch(jnp.sum, 0, 2)({"w": "a"}),
        "leaf [0]['w'] of the batches is a str, expected an array.",
    ),
    "vmap fun": (lambda: micro_vmap(3), "fun is a int, expected a function."),
    "vmap fn": (lambda: micro_vmap(jnp.sum, vmap_fn=3), "vmap_fn is a int, expected a"),
    "vmap axes": (
        lambda: micro_vmap(jnp.sum, "a")(X),
        "in_axes is 'a', expected a whole",
    ),
    "vmap axis": (
        lambda: micro_vmap(jnp.sum, 2)({"w": X}),
        "argument 0['w'] has shape (4,), expected a batch axis 2.",
    ),
    "vmap way": (
        lambda: micro_vmap(jnp.sum, accumulator="a")(X),
        "accumulator is 'a', expected an `AccumulationType` or an `Accumulator`",
    ),
    "vmap size": (
        lambda: micro_vmap(jnp.sum, microbatch_size=3)(X),
        "the batch has 4 examples, which is not divisible by microbatch_size, 3.",
    ),
    "vmap nothing": (
        lambda: micro_vmap(jnp.sum)(),
        "got no arguments, expected a batch",
    ),
    "grad size": (
        lambda: micro_grad(GRAD, microbatch_size=0),
        "microbatch_size is 0, expected a number that is whole and at least 1.",
    ),
    "grad batches": (
        lambda: micro_grad(GRAD, batch_argnums="a"),
        f"batch_argnums is 'a', {WHOLE}",
    ),
    "grad argnums": (
        lambda: micro_grad(GRAD, argnums=4)(1.0, X),
        "argnums is 4, but there are 2 positional arguments.",
    ),
    "grad transform": (
        lambda: micro_grad(GRAD, transform_fn=3),
        "transform_fn is a int, expected a function.",
    ),
    "grad integers": (
        lambda: micro_grad(GRAD)(3, X),
        "leaf (the tree itself) of the argument 0 is a int, expected real or complex",
    ),
    "grad pair": (
        lambda: micro_grad(GRAD, has_aux=True)(1.0, X),
        "fun does not return a pair, expected the loss and auxiliary results.",
    ),
    "grad example": (
        lambda: micro_grad(GRAD)(1.0, 2.0),
        "argument 1 has shape (), expected a batch axis 0.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_are_refused(name, as_users_do):
    call, said = REFUSED[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    who, found = str(caught.value).split(": ", 1)
    speaks = {
        "vmap": "micro_vmap",
        "grad": "micro_grad",
        "reshape": "reshape_batch_axis",
    }
    assert who == speaks.get(name.split(" ")[0], "microbatch")
    assert found.startswith(said)


def test_random_keys_may_be_in_a_batch():
    keys = jax.random.split(jax.random.key(0), 4)
    found = micro_vmap(jax.random.uniform, microbatch_size=2)(keys)
    assert found.shape == (4,)
