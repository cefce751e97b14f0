"""Cases: wrappers around transformations."""

import functools

import jax
import jax.numpy as jnp

from ._cases import Case, cosine, many


def _labels(p):
    return jax.tree.map(lambda x: "many" if x.ndim > 1 else "few", p)


def _odd(step):
    return step % 2 == 1


def _low(step, value, **extra):
    return value < 2


def _steps(m, *args, **kwargs):
    """In the dtype of the params; by default Optax accumulates float64 in float32."""
    return _emptied(m, m.MultiSteps(*args, accumulator_dtype=None, **kwargs))


def _emptied(m, made):
    """After a step Optax zeroes its accumulator; ours keeps its value."""

    def update(updates, state, params=None):
        updates, state = made.update(updates, state, params)
        empty = lambda a: jnp.where(state.mini_step == 0, jnp.zeros_like(a), a)
        acc = jax.tree.map(empty, state.acc_grads)
        return updates, state._replace(acc_grads=acc)

    return m.GradientTransformation(made.init, update)


CASES = {
    "apply_if_finite": lambda m: m.apply_if_finite(m.adam(0.1), 3),
    "conditionally_mask": lambda m: m.conditionally_mask(m.adam(0.1), _odd),
    "conditionally_mask, value": Case(
        lambda m: m.conditionally_mask(m.adam(0.1), _low, forward_extra_args=True),
        wants=("value",),
    ),
    "conditionally_transform": lambda m: m.conditionally_transform(m.adam(0.1), _odd),
    "conditionally_transform, value": Case(
        lambda m: m.conditionally_transform(m.clip(0.5), _low, True), wants=("value",)
    ),
    "flatten": lambda m: m.flatten(m.chain(m.clip_by_global_norm(1.0), m.adamw(0.1))),
    "freeze": lambda m: m.chain(
        m.adam(0.1), m.freeze({"w": True, "b": False, "s": 1 < 0})
    ),
    "inject_hyperparams": Case(
        # `1 - 0.999` is computed in float32 if 0.999 is an array.
        lambda m: m.inject_hyperparams(m.adamw)(0.1, b1=0.8, weight_decay=0.01),
        tolerance=3e-5,
    ),
    "inject_hyperparams, scheduled": Case(
        lambda m: m.inject_hyperparams(m.sgd)(cosine(m), momentum=0.9, nesterov=True),
        dtypes=("float32",),  # in float64 we compute the schedule in float64
    ),
    "inject_hyperparams, static": Case(
        lambda m: m.inject_hyperparams(m.adamw, static_args=("b2", "mask"))(
            0.1, mask=many
        )
    ),
    "inject_hyperparams, in a chain": lambda m: m.chain(
        m.clip_by_global_norm(1.0), m.inject_hyperparams(m.sgd)(0.1), m.scale(0.5)
    ),
    "inject_hyperparams, stateful": Case(
        lambda m: m.inject_hyperparams(m.sgd)(m.WrappedSchedule(cosine(m))),
        dtypes=("float32",),
    ),
    "MultiSteps, default": Case(
        lambda m: _emptied(m, m.MultiSteps(m.adam(0.1), 2)),
        dtypes=("float32",),
    ),
    "MultiSteps": lambda m: _steps(m, m.adam(0.1), 3),
    "MultiSteps, sum": lambda m: _steps(m, m.sgd(0.1), 3, use_grad_mean=False),
    "MultiSteps, scheduled": lambda m: _steps(m, m.sgd(0.1, 0.9), lambda n: n + 1),
    "MultiSteps, skipping": lambda m: _steps(
        m, m.adam(0.1), 2, should_skip_update_fn=m.skip_not_finite
    ),
    "MultiSteps, skipping the long": lambda m: _steps(
        m,
        m.adam(0.1),
        2,
        should_skip_update_fn=functools.partial(
            m.skip_large_updates, max_squared_norm=5.0
        ),
    ),
    "partition": lambda m: m.partition(
        {
            "many": m.chain(m.clip_by_global_norm(0.5), m.adamw(0.1)),
            "few": m.sgd(0.1, 0.9),
        },
        _labels,
    ),
    "partition, subtrees": lambda m: m.chain(
        m.clip(1.0),
        m.multi_transform(
            {1: m.lion(0.01), 2: m.set_to_zero(), 3: m.adam(cosine(m))},
            {"w": 3, "b": 2, "s": 1},
        ),
        m.scale(2.0),
    ),
    "partition, an idle group": lambda m: m.partition(
        {"many": m.adam(0.1), "few": m.sgd(0.1), "none": m.adam(1.0)}, _labels
    ),
    "selective_transform": lambda m: m.selective_transform(
        m.adam(0.1), freeze_mask={"w": True, "b": False, "s": True}
    ),
}
