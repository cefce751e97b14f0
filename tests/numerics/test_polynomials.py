"""Polynomials of singular values: the guaranteed bounds."""

import numpy as np
import pytest

from steepest.numerics import COEFFICIENTS, polynomials

# The final range of singular values above a thousandth, and above a hundredth.
BANDS = {
    "standard": ((0.471, 1.202), (0.682, 1.134)),
    "dion": ((0.475, 1.145), (0.978, 1.032)),
    "polar_express": ((0.729, 1.124), (0.846, 1.124)),
    "cans": ((0.740, 1.113), (0.767, 1.113)),
    "deepseek": ((1.0, 1.001), (1.0, 1.001)),
}


def _apply(rows, s):
    for a, b, c in rows:
        s = a * s + b * s**3 + c * s**5
    return s


@pytest.mark.parametrize("name", list(COEFFICIENTS))
def test_the_bands(name):
    for least, band in zip((1e-3, 1e-2), BANDS[name], strict=True):
        found = _apply(polynomials("x", name), np.geomspace(least, 1, 10**5))
        np.testing.assert_allclose([found.min(), found.max()], band, atol=1e-3)


@pytest.mark.parametrize("name", list(COEFFICIENTS))
def test_rounding_above_one_is_harmless(name):
    """As published, two of the sets diverge."""
    found = _apply(polynomials("x", name), np.linspace(1, 1.03, 1000))
    assert np.all((found > 0) & (found < 1.25))


@pytest.mark.parametrize("name", ["dion", "polar_express", "cans"])
def test_more_steps_come_nearer(name):
    s = np.geomspace(1e-2, 1, 10**4)
    away = [
        abs(_apply(polynomials("x", name, steps), s) - 1).max() for steps in (5, 6, 7)
    ]
    assert away[0] > 2 * away[1] > 4 * away[2]


def test_one_triple_is_used_in_every_step():
    assert polynomials("x", "standard") == (COEFFICIENTS["standard"],) * 5
    assert polynomials("x", [1, 2, 3], 2) == ((1.0, 2.0, 3.0),) * 2
    assert polynomials("x", "dion", 2) == COEFFICIENTS["dion"][:2]
    assert polynomials("x", np.ones((2, 3))) == ((1.0, 1.0, 1.0),) * 2


@pytest.mark.usefixtures("as_users_do")
@pytest.mark.parametrize(
    "given, said",
    [
        (
            ("best",),
            "x: coefficients is 'best', expected one of: standard, dion, polar",
        ),
        (((1.0, 2.0),), r"x: coefficients has shape \(2,\), expected \(3,\), or"),
        ((np.ones((0, 3)),), r"x: coefficients has shape \(0, 3\)"),
        ((None,), "x: coefficients is a NoneType, expected an array of numbers"),
        (("dion", 0), "x: steps is 0, expected a number that is whole and at least 1"),
        (("dion", 2.5), "x: steps is 2.5"),
    ],
    ids=["name", "pair", "none of them", "nothing", "no steps", "half a step"],
)
def test_what_is_refused(given, said):
    with pytest.raises((TypeError, ValueError), match=said):
        polynomials("x", *given)
