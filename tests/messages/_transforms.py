"""Bad calls of transformations."""

import jax.numpy as jnp

import steepest

from ._bad import Bad, params

STATE = "Make the state with `tx.init` of the params the updates are for."


def _after(tx, updates, *given, state=None):
    """A step of `tx` with these updates, from the state of our params."""
    return tx.update(updates, tx.init(params()) if state is None else state, *given)


def _text():
    return {"w": jnp.ones((3, 2)), "b": "2.0"}


def _phase():
    return {"w": jnp.ones((3, 2)), "b": jnp.ones(2, jnp.complex64)}


def _without_b():
    return {"w": jnp.ones((3, 2))}


BAD = {
    "adaptive_grad_clip": Bad(
        lambda: _after(steepest.adaptive_grad_clip(0.1, axis=1), params(), params()),
        ValueError,
        "adaptive_grad_clip: leaf ['b'] has shape (2,), expected a shape with axis 1. "
        "Exclude the leaf with `masked`.",
    ),
    "unitwise_norm": Bad(
        lambda: steepest.transforms.unitwise_norm(jnp.ones((3, 2)), axis=2),
        ValueError,
        "unitwise_norm: axis is 2, and the array has 2 dimensions, expected one from "
        "-2 to 1.",
    ),
    "unitwise_clip": Bad(
        lambda: steepest.transforms.unitwise_clip(1.0, 1.0, jnp.ones(3)),
        ValueError,
        "unitwise_clip: g_norm has shape (), max_norm () and grad (3,), expected the "
        "same shape for all three. Compute the norms with `unitwise_norm`.",
    ),
    "add_decayed_weights": Bad(
        lambda: _after(steepest.add_decayed_weights(0.1), params()),
        ValueError,
        "add_decayed_weights: `update` needs `params` and was called without it. Call "
        "`tx.update(grads, state, params)`.",
    ),
    "add_noise": Bad(
        lambda: steepest.add_noise(0.1, 0.5, key=0.5),
        TypeError,
        "add_noise: key is 0.5, expected a whole number or a key. Make one with "
        "`jax.random.key(0)`.",
    ),
    "apply_every": Bad(
        lambda: steepest.apply_every(0),
        ValueError,
        "apply_every: k is 0, expected a number that is whole and at least 1.",
    ),
    "centralize": Bad(
        lambda: _after(steepest.centralize(), _text()),
        TypeError,
        "centralize: leaf ['b'] of the updates is a str, expected an array. "
        "Use `None` for a leaf without an array.",
    ),
    "clip": Bad(
        lambda: _after(steepest.clip(1.0), _phase()),
        ValueError,
        "clip: leaf ['b'] is complex64, expected a real one: complex numbers have no "
        "order. Put `contrib.split_real_and_imaginary` around the transformation.",
    ),
    "clip_by_block_rms": Bad(
        lambda: steepest.clip_by_block_rms(-1.0),
        steepest.UnusualValueWarning,
        "clip_by_block_rms: threshold is -1.0, but is usually a number of at least 0. "
        "The value is used.",
    ),
    "clip_by_global_norm": Bad(
        lambda: steepest.clip_by_global_norm(None),
        TypeError,
        "clip_by_global_norm: max_norm is a NoneType, expected a number of at least 0.",
    ),
    "ema": Bad(
        lambda: steepest.ema(1.5),
        steepest.UnusualValueWarning,
        "ema: decay is 1.5, but is usually a number in [0, 1]. The value is used.",
    ),
    "freeze": Bad(
        lambda: steepest.freeze({"w": True}).init(params()),
        ValueError,
        (
            "masked: leaf ['b'] is in the params and not in the mask.",
            "Give the mask the structure of the params",
        ),
    ),
    "identity": Bad(
        lambda: steepest.chain(steepest.identity),
        TypeError,
        "chain: argument 0 is a function, expected a gradient transformation (a pair "
        "of `init` and `update`). Call it first: `identity(...)`.",
    ),
    "keep_params_nonnegative": Bad(
        lambda: _after(steepest.keep_params_nonnegative(), params(), _without_b()),
        ValueError,
        "keep_params_nonnegative: leaf ['b'] is in the updates and not in the params. "
        "Pass the params the updates are for.",
    ),
    "measure_with_ema": Bad(
        lambda: steepest.measure_with_ema(jnp.max, 1.5),
        steepest.UnusualValueWarning,
        "measure_with_ema: decay is 1.5, but is usually a number in [0, 1]. The value "
        "is used.",
    ),
    "monitor": Bad(
        lambda: steepest.monitor(jnp.max),
        TypeError,
        ("monitor: measures is a", "expected a dict {name: function}."),
    ),
    "normalize_by_update_norm": Bad(
        lambda: steepest.normalize_by_update_norm(eps=-1e-6),
        steepest.UnusualValueWarning,
        "normalize_by_update_norm: eps is -1e-06, but is usually a number of at least "
        "0. The value is used.",
    ),
    "per_example_global_norm_clip": Bad(
        lambda: steepest.per_example_global_norm_clip(params(), 1.0),
        ValueError,
        "per_example_global_norm_clip: the leaves have shapes (2,), (3, 2), expected "
        "a first axis (the examples) of the same size in all leaves. Compute the "
        "gradients with `jax.vmap(jax.grad(loss))`.",
    ),
    "per_example_layer_norm_clip": Bad(
        lambda: steepest.per_example_layer_norm_clip(_text(), 1.0),
        TypeError,
        "per_example_layer_norm_clip: leaf ['b'] of the grads is a str, expected an "
        "array. Use `None` for a leaf without an array.",
    ),
    "scale": Bad(
        lambda: steepest.scale("0.1"),
        TypeError,
        "scale: step_size is a str, expected a number that is not NaN.",
    ),
    "scale_by_distance_over_gradients": Bad(
        lambda: steepest.scale_by_distance_over_gradients(param_dtype=jnp.int32),
        TypeError,
        "scale_by_distance_over_gradients: param_dtype is <class 'jax.numpy.int32'>, "
        "expected a dtype of real numbers, such as `jnp.float32`.",
    ),
    "scale_by_learning_rate": Bad(
        lambda: steepest.scale_by_learning_rate(float("inf")),
        ValueError,
        "scale_by_learning_rate: learning_rate is inf, expected a number that is "
        "finite.",
    ),
    "scale_by_param_block_norm": Bad(
        lambda: _after(steepest.scale_by_param_block_norm(), params()),
        ValueError,
        "scale_by_param_block_norm: `update` needs `params` and was called without it. "
        "Call `tx.update(grads, state, params)`.",
    ),
    "scale_by_param_block_rms": Bad(
        lambda: steepest.scale_by_param_block_rms(-1.0),
        steepest.UnusualValueWarning,
        "scale_by_param_block_rms: min_scale is -1.0, but is usually a number of at "
        "least 0 and below infinity. The value is used.",
    ),
    "scale_by_schedule": Bad(
        lambda: _after(steepest.scale_by_schedule(jnp.cos), params(), state=()),
        TypeError,
        "scale_by_schedule: the state is a tuple, expected a ScaleByScheduleState. "
        f"{STATE}",
    ),
    "scale_by_trust_ratio": Bad(
        lambda: _after(
            steepest.scale_by_trust_ratio(), params(), {**params(), "b": jnp.ones(3)}
        ),
        ValueError,
        "scale_by_trust_ratio: leaf ['b'] has shape (2,) in the updates and shape (3,) "
        "in the params. Pass the params the updates are for.",
    ),
    "selective_transform": Bad(
        lambda: steepest.selective_transform(steepest.adam, freeze_mask=True),
        TypeError,
        "selective_transform: optimizer is a function, expected a gradient "
        "transformation (a pair of `init` and `update`). Call it first: `adam(...)`.",
    ),
    "set_to_zero": Bad(
        lambda: _after(steepest.set_to_zero(), _text()),
        TypeError,
        "set_to_zero: leaf ['b'] of the updates is a str, expected an array. "
        "Use `None` for a leaf without an array.",
    ),
    "snapshot": Bad(
        lambda: steepest.snapshot(jnp.max, "largest"),
        TypeError,
        ("snapshot: measure_name is a", "expected a string."),
    ),
    "stateless_with_tree_map": Bad(
        lambda: steepest.stateless_with_tree_map(0.1),
        TypeError,
        "stateless_with_tree_map: f is a float, expected a function.",
    ),
    "trace": Bad(
        lambda: steepest.trace(9),
        steepest.UnusualValueWarning,
        "trace: decay is 9, but is usually a number in [0, 1]. The value is used.",
    ),
    "zero_nans": Bad(
        lambda: _after(steepest.zero_nans(), params(), state=steepest.EmptyState()),
        TypeError,
        f"zero_nans: the state is a EmptyState, expected a ZeroNansState. {STATE}",
    ),
}

TAKES_ANYTHING: dict[str, str] = {}
