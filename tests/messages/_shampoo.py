"""Bad calls of Shampoo."""

import jax.numpy as jnp

import steepest

from ._bad import Bad


def _vector():
    tx = steepest.scale_by_shampoo()
    return tx.update({"b": jnp.zeros(2)}, tx.init({"b": jnp.zeros((2, 2))}))


BAD = {
    "scale_by_shampoo": Bad(
        _vector,
        ValueError,
        "scale_by_shampoo: leaf ['b'] has shape (2,), expected a matrix. Use "
        "`shampoo`, which passes other leaves to AdamW.",
    ),
    "shampoo": Bad(
        lambda: steepest.shampoo(1e-3, factors="kl", graft="adam"),
        ValueError,
        "shampoo: factors is 'kl', expected no `graft`, `root`, `exponent`, `trace` or "
        "`start`. Leave them out: KL-Shampoo has none of them.",
    ),
}

TAKES_ANYTHING: dict[str, str] = {}
