"""Bad calls of what trains half-precision weights, or moves the state."""

import jax.numpy as jnp

import steepest

from ._bad import Bad

SGD = steepest.sgd(0.1)
HALF = {"w": jnp.ones(2, jnp.bfloat16)}


def _without_params(tx):
    return tx.update(HALF, tx.init(HALF))


BAD = {
    "compensated": Bad(
        lambda: steepest.compensated(SGD, bits=4),
        ValueError,
        "compensated: bits is 4, expected 8 or 16.",
    ),
    "stochastic_rounding": Bad(
        lambda: _without_params(steepest.stochastic_rounding(SGD, key=0)),
        TypeError,
        "stochastic_rounding: `update` needs `params` and was called without it. Call "
        "`tx.update(grads, state, params)`.",
    ),
    "offload": Bad(
        lambda: steepest.offload(SGD, match=None),
        TypeError,
        "offload: a pattern is None, a NoneType, expected a regular expression: a "
        'string such as "bias|scale".',
    ),
    "wide_params": Bad(
        lambda: steepest.wide_params(HALF, SGD.init(HALF)),
        ValueError,
        "wide_params: the state is a tuple without a CompensatedState, expected that "
        "of an optimizer in `compensated`.",
    ),
    "from_wide_params": Bad(
        lambda: steepest.from_wide_params(
            {"w": jnp.ones(3)}, HALF, steepest.compensated(SGD).init(HALF)
        ),
        ValueError,
        "from_wide_params: leaf ['w'] has shape (3,) in `wide` and shape (2,) in the "
        "params, expected the same.",
    ),
}
TAKES_ANYTHING: dict[str, str] = {}
