"""The optimizers as the user passes them: texts, objects and functions."""

from functools import partial

import jax.numpy as jnp
import optax
import pytest

import steepest
from steepest.race.entrants import given, Own, transformation_of


def mine(rate):
    return steepest.sgd(rate)


def local():
    def mine(rate):
        return steepest.sgd(rate)

    return mine


@pytest.mark.parametrize(
    "optimizers, wanted",
    [
        ("adamw", {"adamw": "adamw"}),
        ([" adamw", "lookahead(  sgd)"], ["adamw", "lookahead( sgd)"]),
        (("sgd", "lion"), ["sgd", "lion"]),
        ({"adamw": "adamw", "base": " adamw(b1=0.8)"}, None),
        ([steepest.adamw, steepest.contrib.muon], ["adamw", "contrib.muon"]),
        (steepest.sgd(0.1), ["sgd(0.1)"]),
        ({"mine": steepest.adamw(0.1, b1=0.8)}, {"mine": "adamw(0.1, b1=0.8)"}),
        ([optax.adam], {"adam": "optax:adam"}),
        (optax.contrib.prodigy, {"prodigy": "optax.contrib:prodigy"}),
        (mine, {"mine": f"{__name__}:mine"}),
    ],
)
def test_what_a_text_can_say_becomes_text(optimizers, wanted):
    if wanted is None:
        wanted = {"adamw": "adamw", "base": "adamw(b1=0.8)"}
    wanted = {x: x for x in wanted} if isinstance(wanted, list) else wanted
    wanted = {wanted: wanted} if isinstance(wanted, str) else wanted
    assert given(optimizers) == wanted


OBJECTS = [
    steepest.chain(steepest.clip_by_global_norm(1.0), steepest.adamw(1e-3)),
    steepest.lookahead(steepest.adam(1e-2), 5, 0.5),
    steepest.sgd(steepest.cosine_decay_schedule(0.1, 100)),
    steepest.adamw(1e-3, mu_dtype="bfloat16", nesterov=True),
    steepest.lbfgs(),
    steepest.contrib.prodigy(),
]


@pytest.mark.parametrize("tx", OBJECTS, ids=lambda tx: repr(tx)[:12])
def test_an_object_of_the_library_is_read_back_from_its_name(tx):
    ((name, text),) = given([tx]).items()
    assert name == text and transformation_of(name) == tx
    assert "\n" not in name and "eps" not in name.replace("prodigy", "")


@pytest.mark.parametrize(
    "thing",
    [
        lambda rate: steepest.sgd(rate),
        local(),
        partial(mine),
        optax.adam(0.1),
        optax.MultiSteps(optax.adam(0.1), 2),
        steepest.sgd(jnp.float32(0.1)),  # no literal has the dtype of an array
        steepest.contrib.muon(0.1),  # another function has this name
    ],
)
def test_other_things_are_passed_on(thing):
    (own,) = given({"its name": thing}).values()
    assert isinstance(own, Own) and own.thing is thing
    assert own.name == "its name" and own.text is None


def test_a_function_has_its_name():
    assert list(given([local(), "adamw"])) == ["mine", "adamw"]


@pytest.mark.parametrize(
    "optimizers, says",
    [
        (
            [lambda rate: mine(rate)],
            "has a function without a name.*Pass a dict with a",
        ),
        ([partial(mine)], "a function without a name"),
        (["adamw", optax.adam(0.1)], "an optimizer without a name, Gradient.*{'mine'"),
        ([mine, local()], "has mine twice, expected it once. Pass a dict"),
        (["sgd", steepest.sgd], "has sgd twice"),
        ([3], r"is \[3\], expected one or more.*a function of the learning rate"),
        (3, "is 3, expected one or more"),
        ({}, "is {}, expected one or more"),
        ({"a": None}, "is {'a': None}, expected one or more"),
        ({3: mine}, "the name 3, expected a string on one line"),
        ({"a\nb": mine}, "expected a string on one line"),
        ({"": mine}, "expected 1 to 100 characters"),
        ({"a" * 101: mine}, "expected 1 to 100 characters"),
    ],
)
def test_errors_say_what_to_do(optimizers, says):
    with pytest.raises(ValueError, match=f"^race: `optimizers` .*{says}"):
        given(optimizers)
