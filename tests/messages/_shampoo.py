"""Bad calls of Shampoo."""

import jax.numpy as jnp

import steepest

from ._bad import Bad

_B = {"b": jnp.zeros(2)}


def _step(g):
    tx = steepest.scale_by_shampoo()
    return tx.update(g, tx.init({"b": jnp.zeros((2, 2))}))


BAD = {
    "scale_by_shampoo": Bad(
        lambda: _step(_B),
        ValueError,
        "scale_by_shampoo: leaf ['b'] has shape (2,), expected a matrix. Use "
        "`shampoo`, which passes other leaves to AdamW.",
    ),
    "scale_by_shampoo, complex": Bad(
        lambda: _step({"b": jnp.ones((2, 2), complex)}),
        ValueError,
        ("leaf ['b'] is complex", "expected a real matrix."),
    ),
    "shampoo": Bad(
        lambda: steepest.shampoo(1e-3, **{"graft": "lion"}),
        ValueError,
        "shampoo: graft is 'lion', expected one of: adam, rmsprop, adagrad, sgd, none.",
    ),
    "shampoo, exponent": Bad(
        lambda: steepest.shampoo(1e-3, exponent=0.0),
        ValueError,
        "shampoo: exponent is 0.0, expected a number above 0.",
    ),
    "shampoo, newton": Bad(
        lambda: steepest.shampoo(1e-3, root="newton", exponent=0.4),
        ValueError,
        "shampoo: exponent is 0.4, expected 1/p for a whole number p. Use "
        "`root='basis'` for other roots.",
    ),
    "shampoo, kl": Bad(
        lambda: steepest.shampoo(1e-3, factors="kl", graft="adam"),
        ValueError,
        "shampoo: factors is 'kl', expected no `graft`, `root`, `exponent`, `trace` or "
        "`start`. Leave them out: KL-Shampoo has none of them.",
    ),
    "shampoo, start": Bad(
        lambda: steepest.shampoo(1e-3, start=0),
        ValueError,
        "shampoo: start is 0, expected a number that is whole and at least 1.",
    ),
}

TAKES_ANYTHING: dict[str, str] = {}
