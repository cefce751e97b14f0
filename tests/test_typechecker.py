"""Annotations are checked at run time, also those of functions inside functions."""

import dataclasses
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


def test_the_result_has_the_axes_of_the_arguments():
    @typed
    def longer(x: Float[Array, " n"], by: int = 0) -> Float[Array, " n"]:
        return jnp.concatenate([x, jnp.ones(by)])

    @typed
    def calls(x: Float[Array, " n"]) -> Float[Array, " n"]:
        return x + longer(jnp.ones(7))[:1]  # another `n`

    assert longer(jnp.ones(2)).shape == (2,) and calls(jnp.ones(3)).shape == (3,)
    with pytest.raises(jaxtyping.TypeCheckError, match=r"return value of .*longer"):
        longer(jnp.ones(2), by=1)


def test_the_wrong_argument_is_named():
    @typed
    def f(first: int, *, second: str = "a") -> None: ...

    f(1)
    with pytest.raises(jaxtyping.TypeCheckError, match="second"):
        f(1, second=2)
    with pytest.raises(TypeError, match="missing a required argument: 'first'"):
        f()


def test_functions_of_classes_are_checked():
    @typed
    @dataclasses.dataclass
    class One:
        x: int

        @typed
        @property
        def wrong(self) -> str:
            return self.x

        @typed
        @staticmethod
        def of(x: int) -> int:
            return x

    assert One(One.of(3)).x == 3
    for f in (lambda: One("a"), lambda: One.of("a"), lambda: One(3).wrong):
        with pytest.raises(jaxtyping.TypeCheckError):
            f()


def test_checks_can_be_turned_off(as_users_do):
    assert _inner(int)("a") == "a"


def test_what_a_function_raises_is_not_changed():
    @typed
    def f(x: int) -> int:
        raise KeyError(x)

    with pytest.raises(KeyError, match="3"):
        f(3)


def test_an_axis_may_be_computed_from_an_argument():
    @typed
    def zeros(n: int) -> Float[Array, "{n}+1"]:  # noqa: F821
        return jnp.zeros(max(n, 3))

    assert zeros.__wrapped__(2).shape == (3,) and zeros(2).shape == (3,)
    with pytest.raises(jaxtyping.TypeCheckError):
        zeros(3)


def test_steepest_is_checked():
    with pytest.raises(jaxtyping.TypeCheckError):
        steepest.tree.norm(jnp.ones(2), squared="yes")  # pyright: ignore[reportArgumentType]
