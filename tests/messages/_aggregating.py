"""Bad calls of `experimental.aggregating`."""

import jax.numpy as jnp

import steepest
from steepest.experimental import aggregating

from ._bad import Bad, params

_PERIOD = "and a number that is whole, expected at least 1."


def _each(size=2):
    return {"w": jnp.ones((2, 3, 2)), "b": jnp.zeros((size, 2))}


def _step(tx, updates, **extra):
    return tx.update(updates, tx.init(params()), params(), **extra)


BAD = {
    "experimental.aggregating.process": Bad(
        lambda: aggregating.process(steepest.clip, steepest.sgd(0.1), steepest.sgd(1)),
        TypeError,
        "process: preprocessor is a function, expected a gradient transformation (a "
        "pair of `init` and `update`). Call it first: `clip(...)`.",
    ),
    "experimental.aggregating.average_per_element_updates": Bad(
        lambda: _step(aggregating.average_per_element_updates(3), _each()),
        ValueError,
        "average_per_element_updates: axis is 3, and the array has 2 dimensions, "
        "expected one from -2 to 1.",
    ),
    "experimental.aggregating.get_batch_size_from_per_elt_updates": Bad(
        lambda: aggregating.get_batch_size_from_per_elt_updates(_each(4), 0),
        ValueError,
        "get_batch_size_from_per_elt_updates: the updates have shapes [(4, 2), (2, 3, "
        "2)], with batch sizes [2, 4] along axis 0; expected at least one leaf, and "
        "the same size for all. Compute the gradients with `jax.vmap(jax.grad(loss), "
        "(None, 0))`.",
    ),
    "experimental.aggregating.accumulate_avg_updates": Bad(
        lambda: aggregating.accumulate_avg_updates(0),
        ValueError,
        "accumulate_avg_updates: accumulation_steps is 0, expected a number that is "
        "whole and at least 1.",
    ),
    "experimental.aggregating.average_incrementally_updates": Bad(
        lambda: aggregating.average_incrementally_updates(0, 1.5),
        ValueError,
        "average_incrementally_updates: accumulation_steps is 1.5, expected a number "
        "that is whole and at least 1.",
    ),
    "experimental.aggregating.get_per_element_mean_and_sum_sq_diff_grads": Bad(
        lambda: _step(
            aggregating.get_per_element_mean_and_sum_sq_diff_grads("batch"), _each()
        ),
        TypeError,
        "get_per_element_mean_and_sum_sq_diff_grads: axis is 'batch', expected a "
        "whole number, a sequence of them or None.",
    ),
    "experimental.aggregating.track_per_element_mean_and_variance_with_ema": Bad(
        lambda: _step(
            aggregating.track_per_element_mean_and_variance_with_ema(), params()
        ),
        TypeError,
        "track_per_element_mean_and_variance_with_ema: `update` needs "
        "`sum_sq_diff_grads` and was called without it. Call `tx.update(grads, state, "
        "params, sum_sq_diff_grads=...)`.",
    ),
    "experimental.aggregating.get_unbiased_mean_and_variance_ema": Bad(
        lambda: aggregating.get_unbiased_mean_and_variance_ema(
            steepest.adam(0.1).init(params())
        ),
        ValueError,
        "get_unbiased_mean_and_variance_ema: the state has no "
        "PerElementMeanAndVarianceEMAState. Make the optimizer with "
        "`add_mean_variance_to_opt`.",
    ),
    "experimental.aggregating.add_mean_variance_to_opt": Bad(
        lambda: _step(
            aggregating.add_mean_variance_to_opt(steepest.sgd(0.1)),
            {"w": jnp.ones((1, 3, 2)), "b": jnp.zeros((1, 2))},
        ),
        ValueError,
        "track_per_element_mean_and_variance_with_ema: sample_size is 1, expected at "
        "least 2, since one element has no variance. Use larger batches.",
    ),
}

# Functions that accept anything, and why.
TAKES_ANYTHING: dict[str, str] = {}
