"""Cases: line searches, L-BFGS, and Polyak's step.

Real trajectories, with complete updates, are in `tests/optimizers/test_lbfgs.py`.
"""

import jax.numpy as jnp

from ._cases import Case

ALL = ("value", "grad", "value_fn")


def _descend(m, search):
    return m.chain(m.sgd(1.0), search)


def _zoom(**options):
    return Case(
        lambda m: _descend(m, m.scale_by_zoom_linesearch(12, **options)), wants=ALL
    )


def _backtrack(**options):
    return Case(
        lambda m: _descend(m, m.scale_by_backtracking_linesearch(12, **options)),
        wants=ALL,
    )


def _polyak(**options):
    return Case(lambda m: m.polyak_sgd(**options), wants=("value",))


def _falling(count):
    return 0.1 / jnp.sqrt(1 + count.astype(float))


def _lbfgs(make, **how):
    # A difference of two gradients loses digits, so different rounding grows from step
    # to step. In float64, with enough digits, all cases agree.
    return Case(make, tolerance=1e-3, **how)


def _uphill(make):
    # Alone it climbs, ever faster: in float32 nothing is left to compare, and in
    # float64 rounding errors grow by a digit every other step.
    return Case(make, dtypes=("float64",), tolerance64=1e-6)


CASES = {
    "lbfgs": _lbfgs(lambda m: m.lbfgs(), wants=ALL),
    "lbfgs, learning rate": _lbfgs(lambda m: m.lbfgs(0.3), wants=ALL),
    "lbfgs, scheduled, no search": _lbfgs(
        lambda m: m.lbfgs(_falling, 3, False, None), wants=ALL
    ),
    "scale_by_lbfgs, one step": _uphill(lambda m: m.scale_by_lbfgs(1)),
    "scale_by_lbfgs, unscaled": _uphill(lambda m: m.scale_by_lbfgs(4, False)),
    "zoom, curvature": _zoom(curv_rtol=0.1),
    "zoom, exactly": _zoom(approx_dec_rtol=None, slope_rtol=0.2, curv_rtol=0.3),
    "zoom, bounded": _zoom(max_learning_rate=1.5, increase_factor=4.0, curv_rtol=0.05),
    "zoom, from one": _zoom(initial_guess_strategy="one", curv_rtol=0.01, tol=1e-2),
    "backtracking": _backtrack(),
    "backtracking, gradient kept": _backtrack(store_grad=True, decrease_factor=0.5),
    "backtracking, loose": _backtrack(slope_rtol=0.6, rtol=1e-3, atol=1e-2),
    "backtracking, from above": _backtrack(
        increase_factor=float("inf"), max_learning_rate=2.0
    ),
    "polyak_sgd": _polyak(f_min=-2.0),
    "polyak_sgd, bounded": _polyak(max_learning_rate=0.1, scaling=2.0, eps=0.1),
    "polyak_sgd, sps+": _polyak(f_min=-1.0, variant="sps+", scaling=0.5),
}
