"""Bad calls of SOAP."""

import jax.numpy as jnp

import steepest

from ._bad import Bad


def _vector():
    tx, b = steepest.scale_by_soap(), {"b": jnp.zeros(2)}
    return tx.update(b, tx.init({"b": jnp.zeros((2, 2))}))


BAD = {
    "scale_by_soap": Bad(
        _vector,
        ValueError,
        "scale_by_soap: leaf ['b'] has shape (2,), expected a matrix. Use `soap`, "
        "which passes other leaves to AdamW.",
    ),
    "soap": Bad(
        lambda: steepest.soap(1e-3, basis="svd"),
        ValueError,
        "soap: basis is 'svd', expected one of: qr, rotation.",
    ),
}

TAKES_ANYTHING: dict[str, str] = {}
