"""Bad calls of optimizers with a small state."""

from typing import Any

import steepest

from ._bad import Bad, params

_ROW: Any = "row"
_WORDS = (
    "a word for each of the last axes: 'in' for those that the layer sums over, 'out' "
    "for the others, 'head', or 'out/12' for an axis that holds 12 heads."
)


def _vector(name):
    """A vector is not a matrix."""
    tx, p = getattr(steepest, f"scale_by_{name}")(rank=1), {"b": params()["b"]}
    return tx.update(p, tx.init({"b": params()["w"]}))


BAD = {
    "adam_mini": Bad(
        lambda: steepest.adam_mini(1e-3, routes={"query": "in heads out"}),
        ValueError,
        "adam_mini: routes['query'] is 'in heads out', expected 'adam', or " + _WORDS,
    ),
    "scale_by_adam_mini": Bad(
        lambda: steepest.scale_by_adam_mini(axes="out/2 in").init(params()),
        ValueError,
        "scale_by_adam_mini: a leaf has shape (3, 2) and an axis of 3 for 'out/2', "
        "expected a multiple of 2.",
    ),
    "apollo": Bad(
        lambda: steepest.apollo(0.01, scale_type=_ROW),
        ValueError,
        "apollo: scale_type is 'row', expected one of: channel, tensor.",
    ),
    "apollo_mini": Bad(
        lambda: steepest.apollo_mini(0.01, routes={"w": "apollo"}),
        ValueError,
        "apollo_mini: routes['w'] is 'apollo', expected 'apollo_mini', 'adam', or a "
        "word for each of the last axes",
    ),
    "scale_by_apollo": Bad(
        lambda: _vector("apollo"),
        ValueError,
        "scale_by_apollo: leaf ['b'] has shape (2,), expected a matrix. Use `apollo`, "
        "which passes other leaves to AdamW.",
    ),
    "fira": Bad(
        lambda: steepest.fira(0.01, rank=0),
        ValueError,
        "fira: rank is 0, expected a number that is whole and at least 1.",
    ),
    "scale_by_fira": Bad(
        lambda: _vector("fira"),
        ValueError,
        "scale_by_fira: leaf ['b'] has shape (2,), expected a matrix. Use `fira`, "
        "which passes other leaves to AdamW.",
    ),
}

TAKES_ANYTHING: dict[str, str] = {}
