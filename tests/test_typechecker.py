"""Annotations are checked at run time, also those of functions inside functions."""

import functools

import jax.numpy as jnp
import jaxtyping
import pytest
from jaxtyping import Array, Float

import steepest

from . import checked

typed = functools.partial(jaxtyping.jaxtyped, typechecker=checked)


def _inner(kind):
    @typed
    def inner(x: kind) -> kind:  # pyright: ignore[reportInvalidTypeForm]
        return str(x) if x == 3 else x

    return inner


def test_functions_with_one_name_have_their_own_checks():
    for _ in range(2):  # the second time, the checks are made already
        assert _inner(int)(1) == 1
        assert _inner(str)("a") == "a"
        with pytest.raises(jaxtyping.TypeCheckError, match="parameters of"):
            _inner(int)("a")
        with pytest.raises(jaxtyping.TypeCheckError, match="parameters of"):
            _inner(str)(1)
        with pytest.raises(jaxtyping.TypeCheckError, match="return value of"):
            _inner(int)(3)


def test_the_same_checks_are_made_once():
    def signature(x: int) -> str: ...

    def other(x: int) -> int: ...

    assert checked(signature) is checked(signature)
    assert checked(signature) is not checked(other)


def test_shapes_are_compared_between_arguments():
    @typed
    def add(x: Float[Array, " n"], y: Float[Array, " n"]) -> Float[Array, " n"]:
        return x + y

    add(jnp.ones(2), jnp.ones(2))
    with pytest.raises(jaxtyping.TypeCheckError):
        add(jnp.ones(2), jnp.ones(3))


def test_steepest_is_checked():
    with pytest.raises(jaxtyping.TypeCheckError):
        steepest.tree.norm(jnp.ones(2), squared="yes")  # pyright: ignore[reportArgumentType]
