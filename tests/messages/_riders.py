"""Bad calls of wrappers that change the gradient, the step or the params."""

import jax.numpy as jnp

import steepest

from ._bad import Bad, params

ADAM = steepest.scale_by_adam()


def _step(tx):
    return tx.update(params(), tx.init(params()), params())


BAD = {
    "cautious": Bad(
        lambda: steepest.cautious(ADAM),
        ValueError,
        "cautious: inner is scale_by_adam, without a learning rate, so its updates "
        "point along the gradient, but descent is True. Pass `descent=False`, or an "
        "optimizer, such as `adam(1e-3)`.",
    ),
    "mars": Bad(
        lambda: steepest.mars(ADAM, b1=1.0),
        ValueError,
        "mars: b1 is 1.0, expected a number above 0 and below 1.",
    ),
    "hyperball": Bad(
        lambda: _step(steepest.hyperball(ADAM, 0.1)),
        ValueError,
        "hyperball: leaf ['b'] has shape (2,), expected at least 2 axes: only matrices "
        "keep their norm. Use `muon_h` or `adam_h`, which pass other leaves to AdamW, "
        "or `partition`.",
    ),
    "muon_h": Bad(
        lambda: steepest.muon_h(0.1, 0.1, radius="then"),
        ValueError,
        "muon_h: radius is 'then', expected one of: init, now.",
    ),
    "adam_h": Bad(
        lambda: steepest.adam_h(0.1, float("nan")),
        ValueError,
        "adam_h: adam_learning_rate is nan, expected a number that is finite.",
    ),
    "add_cautious_weight_decay": Bad(
        lambda: steepest.add_cautious_weight_decay(jnp.ones(2)),
        ValueError,
        "add_cautious_weight_decay: weight_decay has shape (2,), expected one number "
        "that is finite.",
    ),
}

TAKES_ANYTHING: dict[str, str] = {}
