"""Bad calls of the optimizers that work in an eigenbasis, and of averages."""

import jax.numpy as jnp

import steepest

from ._bad import Bad, params


def _complex() -> object:
    p = {"w": jnp.ones((2, 3), complex)}
    tx = steepest.scale_by_splus()
    return tx.update(p, tx.init(p), p)


BAD = {
    "blocked": Bad(
        lambda: steepest.blocked(steepest.scale_by_polar(), 0),
        ValueError,
        "blocked: size is 0, expected",
    ),
    "scale_by_splus": Bad(
        _complex,
        ValueError,
        "scale_by_splus: leaf ['w'] is complex64, expected a real matrix. Put "
        "`contrib.split_real_and_imaginary` around the optimizer.",
    ),
    "splus": Bad(
        lambda: steepest.splus(0.2, others="sgd"),  # pyright: ignore[reportArgumentType]
        ValueError,
        "splus: others is 'sgd', expected one of: adam, sign.",
    ),
    "scale_by_soap_muon": Bad(
        lambda: steepest.scale_by_soap_muon(frequency=0),
        ValueError,
        "scale_by_soap_muon: frequency is 0, expected",
    ),
    "soap_muon": Bad(
        lambda: steepest.soap_muon(0.1, scale="large"),  # pyright: ignore[reportArgumentType]
        ValueError,
        "soap_muon: scale is 'large', expected one of: rms, original, spectral.",
    ),
    "ema_params": Bad(
        lambda: steepest.ema_params("slow"),  # pyright: ignore[reportArgumentType]
        TypeError,
        "ema_params: decay is a str, expected a number in [0, 1].",
    ),
    "ema_eval_params": Bad(
        lambda: steepest.ema_eval_params(steepest.adam(0.1).init(params()), params()),
        TypeError,
        "ema_eval_params: the state is a tuple without an EmaParamsState. Pass the "
        "state of an optimizer with `ema_params`.",
    ),
}

# Functions that accept anything, and why.
TAKES_ANYTHING: dict[str, str] = {}
