"""Bad calls of `contrib`."""

import jax.numpy as jnp

import steepest
from steepest import contrib

from ._bad import Bad, params

_WITHOUT = "and was called without it. Call `tx.update(grads, state, params"


def _step(tx, updates=None, state=None, with_params=True, **extra):
    """One step of `tx`, with valid values for all other arguments."""
    p = params()
    updates = p if updates is None else updates
    state = tx.init(p) if state is None else state
    return tx.update(updates, state, p if with_params else None, **extra)


def _phase():
    return {**params(), "b": jnp.zeros(2, jnp.complex64)}


BAD = {
    "contrib.acprop": Bad(
        lambda: contrib.acprop(None),
        steepest.UnusualValueWarning,
        "acprop: learning_rate is None, so the updates are not scaled, and point "
        "uphill. Pass a number or a function of the count. For the direction alone,"
        " use the `scale_by_...` that this optimizer is made of.",
    ),
    "contrib.ademamix": Bad(
        lambda: _step(contrib.ademamix(0.1), with_params=False),
        ValueError,
        f"ademamix: `update` needs `params` {_WITHOUT})`.",
    ),
    "contrib.adopt": Bad(
        lambda: _step(contrib.adopt(0.1), _phase()),
        ValueError,
        "adopt: leaf ['b'] is complex64, expected a real one: complex "
        "numbers have no order. Put `contrib.split_real_and_imaginary` around the "
        "transformation.",
    ),
    "contrib.cocob": Bad(
        lambda: contrib.cocob(alpha=0.0),
        steepest.UnusualValueWarning,
        "cocob: alpha is 0.0, but is usually a number above 0. The value is used.",
    ),
    "contrib.dadapt_adamw": Bad(
        lambda: contrib.dadapt_adamw(betas=0.9),
        ValueError,
        "dadapt_adamw: betas is 0.9, expected two numbers (b1, b2).",
    ),
    "contrib.differentially_private_aggregate": Bad(
        lambda: _step(contrib.differentially_private_aggregate(1.0, 1.0, 0)),
        ValueError,
        "differentially_private_aggregate: the gradients have shapes [(2,), (3, 2)], "
        "expected a leading axis of examples, of the same size in all. Compute the "
        "gradient of each example with `jax.vmap(jax.grad(loss), (None, 0))`.",
    ),
    "contrib.dog": Bad(
        lambda: contrib.dog(init_step=("far", 1.0)),
        ValueError,
        "dog: init_step[0] is 'far', expected one of: distance, learning_rate, "
        "heuristic.",
    ),
    "contrib.dowg": Bad(
        lambda: contrib.dowg(init_estim_sq_dist=-1.0),
        steepest.UnusualValueWarning,
        "dowg: init_estim_sq_dist is -1.0, but is usually a number of at least 0 and "
        "below infinity. The value is used.",
    ),
    "contrib.dpsgd": Bad(
        lambda: contrib.dpsgd(0.1, 1.0, 1.0, 0, momentum=9.0),
        steepest.UnusualValueWarning,
        "dpsgd: momentum is 9.0, but is usually a number in [0, 1]. The value is used.",
    ),
    "contrib.galore": Bad(
        lambda: contrib.galore(0.1, rank=0),
        ValueError,
        "galore: rank is 0, expected a number that is whole and at least 1.",
    ),
    "contrib.hutchinson_estimator_diag_hessian": Bad(
        lambda: _step(contrib.hutchinson_estimator_diag_hessian()),
        ValueError,
        "hutchinson_estimator_diag_hessian: `update` needs `obj_fn` "
        f"{_WITHOUT}, obj_fn=...)`.",
    ),
    "contrib.madgrad": Bad(
        lambda: contrib.madgrad(float("inf")),
        ValueError,
        "madgrad: learning_rate is inf, expected a number that is finite.",
    ),
    "contrib.mechanize": Bad(
        lambda: contrib.mechanize(steepest.sgd),
        TypeError,
        "mechanize: base_optimizer is a function, expected a gradient transformation "
        "(a pair of `init` and `update`). Call it first: `sgd(...)`.",
    ),
    "contrib.momo": Bad(
        lambda: _step(contrib.momo()),
        ValueError,
        f"momo: `update` needs `value` {_WITHOUT}, value=...)`.",
    ),
    "contrib.momo_adam": Bad(
        lambda: _step(contrib.momo_adam(), value=jnp.ones(3)),
        ValueError,
        "momo_adam: value has shape (3,), expected one number that is the loss.",
    ),
    "contrib.muon": Bad(
        lambda: contrib.muon(0.1, adam_b1=1.5),
        steepest.UnusualValueWarning,
        "muon: adam_b1 is 1.5, but is usually a number in [0, 1]. The value is used.",
    ),
    "contrib.normalize": Bad(
        lambda: _step(contrib.normalize(), {**params(), "b": "2.0"}),
        TypeError,
        "normalize: leaf ['b'] of the updates is a str, expected an array. "
        "Use `None` for a leaf without an array.",
    ),
    "contrib.prodigy": Bad(
        lambda: contrib.prodigy(estim_lr0=0.0),
        steepest.UnusualValueWarning,
        "prodigy: estim_lr0 is 0.0, but is usually a number above 0 and below "
        "infinity. The value is used.",
    ),
    "contrib.reduce_on_plateau": Bad(
        lambda: contrib.reduce_on_plateau(factor=2.0),
        ValueError,
        "reduce_on_plateau: factor is 2.0, expected a number above 0 and below 1.",
    ),
    "contrib.sam": Bad(
        lambda: _step(contrib.sam(steepest.sgd(0.1), steepest.sgd(0.1)), state=()),
        TypeError,
        "sam: the state is a tuple, expected a SAMState. Make the state with "
        "`tx.init` of the params the updates are for.",
    ),
    "contrib.scale_by_acprop": Bad(
        lambda: contrib.scale_by_acprop(b2=1.5),
        steepest.UnusualValueWarning,
        "scale_by_acprop: b2 is 1.5, but is usually a number in [0, 1]. The value is "
        "used.",
    ),
    "contrib.scale_by_ademamix": Bad(
        lambda: contrib.scale_by_ademamix(b3=1.5),
        steepest.UnusualValueWarning,
        "scale_by_ademamix: b3 is 1.5, but is usually a number in [0, 1]. The value "
        "is used.",
    ),
    "contrib.scale_by_adopt": Bad(
        lambda: contrib.scale_by_adopt(clip_value_fn=1.0),
        TypeError,
        "scale_by_adopt: clip_value_fn is a float, expected a function.",
    ),
    "contrib.scale_by_cocob": Bad(
        lambda: _step(contrib.scale_by_cocob(), with_params=False),
        ValueError,
        f"scale_by_cocob: `update` needs `params` {_WITHOUT})`.",
    ),
    "contrib.scale_by_galore": Bad(
        lambda: _step(contrib.scale_by_galore(1), {"w": jnp.ones((3, 2))}),
        ValueError,
        "scale_by_galore: leaf ['b'] is in the state's `projector` and not in the "
        "updates. Pass the params and the state that the updates are for.",
    ),
    "contrib.scale_by_madgrad": Bad(
        lambda: contrib.scale_by_madgrad(0.1, momentum=1.5),
        steepest.UnusualValueWarning,
        "scale_by_madgrad: momentum is 1.5, but is usually a number in [0, 1]. The "
        "value is used.",
    ),
    "contrib.scale_by_muon": Bad(
        lambda: _step(contrib.scale_by_muon()),
        ValueError,
        "scale_by_muon: leaf ['b'] has shape (2,), expected a matrix. Pass "
        "`weight_dimension_numbers` for it, or use `muon`, which passes other leaves "
        "to AdamW.",
    ),
    "contrib.scale_by_simplified_ademamix": Bad(
        lambda: contrib.scale_by_simplified_ademamix(alpha="1"),
        TypeError,
        "scale_by_simplified_ademamix: alpha is a str, expected a number that is "
        "finite.",
    ),
    "contrib.schedule_free": Bad(
        lambda: _step(
            contrib.schedule_free(steepest.sgd(0.1), 0.1),
            state=steepest.sgd(0.1).init(params()),
        ),
        TypeError,
        "schedule_free: the state is a tuple, expected a ScheduleFreeState. Make the "
        "state with `tx.init` of the params the updates are for.",
    ),
    "contrib.schedule_free_adamw": Bad(
        lambda: contrib.schedule_free_adamw(b2=1.5),
        steepest.UnusualValueWarning,
        "schedule_free_adamw: b2 is 1.5, but is usually a number in [0, 1]. The value "
        "is used.",
    ),
    "contrib.schedule_free_eval_params": Bad(
        lambda: contrib.schedule_free_eval_params(
            steepest.adam(0.1).init(params()), params()
        ),
        TypeError,
        "schedule_free_eval_params: the state is a tuple without a ScheduleFreeState. "
        "Pass the state of `schedule_free`.",
    ),
    "contrib.schedule_free_sgd": Bad(
        lambda: contrib.schedule_free_sgd(lambda count: 0.1, warmup_steps=10),
        TypeError,
        "schedule_free_sgd: learning_rate is a schedule and warmup_steps is 10, "
        "expected only one of them. Put the warm-up into the schedule.",
    ),
    "contrib.simplified_ademamix": Bad(
        lambda: contrib.simplified_ademamix(0.1, eps=-1e-8),
        steepest.UnusualValueWarning,
        "simplified_ademamix: eps is -1e-08, but is usually a number of at "
        "least 0. The value is used.",
    ),
    "contrib.sophia": Bad(
        lambda: contrib.sophia(0.1, update_interval=0),
        ValueError,
        "sophia: update_interval is 0, expected a number that is whole and at least 1.",
    ),
    "contrib.split_real_and_imaginary": Bad(
        lambda: contrib.split_real_and_imaginary(0.1),
        TypeError,
        "split_real_and_imaginary: inner is a float, expected a gradient "
        "transformation (a pair of `init` and `update`). Pass a transformation, such "
        "as `steepest.adam(1e-3)`.",
    ),
}

TAKES_ANYTHING: dict[str, str] = {}
