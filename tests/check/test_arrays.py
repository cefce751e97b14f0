"""Arrays, keys, shapes, dtypes and axes: which are errors, and the messages."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.check import (
    any_dtype,
    array,
    axes,
    function,
    is_number,
    key,
    one_number,
    positive,
    sizes,
    unless_array,
    WrongArgument,
)

KEY = "one random key. Make it with `jax.random.key(0)`"
SIZES = "expected a sequence of whole numbers of at least 0, such as (2, 3)."
AXIS = "expected a whole number, a sequence of them or None."
REFUSED = {
    "text": (
        lambda: array("f", x="a"),
        "f: x is a str, expected an array of numbers.",
    ),
    "nothing": (
        lambda: array("f", y=1.0, x=None),
        "f: x is a NoneType, expected an array",
    ),
    "words": (
        lambda: array("f", x=np.array(["a"])),
        "f: x has dtype <U1, expected an array",
    ),
    "keys": (
        lambda: array("f", x=jax.random.key(0)),
        "f: x has dtype key<fry>, expected",
    ),
    "ragged": (
        lambda: array("f", x=[[1], [1, 2]]),
        "f: x is a list, expected an array of",
    ),
    "no function": (
        lambda: function("f", g=len, h=3),
        "f: h is a int, expected a function",
    ),
    "a seed": (lambda: key("f", k=3), f"f: k is a int, expected {KEY}"),
    "floats": (
        lambda: key("f", k=jnp.ones(2)),
        f"f: k has dtype float32, expected {KEY}",
    ),
    "many keys": (
        lambda: key("f", k=jax.random.split(jax.random.key(0))),
        f"f: k is an array of the shape (2,), expected {KEY}",
    ),
    "a size": (lambda: sizes("f", shape=3), f"f: shape is 3, {SIZES}"),
    "below zero": (lambda: sizes("f", shape=(2, -1)), f"f: shape is (2, -1), {SIZES}"),
    "a part": (lambda: sizes("f", shape=(1.5,)), f"f: shape is (1.5,), {SIZES}"),
    "a name": (
        lambda: any_dtype("f", t="float33"),
        "f: t is 'float33', expected a dtype, such as",
    ),
    "a number": (lambda: any_dtype("f", t=3), "f: t is 3, expected a dtype"),
    "an axis name": (lambda: axes("f", "a", 2), f"f: axis is 'a', {AXIS}"),
    "half an axis": (lambda: axes("f", (0, 0.5), 2), f"f: axis is (0, 0.5), {AXIS}"),
    "beyond": (
        lambda: axes("f", 2, 2),
        "f: axis is 2, and the array has 2 dimensions, expected one",
    ),
    "no axes": (
        lambda: axes("f", -1, 0),
        "0 dimensions, expected an array with axes.",
    ),
    "twice": (
        lambda: axes("f", (0, -2), 2),
        "f: axis (0, -2) names an axis twice, expected",
    ),
    "a vector": (
        lambda: one_number("f", "loss", jnp.ones(2)),
        "f: loss returns shape (2,), expected one number. Return the sum or the",
    ),
    "no loss": (
        lambda: one_number("f", "loss", None),
        "f: loss returns a NoneType, expected one number.",
    ),
    "numpy": (
        lambda: unless_array(positive.must, "f", a=jnp.zeros(2), b=np.float32(0)),
        "f: b is 0.0, expected a number above 0.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_are_refused_by_name(name, as_users_do):
    call, said = REFUSED[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert said in str(caught.value)


def test_good_arguments_pass():
    x, y = array("f", x=[1, 2], y=2.0)
    assert x.shape == (2,) and y.weak_type
    key("f", new=jax.random.key(0), old=jax.random.PRNGKey(0))
    assert sizes("f", a=[np.int64(2)], b=()) == [(2,), ()]
    any_dtype("f", a=None, b="bfloat16", c=int, d=jnp.complex64)
    assert axes("f", (-1, 0), 3) == (2, 0) and axes("f", None, 2) == (0, 1)
    assert one_number("f", "loss", 2.0) == 2.0
    unless_array(positive, "f", a=-jnp.ones(2), b=1)


def test_what_counts_as_a_number():
    shape = jax.ShapeDtypeStruct((2,), jnp.float32)
    for x in (True, 1, 1j, np.float16(1), np.ones(2), jnp.ones(2), shape):
        assert is_number(x)
    for x in (None, "a", [1.0], jax.random.key(0), np.array(["a"])):
        assert not is_number(x)


def test_either_kind_of_error_is_caught():
    """JAX raises either of them for the same mistake."""
    assert issubclass(WrongArgument, TypeError) and issubclass(
        WrongArgument, ValueError
    )


def test_traced_values_are_not_checked():
    def f(x, k):
        array("f", x=x)
        key("f", k=k)
        one_number("f", "x", x)
        unless_array(positive, "f", x=x)
        return x

    jax.eval_shape(f, -1.0, jax.random.key(0))
