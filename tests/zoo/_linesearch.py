"""Line searches, L-BFGS, and Polyak's step."""

import steepest

from ._row import Row

ALL = ("value", "grad", "value_fn")
SEARCH = {"slope_rtol": 1e-4, "increase_factor": 1.5}
POLYAK = {"f_min": -5.0, "max_learning_rate": 0.5, "eps": 1e-3}

# A search is a loop of unknown length, so reverse-mode differentiation is impossible.
# It passes extra arguments on to a function that takes none. It stores the gradient of
# all leaves. If it goes uphill, to where the function overflows, it stores an infinite
# error.
OPTIMIZERS = [
    Row(
        steepest.lbfgs,
        {"learning_rate": 1.0},
        wants=ALL,
        backwards=False,
        open=False,
        per_leaf=False,
    ),
    Row(
        steepest.polyak_sgd,
        {"max_learning_rate": 0.5, "scaling": 1.0, "f_min": 0.0},
        rotates=False,
        wants=("value",),
    ),
]

PARTS = [
    Row(
        steepest.scale_by_backtracking_linesearch,
        {**SEARCH, "decrease_factor": 0.8},
        {"max_backtracking_steps": 4, "store_grad": True},
        optimizer=False,
        wants=ALL,
        backwards=False,
        open=False,
        per_leaf=False,
        bounded=False,
    ),
    Row(steepest.scale_by_lbfgs, {}, {"memory_size": 2}, optimizer=False),
    Row(steepest.scale_by_polyak, POLYAK, optimizer=False, wants=("value",)),
    Row(
        steepest.scale_by_zoom_linesearch,
        {**SEARCH, "curv_rtol": 0.5},
        {"max_linesearch_steps": 4},
        optimizer=False,
        wants=ALL,
        backwards=False,
        open=False,
        per_leaf=False,
        bounded=False,
    ),
]
