"""Cases: optimizers of `contrib` that use single arrays or the norms of all arrays."""

import jax.numpy as jnp

from ._cases import Case, cosine, many


def _rising(count):
    return 0.5 + 0.02 * count.astype(float)


def _slow(step):
    return 0.2 * (step.astype(float) + 1) ** 0.3


def _curvature(m):
    """A deterministic estimator: twice the square of the gradient."""

    def update(updates, state, params=None, **extra_args):
        del params, extra_args
        return [2 * x * x for x in updates], state

    return m.GradientTransformation(lambda params: m.EmptyState(), update)


def _signed(dtype):
    """Neither zero nor where the loss is flat."""
    return [jnp.array([0.3, -1.0, 2.0], dtype), jnp.array(-0.7, dtype)]


def _loss(make, **options):
    return Case(make, wants=("value",), **options)


def _objective(make, **options):
    return Case(make, wants=("obj_fn",), **options)


CASES = {
    "acprop": lambda m: m.contrib.acprop(0.01),
    "acprop, other numbers": lambda m: m.contrib.acprop(
        cosine(m), 0.8, 0.95, 1e-3, 1e-4, 0.1, many
    ),
    "scale_by_acprop": lambda m: m.contrib.scale_by_acprop(0.0, 0.9),
    "ademamix": lambda m: m.contrib.ademamix(0.1),
    "ademamix, other numbers": lambda m: m.contrib.ademamix(
        0.1, 0.8, 0.95, 0.99, 2.0, 1e-3, 1e-4, None, 0.1, many
    ),
    # Optax computes the schedules in float32.
    "ademamix, scheduled": Case(
        lambda m: m.contrib.ademamix(0.1, b3=_rising, alpha=_rising), in_float32=True
    ),
    "scale_by_ademamix": lambda m: m.contrib.scale_by_ademamix(),
    "simplified_ademamix": lambda m: m.contrib.simplified_ademamix(0.1),
    "simplified_ademamix, other numbers": Case(
        lambda m: m.contrib.simplified_ademamix(
            0.1, 0.8, 0.9, _rising, 1e-3, 1e-4, 0.1, many
        ),
        in_float32=True,
    ),
    "scale_by_simplified_ademamix": lambda m: m.chain(
        m.contrib.scale_by_simplified_ademamix(alpha=2.0), m.scale(-0.05)
    ),
    "adopt": lambda m: m.contrib.adopt(0.1),
    "adopt, nesterov": lambda m: m.contrib.adopt(cosine(m), 0.8, 0.9, nesterov=True),
    "adopt, not clipped": lambda m: m.contrib.adopt(0.1, eps=0.1, use_clipping=False),
    "scale_by_adopt, clipped": Case(
        lambda m: m.contrib.scale_by_adopt(clip_value_fn=_slow), in_float32=True
    ),
    "cocob": lambda m: m.contrib.cocob(),
    "cocob, other numbers": lambda m: m.contrib.cocob(cosine(m), 20.0, 1e-3, 0.1, many),
    "scale_by_cocob": lambda m: m.contrib.scale_by_cocob(10.0, 0.1),
    "dadapt_adamw": lambda m: m.contrib.dadapt_adamw(),
    "dadapt_adamw, other numbers": lambda m: m.contrib.dadapt_adamw(
        0.2, (0.8, 0.9), 1e-3, 1e-2, 0.1
    ),
    "dadapt_adamw, scheduled": lambda m: m.contrib.dadapt_adamw(cosine(m)),
    "dog": lambda m: m.contrib.dog(),
    "dog, distance": lambda m: m.contrib.dog(
        0.5, ("distance", 0.1), 1e-2, weight_decay=0.1, mask=many
    ),
    "dog, learning rate": lambda m: m.contrib.dog(
        cosine(m), ("learning_rate", 0.1), weight_decay=0.1
    ),
    "dowg": lambda m: m.contrib.dowg(),
    "dowg, other numbers": lambda m: m.contrib.dowg(cosine(m), 0.1, 1e-2, 0.1, many),
    # Optax computes its weights, learning rate times root of t, in float32.
    "madgrad": Case(lambda m: m.contrib.madgrad(0.1), in_float32=True),
    "madgrad, other numbers": lambda m: m.contrib.madgrad(cosine(m), 0.5, 0.1, 1e-3),
    "scale_by_madgrad": Case(
        lambda m: m.contrib.scale_by_madgrad(0.1, 0.5), in_float32=True
    ),
    "momo": _loss(lambda m: m.contrib.momo()),
    "momo, other numbers": _loss(
        lambda m: m.contrib.momo(cosine(m), 0.5, -3.0, 0.1, False)
    ),
    "momo, adapts": _loss(lambda m: m.contrib.momo(10.0, 0.9, -20.0, 0.1, True)),
    "momo_adam": _loss(lambda m: m.contrib.momo_adam()),
    "momo_adam, other numbers": _loss(
        lambda m: m.contrib.momo_adam(cosine(m), 0.5, 0.9, 1e-3, -3.0, 0.1, False)
    ),
    "momo_adam, adapts": _loss(
        lambda m: m.contrib.momo_adam(
            1.0, lower_bound=-20.0, weight_decay=0.1, adapt_lower_bound=True
        )
    ),
    "prodigy": lambda m: m.contrib.prodigy(),
    "prodigy, other numbers": lambda m: m.contrib.prodigy(
        0.5, (0.8, 0.9), 0.7, 1e-3, 1e-2, 2.0, 0.1, True
    ),
    "prodigy, scheduled": lambda m: m.contrib.prodigy(cosine(m), estim_lr0=1e-2),
    "sophia": _objective(lambda m: m.contrib.sophia(0.1)),
    "sophia, other numbers": _objective(
        lambda m: m.contrib.sophia(
            cosine(m), 0.8, 0.9, 1e-3, 0.1, many, 1.0, 0.5, update_interval=3
        )
    ),
    "sophia, not clipped": _objective(
        lambda m: m.contrib.sophia(
            0.1, eps=0.1, gamma=0.5, clip_threshold=None, update_interval=2
        )
    ),
    "sophia, another estimator": Case(
        lambda m: m.contrib.sophia(
            0.1, gamma=1.0, update_interval=2, hessian_diagonal_fn=_curvature(m)
        ),
        params=_signed,
    ),
    "hutchinson": _objective(lambda m: m.contrib.hutchinson_estimator_diag_hessian()),
    "split_real_and_imaginary": lambda m: m.contrib.split_real_and_imaginary(
        m.adam(0.1)
    ),
}
