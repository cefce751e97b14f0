"""Cases: the basic optimizers."""

from ._cases import cosine, many

# One function of the library per case, called with both libraries.
CASES = {
    "adam": lambda m: m.adam(0.1),
    "adam, other numbers": lambda m: m.adam(0.1, 0.8, 0.95, 1e-3, 1e-4),
    "adam, b1 = 0": lambda m: m.adam(0.1, b1=0.0),
    "adam, nesterov": lambda m: m.adam(0.1, nesterov=True),
    "adam, scheduled": lambda m: m.adam(cosine(m)),
    "adamw": lambda m: m.adamw(0.1, weight_decay=0.01),
    "adamw, mask": lambda m: m.adamw(0.1, weight_decay=0.1, mask=many),
    "adamw, mask of a subtree": lambda m: m.adamw(
        0.1, weight_decay=0.1, mask={"w": True, "b": False, "s": True}
    ),
    "adamw, nesterov": lambda m: m.adamw(0.1, nesterov=True),
    "adamw, decay scheduled": lambda m: m.adamw(0.1, weight_decay=cosine(m)),
    "add_decayed_weights": lambda m: m.add_decayed_weights(0.1),
    "add_decayed_weights, mask": lambda m: m.add_decayed_weights(0.1, many),
    "add_decayed_weights, scheduled": lambda m: m.add_decayed_weights(cosine(m), many),
    "chain": lambda m: m.chain(
        m.clip_by_global_norm(1.0), m.chain(m.adamw(1e-3), m.scale(2.0)), m.identity()
    ),
    "chain, norm late": lambda m: m.chain(
        m.scale_by_adam(), m.clip_by_global_norm(0.5), m.trace(0.9), m.clip(0.1)
    ),
    "clip": lambda m: m.clip(0.4),
    "clip_by_global_norm": lambda m: m.clip_by_global_norm(1.0),
    "clip_by_global_norm, long": lambda m: m.clip_by_global_norm(1e3),
    "identity": lambda m: m.identity(),
    "lion": lambda m: m.lion(0.01),
    "lion, other numbers": lambda m: m.lion(cosine(m), 0.8, 0.9, None, 0.1, many),
    "lion, smooth": lambda m: m.scale_by_lion(mode="smooth", smooth_beta=3.0),
    "lion, refined": lambda m: m.scale_by_lion(mode="refined"),
    "masked": lambda m: m.masked(m.adam(0.1), many),
    "masked, part of the norm": lambda m: m.masked(
        m.chain(m.clip_by_global_norm(0.5), m.adam(0.1)),
        {"w": True, "b": False, "s": True},
    ),
    "nadam": lambda m: m.nadam(0.1),
    "nadamw": lambda m: m.nadamw(0.1, mask=many),
    "named_chain": lambda m: m.named_chain(
        ("z", m.clip(0.5)), ("a", m.adamw(0.1)), ("m", m.scale(0.5))
    ),
    "scale": lambda m: m.scale(-0.3),
    "scale_by_adam": lambda m: m.scale_by_adam(),
    "scale_by_learning_rate": lambda m: m.scale_by_learning_rate(0.1),
    "scale_by_learning_rate, up": lambda m: m.scale_by_learning_rate(
        cosine(m), flip_sign=False
    ),
    "scale_by_learning_rate, none": lambda m: m.scale_by_learning_rate(None),
    "scale_by_schedule": lambda m: m.scale_by_schedule(cosine(m)),
    "set_to_zero": lambda m: m.set_to_zero(),
    "sgd": lambda m: m.sgd(0.1),
    "sgd, momentum": lambda m: m.sgd(0.1, 0.9),
    "sgd, nesterov": lambda m: m.sgd(cosine(m), 0.9, True),
    "trace": lambda m: m.trace(0.5, True),
}
