"""Errors of projections, and their messages."""

import jax.numpy as jnp
import pytest

from steepest import projections

W = {"w": jnp.ones(2)}
Z = {"w": jnp.array([1j])}
WORD = {"w": "a word"}
REAL = "leaf ['w'] of the tree is complex64, expected real numbers."
REFUSED = {
    "box text": ((W, "a", 1.0), "lower is a str, expected a number that is not NaN"),
    "box nan": (
        (W, None, float("nan")),
        "upper is nan, expected a number that is not NaN",
    ),
    "box shape": (
        (W, None, jnp.ones(3)),
        "leaf ['w'] has shape (2,) in the tree and (3,) in the upper, expected shapes "
        "that",
    ),
    "box complex": ((Z, None, 1.0), REAL),
    "box order": (
        (W, 1, 0),
        "lower is 1 and upper is 0, expected lower <= upper",
    ),
    "hypercube tree": (
        (W, {"v": 1.0}),
        "leaf ['w'] is in the tree and not in the scale. Give `scale` the structure",
    ),
    "hypercube text": (
        (W, "a"),
        "scale is a str, expected a number of at least 0.",
    ),
    "linf_ball tree": ((W, W), "scale is a dict, expected an array or a number."),
    "linf_ball none": (
        (W, None),
        "scale is a NoneType, expected an array or a number.",
    ),
    "l1_ball text": (
        (WORD,),
        "leaf ['w'] of the tree is a str, expected an array or a",
    ),
    "l2_ball text": (
        (WORD,),
        "leaf ['w'] of the tree is a str, expected an array or a",
    ),
    "simplex complex": ((Z,), REAL),
    "simplex nothing": (
        ({"w": jnp.ones(0)},),
        "the tree has no entries, expected at least one",
    ),
    "l1_sphere size": (
        (W, float("inf")),
        "scale is inf, expected a number of at least 0 and",
    ),
    "l2_sphere size": (
        (W, float("inf")),
        "scale is inf, expected a number of at least 0 and",
    ),
    "vector text": (
        (W, WORD),
        "leaf ['w'] of the a is a str, expected an array or a number",
    ),
    "hyperplane shape": (
        (W, {"w": jnp.ones((2, 1))}, 0.0),
        "leaf ['w'] has shape (2,) in the x and (2, 1) in the a, expected leaves of "
        "the same shape",
    ),
    "halfspace nan": (
        (W, W, float("nan")),
        "b is nan, expected a number that is not NaN.",
    ),
    "halfspace text": ((W, W, "a"), "b is a str, expected a number that is not NaN."),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_are_refused(name, as_users_do):
    args, message = REFUSED[name]
    who = f"projection_{name.split(' ')[0]}"
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        getattr(projections, who)(*args)
    assert str(caught.value).startswith(f"{who}: {message}")


def test_an_unbounded_halfspace_is_the_whole_space():
    result = projections.projection_halfspace(W, W, float("inf"))
    assert result["w"].tolist() == [1.0, 1.0]
