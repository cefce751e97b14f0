"""Bad calls of the optimizers that build on Muon."""

import jax.numpy as jnp

import steepest

from ._bad import Bad, params


def _first(tx, **extra):
    p = params()
    return tx.update(p, tx.init(p), p, **extra)


def _vector(name):
    """A vector, for a transformation of matrices."""
    tx, b = getattr(steepest, f"scale_by_{name}")(), {"b": jnp.zeros(2)}
    return Bad(
        lambda: tx.update(b, tx.init({"b": jnp.zeros((2, 2))})),
        ValueError,
        f"scale_by_{name}: leaf ['b'] has shape (2,), expected a matrix. Use `{name}`, "
        "which passes other leaves to AdamW.",
    )


BAD = {
    "adamuon": Bad(
        lambda: steepest.adamuon(1e-3, scale="best"),
        ValueError,
        "adamuon: scale is 'best', expected one of: rms, original, spectral.",
    ),
    "dion2": Bad(
        lambda: steepest.dion2(0.01, fraction=0.0),
        ValueError,
        "dion2: fraction is 0.0, expected a Python number above 0 and at most 1.",
    ),
    "normuon": Bad(
        lambda: steepest.normuon(1e-3, routes={"w": "in"}),
        ValueError,
        "normuon: routes['w'] is 'in', expected 'normuon', 'adam', or a word for each "
        "of the last axes: 'in' for those that the layer sums over and 'out' for the "
        "others. Keep equal words together, such as 'in in in out'.",
    ),
    "qk_clip": Bad(
        lambda: _first(
            steepest.qk_clip(routes={"w": "head out"}), max_logits=jnp.ones(2)
        ),
        ValueError,
        "qk_clip: the leaf 'w' has shape (3, 2), and its max_logits has shape (2,), "
        "expected (3,): one number for each head.",
    ),
    "scale_by_adamuon": _vector("adamuon"),
    "scale_by_dion2": _vector("dion2"),
    "scale_by_lmo": Bad(
        lambda: _first(steepest.scale_by_lmo("rownorm")),
        ValueError,
        "scale_by_lmo: leaf ['b'] has shape (2,), expected 2 axes or more for the norm "
        "`rownorm`. Use `rms` for vectors, or `scion`, which has a norm for every "
        "leaf.",
    ),
    "scale_by_normuon": _vector("normuon"),
    "scion_init": Bad(
        lambda: steepest.scion_init({"heads": jnp.ones((2, 3, 4))}),
        ValueError,
        "scion_init: the leaf 'heads' has 3 axes. Say in `routes` what they are: 'in' "
        "for those that the layer sums over and 'out' for the others, such as "
        "`{'heads': 'in in out'}`.",
    ),
    "scion": Bad(
        lambda: steepest.scion(0.1).init({"heads": jnp.ones((2, 3, 4))}),
        ValueError,
        "scion: the leaf 'heads' has 3 axes. Say in `routes` what they are: 'in' for "
        "those that the layer sums over and 'out' for the others, such as `{'heads': "
        "'in in out'}`.",
    ),
}

TAKES_ANYTHING: dict[str, str] = {}
