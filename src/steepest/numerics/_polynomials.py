"""Named odd polynomials that bring singular values near one.

A step of Newton-Schulz maps each singular value to `a s + b s^3 + c s^5`. A different
polynomial for each step lifts values near zero further than the same one repeated.

Jordan et al., Muon, 2024, kellerjordan.github.io/posts/muon (`standard`)
Ahn et al., Dion, 2025, arXiv:2504.05295 (`dion`, elsewhere called `quintic`)
Amsel et al., The Polar Express, 2025, arXiv:2505.16932 (`polar_express`)
Grishina et al., Accelerating Newton-Schulz iteration for orthogonalization via
Chebyshev-type polynomials, 2025, arXiv:2506.10935 (`cans`)
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from jax.typing import ArrayLike

from .. import check
from ..core import passed, Real

Triple: TypeAlias = tuple[float, float, float]
Polynomials: TypeAlias = tuple[Triple, ...]
# `(a, b, c)`, or one triple for each step.
Rows: TypeAlias = ArrayLike | Sequence[Real] | Sequence[Sequence[Real]]
Coefficients: TypeAlias = str | Rows  # a name in `COEFFICIENTS`, or the numbers

# The classical Newton-Schulz: converges to one from wherever the others stop.
_LAST = (1.875, -1.25, 0.375)
_STANDARD = (3.4445, -4.7750, 2.0315)
_STEPS = 5


def _safer(*rows: Triple, by: float = 1.05) -> Polynomials:
    """Turn polynomials for singular values up to 1 into ones for values up to `by`.

    The best polynomials for [0, 1] explode right above 1, and rounding to half
    precision can push a matrix there: with the published rows of `cans` a constant
    matrix became NaN in bfloat16 and in float16.
    """
    return tuple((a / by, b / by**3, c / by**5) for a, b, c in rows)


# name -> (a, b, c), the same in every step, or one triple for each step.
# The set of Turbo-Muon is left out. It turns singular values above 0.88 negative, and
# is for matrices rescaled row by row (`aol`), never by their norm alone.
COEFFICIENTS: dict[str, Triple | Polynomials] = {
    "standard": _STANDARD,
    "dion": (
        (4.0848, -6.8946, 2.9270),
        (3.9505, -6.3029, 2.6377),
        (3.7418, -5.5913, 2.3037),
        (2.8769, -3.1427, 1.2046),
        (2.8366, -3.0525, 1.2012),
    ),
    "polar_express": _safer(
        (8.28721201814563, -23.595886519098837, 17.300387312530933),
        (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
        (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
        (3.3184196573706015, -2.488488024314874, 0.51004894012372),
        (2.300652019954817, -1.6689039845747493, 0.4188073119525673),
    ),
    "cans": _safer(
        (8.4703, -25.1081, 18.6293),
        (4.1828, -3.1087, 0.5806),
        (3.9619, -2.9541, 0.5630),
        (3.2866, -2.4647, 0.5074),
        (2.2737, -1.6447, 0.4162),
    ),
    # Ten steps, for singular values within a thousandth of one.
    "deepseek": (_STANDARD,) * 8 + ((2.0, -1.5, 0.5),) * 2,
}


def coefficients_of(name: str, **coefficients: Coefficients) -> Rows:
    """The value of one keyword argument, looked up if it is a name, and checked.

    Args:
        name: name used in error messages.
        coefficients: a name in `COEFFICIENTS`; or `(a, b, c)`; or one triple for each
            step.
    """
    ((argument, rows),) = coefficients.items()
    known = ", ".join(COEFFICIENTS)
    if isinstance(rows, str):
        if rows not in COEFFICIENTS:
            raise ValueError(
                f"{passed(name, argument, rows)} is {rows!r}, expected one of: "
                f"{known}, or three numbers."
            )
        rows = COEFFICIENTS[rows]
    shape = check.array(name, **{argument: rows})[0].shape
    if len(shape) not in (1, 2) or shape[-1] != 3 or 0 in shape:
        raise ValueError(
            f"{passed(name, argument, coefficients[argument])} has shape {shape}, "
            "expected (3,), or (steps, 3) with one polynomial for each step, or one "
            f"of: {known}."
        )
    return rows


def polynomials(
    name: str, coefficients: Coefficients, steps: int | None = None
) -> Polynomials:
    """The polynomial of each step.

    Args:
        name: name used in error messages.
        coefficients: a name in `COEFFICIENTS`; or `(a, b, c)` for every step; or one
            triple for each of the first steps.
        steps: number of steps; by default the number of triples, or 5 for a single
            triple. Steps after the last of several triples use one that converges to 1.

    >>> polynomials("muon", (3.0, -3.2, 1.2), 2)
    ((3.0, -3.2, 1.2), (3.0, -3.2, 1.2))
    """
    rows = np.asarray(coefficients_of(name, coefficients=coefficients), float)
    last = tuple(rows.tolist()) if rows.ndim == 1 else _LAST
    first = [] if rows.ndim == 1 else [tuple(row) for row in rows.tolist()]
    usual = len(first) or _STEPS
    (n,) = check.period(name, steps=usual if steps is None else steps)
    return tuple([*first, *[last] * (n - len(first))][:n])
