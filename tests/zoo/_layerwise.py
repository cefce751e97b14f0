"""Layerwise and memory-efficient optimizers, and small transformations."""

import steepest

from ._row import OURS, REFUSED, Row, SQUARED

ADAFACTOR = {
    "learning_rate": 0.1,
    "decay_rate": 0.8,
    "decay_offset": 0,
    "clipping_threshold": 1.0,
    "momentum": 0.5,
    "eps": 1e-30,
}
LAMB = {"learning_rate": 0.05, "b1": 0.9, "b2": 0.99, "eps": 1e-6, "weight_decay": 0.0}
LARS = {"learning_rate": 10.0, "trust_coefficient": 1e-3, "momentum": 0.5}
MUON = {
    "learning_rate": 0.1,
    "beta": 0.9,
    "weight_decay": 0.01,
    "eps": 1e-8,
    "rms": 0.2,
    "adam_learning_rate": 0.05,
    "adam_b2": 0.95,
}
NOISY = {"learning_rate": 0.1, "eta": 0.01, "gamma": 0.55}

OPTIMIZERS = [
    Row(steepest.adafactor, ADAFACTOR, scale_free=True),
    Row(
        steepest.adafactor,
        {"learning_rate": 0.1, "weight_decay_rate": 1e-4},
        {"min_dim_size_to_factor": 2},
        "factored",
        still=False,
    ),
    Row(
        steepest.fromage,
        {"learning_rate": 0.05, "min_norm": 1e-6},
        scale_free=True,
        rotates=True,
        still=False,
    ),
    Row(steepest.lamb, LAMB),
    Row(steepest.lars, LARS, scale_free=True, rotates=True),
    # Rounding errors of float16 are 2^13 times those of float32.
    Row(
        steepest.muon,
        MUON,
        {"dtype": "float16"},
        "float16",
        still=False,
        of_complex=OURS,
        rounding=2**13,
    ),
    Row(
        steepest.noisy_sgd,
        NOISY,
        {"key": 0},
        elementwise=False,
        still=False,
        random=True,
        steep={"learning_rate": 5e-4},
    ),
    Row(
        steepest.sm3,
        {"learning_rate": 0.5, "momentum": 0.9},
        of_complex=REFUSED,
    ),
]

PARTS = [
    Row(steepest.adaptive_grad_clip, {"clipping": 0.1, "eps": 1e-3}, optimizer=False),
    Row(
        steepest.add_noise,
        {"eta": 0.01, "gamma": 0.55},
        {"key": 0},
        optimizer=False,
        elementwise=False,
        random=True,
    ),
    Row(steepest.apply_every, {"k": 2}, optimizer=False, linear=True),
    Row(steepest.centralize, {}, optimizer=False, linear=True),
    Row(steepest.clip_by_block_rms, {"threshold": 0.5}, optimizer=False, rotates=True),
    Row(steepest.ema, {"decay": 0.9}, optimizer=False, linear=True, rotates=True),
    Row(steepest.keep_params_nonnegative, {}, optimizer=False),
    Row(
        steepest.normalize_by_update_norm,
        {"scale_factor": 2.0, "eps": 1e-6},
        optimizer=False,
        scale_free=True,
        rotates=True,
    ),
    Row(
        steepest.scale_by_distance_over_gradients,
        {"reps_rel": 1e-2, "eps": 1e-8, "global_scale": 2.0},
        optimizer=False,
        of_complex=SQUARED,
        rotates=True,
    ),
    Row(
        steepest.scale_by_factored_rms,
        {"decay_rate": 0.8, "step_offset": 0, "epsilon": 1e-30},
        {"min_dim_size_to_factor": 2},
        optimizer=False,
        scale_free=True,
    ),
    Row(
        steepest.scale_by_param_block_norm,
        {"min_scale": 1e-3},
        optimizer=False,
        linear=True,
        rotates=True,
    ),
    Row(
        steepest.scale_by_param_block_rms,
        {"min_scale": 1e-3},
        optimizer=False,
        linear=True,
        rotates=True,
    ),
    Row(
        steepest.scale_by_sm3,
        {"b1": 0.9, "b2": 1.0, "eps": 1e-8},
        optimizer=False,
        of_complex=REFUSED,
    ),
    Row(
        steepest.scale_by_trust_ratio,
        {"min_norm": 0.0, "trust_coefficient": 0.1, "eps": 0.0},
        optimizer=False,
        scale_free=True,
        rotates=True,
    ),
    Row(steepest.zero_nans, {}, optimizer=False, linear=True),
]
