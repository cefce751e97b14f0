"""Cases: layerwise and memory-efficient optimizers, and small transformations.

Most of the time is compilation, so there are few shapes and several transformations per
chain.
"""

import jax
import jax.numpy as jnp

from ._cases import Case, cosine, many


def _filled(**shapes):
    def params(dtype):
        zeros = {name: jnp.zeros(shape) for name, shape in shapes.items()}
        filled = lambda x: jnp.sin(jnp.arange(1.0, 1.0 + x.size)).reshape(x.shape)
        return {name: filled(x).astype(dtype) for name, x in zeros.items()}

    return params


def _factored(make):
    """Optax computes the decay of the second moment in float32."""
    shapes = _filled(w=(4, 5), ties=(3, 2, 3), v=(3,))
    return Case(make, params=shapes, in_float32=True)


def _with_zeros(make):
    shapes = _filled(w=(3, 2), s=())
    return Case(make, params=lambda t: {**shapes(t), "zero": jnp.zeros((3, 2), t)})


def _of(make, **shapes):
    return Case(make, params=_filled(**shapes))


def _flat(p):
    return jax.tree.map(lambda x: x.ndim < 2, p)


def _half(i, exponent):
    return 0.5 + 0.1 * exponent


CASES = {
    "adafactor": _factored(lambda m: m.adafactor(0.1)),
    "adafactor, factors": _factored(lambda m: m.adafactor(0.1, 2)),
    "adafactor, bare": _factored(
        lambda m: m.adafactor(
            0.1, 3, 0.6, -2, multiply_by_parameter_scale=False, clipping_threshold=None
        )
    ),
    "adafactor, decay": _factored(
        lambda m: m.adafactor(
            cosine(m),
            momentum=0.9,
            dtype_momentum=jnp.float32,
            clipping_threshold=0.3,
            weight_decay_rate=0.1,
            weight_decay_mask=many,
            eps=1e-3,
            factored=False,
        )
    ),
    "adaptive_grad_clip": _of(
        lambda m: m.adaptive_grad_clip(0.1), w=(3, 2), conv=(2, 1, 3, 2), s=()
    ),
    "adaptive_grad_clip, axis": _of(
        lambda m: m.adaptive_grad_clip(0.3, 0.7, (0, -1)), t=(2, 3, 2), w=(3, 2)
    ),
    "add_noise": lambda m: m.chain(
        m.add_noise(0.1, 0.55, 3), m.add_noise(0.1, 0.0, jax.random.key(1))
    ),
    "apply_every": lambda m: m.chain(m.ema(0.9), m.apply_every(3), m.apply_every()),
    "centralize": _of(
        lambda m: m.chain(m.zero_nans(), m.centralize(), m.clip_by_block_rms(0.3)),
        t=(2, 3, 2),
        w=(3, 2),
        s=(),
    ),
    "ema, biased": lambda m: m.chain(m.ema(0.5, False), m.normalize_by_update_norm(3)),
    "fromage": _with_zeros(lambda m: m.fromage(0.3)),
    "fromage, scheduled": _with_zeros(lambda m: m.fromage(cosine(m), 0.5)),
    "keep_params_nonnegative": lambda m: m.chain(
        m.sgd(3.0), m.keep_params_nonnegative()
    ),
    "lamb": _with_zeros(lambda m: m.lamb(0.1)),
    "lamb, other numbers": lambda m: m.lamb(
        cosine(m), 0.8, 0.9, 1e-3, 1e-4, weight_decay=0.1, mask=many
    ),
    "lars": _with_zeros(lambda m: m.lars(0.1)),
    "lars, other numbers": lambda m: m.lars(
        cosine(m), 0.1, many, 0.01, 0.1, _flat, 0.5, True
    ),
    "lars, decay of all": lambda m: m.lars(0.1, cosine(m), None),
    "noisy_sgd": lambda m: m.noisy_sgd(cosine(m), 0.1, 0.3, 5),
    "normalize_by_update_norm": lambda m: m.normalize_by_update_norm(eps=0.5),
    "scale_by_distance_over_gradients": _of(
        lambda m: m.chain(
            m.scale_by_distance_over_gradients(1e-2, 1e-3, global_scale=2.0),
            m.scale(-1.0),
        ),
        w=(3, 2),
        v=(3,),
    ),
    "scale_by_factored_rms": _factored(
        lambda m: m.chain(
            m.scale_by_factored_rms(
                min_dim_size_to_factor=3, decay_rate_fn=_half, epsilon=1e-2
            ),
            m.scale(-0.3),
        )
    ),
    "scale_by_param_block": _with_zeros(
        lambda m: m.chain(
            m.scale_by_param_block_norm(0.5), m.scale_by_param_block_rms()
        )
    ),
    "scale_by_sm3": _of(lambda m: m.scale_by_sm3(0.5, 0.9, 1e-2), t=(2, 3, 2), v=(3,)),
    "scale_by_trust_ratio": _with_zeros(
        lambda m: m.chain(
            m.scale_by_trust_ratio(), m.scale_by_trust_ratio(0.5, 0.1, 0.2)
        )
    ),
    "sm3": _of(lambda m: m.sm3(0.1), w=(3, 2), v=(3,)),
}
