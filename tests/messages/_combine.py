"""Bad calls of functions that combine transformations."""

import jax.numpy as jnp

import steepest

from ._bad import Bad, params

SGD = steepest.sgd(0.1)


def _after_init(tx, *args, **extra):
    """A step with these arguments, from the initial state."""
    return tx.update(args[0], tx.init(params()), *args[1:], **extra)


BAD = {
    "MultiSteps": Bad(
        lambda: steepest.MultiSteps(SGD, 0),
        ValueError,
        "MultiSteps: every_k_schedule is 0, expected a number that is whole and at "
        "least 1.",
    ),
    "apply_if_finite": Bad(
        lambda: steepest.apply_if_finite(SGD, -1),
        steepest.UnusualValueWarning,
        "apply_if_finite: max_consecutive_errors is -1, but is usually a number of at "
        "least 0. The value is used.",
    ),
    "chain": Bad(
        lambda: steepest.chain([steepest.adam(0.1)]),
        TypeError,
        "chain: argument 0 is a list, expected a gradient transformation (a pair of "
        "`init` and `update`). Unpack it: `chain(*transformations)`.",
    ),
    "conditionally_mask": Bad(
        lambda: steepest.conditionally_mask(SGD, True),
        TypeError,
        "conditionally_mask: should_transform_fn is a bool, expected a function.",
    ),
    "conditionally_transform": Bad(
        lambda: _after_init(
            steepest.conditionally_transform(SGD, lambda step: jnp.ones(2) > 0),
            params(),
        ),
        ValueError,
        "conditionally_transform: should_transform_fn must return one boolean for the "
        "whole step, got an array of shape (2,). Reduce it with `jnp.all` or "
        "`jnp.any`.",
    ),
    "flatten": Bad(
        lambda: steepest.flatten(steepest.adam),
        TypeError,
        "flatten: inner is a function, expected a gradient transformation (a pair of "
        "`init` and `update`). Call it first: `adam(...)`.",
    ),
    "guard": Bad(
        lambda: _after_init(steepest.guard(SGD), params(), value=jnp.ones(3)),
        ValueError,
        "guard: `value` has shape (3,) and dtype float32, expected the loss as one "
        "real number. Pass its mean over the batch.",
    ),
    "lookahead": Bad(
        lambda: steepest.lookahead(SGD, sync_period=0, slow_step_size=0.5),
        ValueError,
        "lookahead: sync_period is 0, expected a number that is whole and at least 1.",
    ),
    "masked": Bad(
        lambda: steepest.masked(SGD, {"w": True}).init(params()),
        ValueError,
        "masked: leaf ['b'] is in the params and not in the mask. Give the mask the ",
    ),
    "multi_transform": Bad(
        lambda: steepest.multi_transform({"a": SGD}, {"w": "a", "b": "c"}).init(
            params()
        ),
        ValueError,
        "partition: leaf ['b'] has the label 'c', expected one of ['a']. Add a "
        "transformation for that label; `set_to_zero()` freezes its leaves.",
    ),
    "named_chain": Bad(
        lambda: steepest.named_chain(("clip", steepest.clip(1.0)), SGD),
        TypeError,
        "named_chain: argument 1 is a Transformation, expected pairs of a name and a "
        'transformation, such as `("clip", clip(1.0))`, with distinct names.',
    ),
    "skip_large_updates": Bad(
        lambda: steepest.skip_large_updates(params(), 0, None, max_squared_norm=-1.0),
        steepest.UnusualValueWarning,
        "skip_large_updates: max_squared_norm is -1.0, but is usually a number of at "
        "least 0. The value is used.",
    ),
    "skip_not_finite": Bad(
        lambda: steepest.skip_not_finite({"w": "1.0"}, 0, None),
        TypeError,
        "skip_not_finite: leaf ['w'] of the updates is a str, expected an array. "
        "Use `None` for a leaf without an array.",
    ),
}

# Functions that accept anything, and why.
TAKES_ANYTHING: dict[str, str] = {}
