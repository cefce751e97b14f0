"""Optimizers of `contrib` that use single arrays or the norms of all arrays."""

from steepest import contrib

from ._row import PRODUCT, REFUSED, Row, SQUARED

ADAM = {"learning_rate": 0.1, "b1": 0.9, "b2": 0.999, "eps": 1e-8}
BELIEF = {"b1": 0.9, "b2": 0.99, "eps": 1e-8, "eps_root": 1e-8}
MIX = {"b1": 0.9, "b2": 0.99, "eps": 1e-8, "eps_root": 0.0}
FOUND = {"learning_rate": 1.0, "eps": 1e-8, "weight_decay": 0.0}

OPTIMIZERS = [
    Row(
        contrib.acprop,
        {"learning_rate": 0.05, **BELIEF, "weight_decay": 0.0},
        steep={"learning_rate": 1e-3},
    ),
    Row(
        contrib.ademamix,
        {"learning_rate": 0.05, **MIX, "b3": 0.99, "alpha": 2.0},
        scale_free=True,
    ),
    Row(
        contrib.simplified_ademamix,
        {"learning_rate": 0.01, **MIX, "alpha": 1.0, "weight_decay": 0.0},
        of_complex=SQUARED,
        scale_free=True,
    ),
    Row(
        contrib.adopt,
        {"learning_rate": 0.1, "b1": 0.9, "b2": 0.99, "eps": 1e-6},
        complex=False,
    ),
    Row(
        contrib.cocob,
        {"learning_rate": 1.0, "alpha": 10.0, "eps": 1e-8, "weight_decay": 0.0},
        of_complex="split",
        scale_free=True,
    ),
    Row(
        contrib.dadapt_adamw,
        {**FOUND, "estim_lr0": 0.01},
        of_complex=SQUARED,
        scale_free=True,
    ),
    Row(
        contrib.dog,
        {"learning_rate": 1.0, "eps": 1e-8},
        {"init_step": ("heuristic", 0.05)},
        scale_free=True,
        rotates=True,
    ),
    Row(
        contrib.dowg,
        {"learning_rate": 1.0, "init_estim_sq_dist": 0.01, "eps": 1e-4},
        rotates=True,
    ),
    Row(
        contrib.madgrad,
        {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.0, "eps": 1e-6},
        of_complex=REFUSED,
    ),
    Row(
        contrib.momo,
        {"learning_rate": 0.1, "beta": 0.9, "lower_bound": 0.0, "weight_decay": 0.0},
        {"adapt_lower_bound": True},
        wants=("value",),
    ),
    Row(
        contrib.momo_adam,
        {**ADAM, "lower_bound": 0.0, "weight_decay": 0.01},
        wants=("value",),
        of_complex=PRODUCT,
        still=False,
    ),
    Row(
        contrib.prodigy,
        {**FOUND, "estim_lr0": 0.01, "estim_lr_coef": 1.0},
        {"safeguard_warmup": True},
        of_complex=SQUARED,
        scale_free=True,
    ),
    Row(
        contrib.sophia,
        {
            **ADAM,
            "weight_decay": 0.0,
            "gamma": 0.1,
            "clip_threshold": 1.0,
        },
        {"update_interval": 2},
        wants=("obj_fn",),
        complex=False,
    ),
]

PARTS = [
    Row(contrib.scale_by_acprop, BELIEF, optimizer=False),
    Row(contrib.scale_by_ademamix, {**MIX, "b3": 0.99, "alpha": 2.0}, optimizer=False),
    Row(
        contrib.scale_by_adopt,
        {"b1": 0.9, "b2": 0.99, "eps": 1e-6},
        {"nesterov": True, "use_clipping": False},
        optimizer=False,
    ),
    Row(
        contrib.scale_by_cocob,
        {"alpha": 100.0, "eps": 1e-8},
        optimizer=False,
        of_complex="split",
    ),
    Row(
        contrib.scale_by_madgrad,
        {"learning_rate": 0.1, "momentum": 0.9, "eps": 1e-6},
        optimizer=False,
        of_complex=REFUSED,
    ),
    Row(
        contrib.scale_by_simplified_ademamix,
        {**MIX, "alpha": 1.0},
        optimizer=False,
        of_complex=SQUARED,
    ),
]
