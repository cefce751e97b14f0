"""Step by step, updates and state, as Optax computes them."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest


def _many(p):
    return jax.tree.map(lambda x: x.ndim > 1, p)


def _cosine(m):
    return m.warmup_cosine_decay_schedule(0.01, 0.1, 4, 15, 0.001)


# One function of the library for each case: it is called with both.
CASES = {
    "adam": lambda m: m.adam(0.1),
    "adam, other numbers": lambda m: m.adam(0.1, 0.8, 0.95, 1e-3, 1e-4),
    "adam, b1 = 0": lambda m: m.adam(0.1, b1=0.0),
    "adam, nesterov": lambda m: m.adam(0.1, nesterov=True),
    "adam, scheduled": lambda m: m.adam(_cosine(m)),
    "adamw": lambda m: m.adamw(0.1, weight_decay=0.01),
    "adamw, mask": lambda m: m.adamw(0.1, weight_decay=0.1, mask=_many),
    "adamw, mask of a subtree": lambda m: m.adamw(
        0.1, weight_decay=0.1, mask={"w": True, "b": False, "s": True}
    ),
    "adamw, nesterov": lambda m: m.adamw(0.1, nesterov=True),
    "adamw, decay scheduled": lambda m: m.adamw(0.1, weight_decay=_cosine(m)),
    "add_decayed_weights": lambda m: m.add_decayed_weights(0.1),
    "add_decayed_weights, mask": lambda m: m.add_decayed_weights(0.1, _many),
    "add_decayed_weights, scheduled": lambda m: m.add_decayed_weights(
        _cosine(m), _many
    ),
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
    "lion, other numbers": lambda m: m.lion(_cosine(m), 0.8, 0.9, None, 0.1, _many),
    "lion, smooth": lambda m: m.scale_by_lion(mode="smooth", smooth_beta=3.0),
    "lion, refined": lambda m: m.scale_by_lion(mode="refined"),
    "masked": lambda m: m.masked(m.adam(0.1), _many),
    "masked, part of the norm": lambda m: m.masked(
        m.chain(m.clip_by_global_norm(0.5), m.adam(0.1)),
        {"w": True, "b": False, "s": True},
    ),
    "nadam": lambda m: m.nadam(0.1),
    "nadamw": lambda m: m.nadamw(0.1, mask=_many),
    "named_chain": lambda m: m.named_chain(
        ("z", m.clip(0.5)), ("a", m.adamw(0.1)), ("m", m.scale(0.5))
    ),
    "scale": lambda m: m.scale(-0.3),
    "scale_by_adam": lambda m: m.scale_by_adam(),
    "scale_by_learning_rate": lambda m: m.scale_by_learning_rate(0.1),
    "scale_by_learning_rate, up": lambda m: m.scale_by_learning_rate(
        _cosine(m), flip_sign=False
    ),
    "scale_by_learning_rate, none": lambda m: m.scale_by_learning_rate(None),
    "scale_by_schedule": lambda m: m.scale_by_schedule(_cosine(m)),
    "set_to_zero": lambda m: m.set_to_zero(),
    "sgd": lambda m: m.sgd(0.1),
    "sgd, momentum": lambda m: m.sgd(0.1, 0.9),
    "sgd, nesterov": lambda m: m.sgd(_cosine(m), 0.9, True),
    "trace": lambda m: m.trace(0.5, True),
}

# Optax takes a schedule in float32, also where everything else is float64.
IN_FLOAT32 = {name for name in CASES if "_cosine" in CASES[name].__code__.co_names}


def _params(dtype):
    return {
        "w": jnp.linspace(-1.0, 1.0, 6, dtype=dtype).reshape(3, 2),
        "b": [jnp.array([0.5, -2.0], dtype), None],
        "s": jnp.array(3.0, dtype),
    }


def run(m, tx, dtype, steps=20):
    """`steps` compiled steps of a real descent: updates, states, params, each time."""

    @jax.jit
    def step(p, state):
        g = jax.tree.map(lambda x: jnp.cos(3 * x) + 0.5 * x, p)
        u, state = tx.update(g, state, p)
        return u, state, m.apply_updates(p, jax.tree.map(lambda x: x / 10, u))

    p = _params(dtype)
    state, rows = tx.init(p), []
    for _ in range(steps):
        u, state, p = step(p, state)
        rows.append((u, state, p))
    return rows


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_same_as_optax(name, dtype):
    """Twenty steps: the same updates, the same state in the same places."""
    make = CASES[name]
    with jax.enable_x64(dtype == "float64"):
        ours = run(steepest, make(steepest), dtype)
        with jax.numpy_dtype_promotion("standard"):
            theirs = run(optax, make(optax), dtype)
    assert _skeleton(ours[0]) == _skeleton(theirs[0])
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert a.dtype == b.dtype
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        if name in IN_FLOAT32:
            tolerance = max(tolerance, 1e-6)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 10)


def _skeleton(tree):
    """The structure of a tree and the names of its classes, wherever they come from."""
    return str(jax.tree.structure(tree))
