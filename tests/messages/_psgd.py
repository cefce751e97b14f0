"""Bad calls of PSGD and Kron."""

import jax.numpy as jnp

import steepest

from ._bad import Bad


def _complex(tx):
    g = {"w": jnp.ones((3, 2), jnp.complex64)}
    return tx.update(g, tx.init(g), g)


BAD = {
    "psgd": Bad(
        lambda: _complex(steepest.psgd(1e-3)),
        ValueError,
        "psgd: leaf ['w'] is complex64, expected a real matrix. Put "
        "`contrib.split_real_and_imaginary` around the optimizer.",
    ),
    "scale_by_psgd": Bad(
        lambda: steepest.scale_by_psgd(max_skew=-1.0),
        ValueError,
        "scale_by_psgd: max_skew is -1.0, expected a number of at least 0.",
    ),
    "kron": Bad(
        lambda: steepest.kron(1e-3, rms=float("inf")),
        ValueError,
        "kron: rms is inf, expected a number that is finite.",
    ),
    "scale_by_kron": Bad(
        lambda: steepest.scale_by_kron(damping=0.0),
        ValueError,
        "scale_by_kron: damping is 0.0, expected a number above 0 and below infinity.",
    ),
}

TAKES_ANYTHING: dict[str, str] = {}
