"""What XLA sees: one trace, and the same numbers however the step is run."""

import re

import jax
import jax.numpy as jnp
import numpy as np

import steepest

from ..zoo import (
    DISTINCT,
    distinct,
    few_params,
    gradients,
    optimizers,
    over,
    params,
    Row,
    typeof,
    ZOO,
)

# Rows whose step copies an array as large as a param, and why that is unavoidable.
_TRIES = "the search tries other points and needs the old params until it ends"
_STACKS = "matrices are stacked"
_BEFORE = "the update reads state that the step overwrites, in an order XLA cannot see"
_KEEPS = "the state keeps the gradient, which is a copy"
COPIES = {
    "acprop": _BEFORE,
    "adamuon": _STACKS,
    "adafactor": "XLA turns 0.5 m + 0.5 x into 0.5 (m + x), computed at every use",
    "apollo": _STACKS,
    "apollo_mini": _STACKS,
    "dadapt_adamw": "a sum over all leaves reads state that the step overwrites",
    "dion2": _STACKS,
    "fira": _STACKS,
    "galore": _STACKS,
    "kron": _STACKS,
    "lbfgs": _TRIES,
    "_mars_adamw": _KEEPS,
    "mars": _KEEPS,
    "muon": _STACKS,
    "muon_h": _STACKS,
    "nag": _BEFORE,
    "normuon": _STACKS,
    "noisy_sgd": "random bits are made in place, from copied input",
    "optimistic_adam": _BEFORE,
    "optimistic_adam_v2": _BEFORE,
    "optimistic_gradient_descent": _BEFORE,
    "psgd": _STACKS,
    "rprop": _BEFORE,
    "scion": _STACKS,
    "shampoo": _STACKS,
    "soap": _STACKS,
    "soap_muon": _STACKS,
    "sophia": "the curvature is computed in its own branch",
    "splus": _STACKS,
}
assert set(COPIES) <= {row.maker.__name__ for row in ZOO}


def _close(a, b, rounding=1):
    r, tiny = 2e-6 * rounding, 1e-7 * rounding
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, r, tiny), a, b)


def _loop(tx, p, steps=3):
    state, updates = tx.init(p), []
    for t in range(steps):
        u, state = tx.update(gradients(p, t), state, p)
        updates.append(u)
    return updates, state


@distinct
def test_compiled_is_eager_and_traced_once(row: Row):
    tx, p, traces = row.make(), params(), 0

    @jax.jit
    def update(g, state, p):
        nonlocal traces
        traces += 1
        return tx.update(g, state, p)

    state, updates = tx.init(p), []
    for t in range(3):
        u, state = update(gradients(p, t), state, p)
        updates.append(u)
    assert traces == 1
    _close((updates, state), _loop(tx, p), row.rounding)


@over([row for row in DISTINCT if not row.optimizer])
def test_scan_is_a_loop(row: Row):
    """Optimizers are scanned on a problem where they go downhill."""
    tx, p = row.make(), few_params()
    gs = jax.tree.map(lambda *xs: jnp.stack(xs), *(gradients(p, t) for t in range(3)))

    def step(state, g):
        u, state = tx.update(g, state, p)
        return state, u

    state, us = jax.lax.scan(step, tx.init(p), gs)
    updates, want = _loop(tx, p)
    stacked = jax.tree.map(lambda *xs: jnp.stack(xs), *updates)
    _close((us, state), (stacked, want), row.rounding)


@distinct
def test_every_number_may_be_traced(row: Row):
    """A sweep with `vmap` over all hyperparameters equals a loop, and compiles once."""
    p, factors = few_params(), (1.0, 0.5)
    # `1 - 0.999` is computed in float32 if 0.999 is an array: 5 digits are left.
    r, tiny = 3e-5 * row.rounding, 1e-6 * row.rounding

    def run(factor):
        return _loop(row.make(**{k: factor * x for k, x in row.hyper.items()}), p, 2)

    swept = jax.jit(jax.vmap(run))(jnp.array(factors))
    for i, factor in enumerate(factors):
        one = jax.tree.map(lambda x, i=i: x[i], swept)
        # Outside `jit`, the other laws use the program for the factor 1 as well.
        jax.tree.map(
            lambda x, y: np.testing.assert_allclose(x, y, r, tiny), one, run(factor)
        )


@optimizers
def test_ensembles(row: Row):
    """`vmap` over params, gradients and states."""
    tx, p = row.make(), few_params()
    many = jax.tree.map(lambda x: jnp.stack([x, x + 1]), p)
    state = jax.vmap(tx.init)(many)
    u, new = jax.jit(jax.vmap(tx.update))(jax.vmap(gradients)(many), state, many)
    assert typeof(new) == typeof(state)
    first = jax.tree.map(lambda x: x[0], u)
    _close(first, tx.update(gradients(p), tx.init(p), p)[0], row.rounding)


@optimizers
def test_a_step_is_update_and_apply(row: Row, compiles):
    tx, p = row.make(), few_params()
    step, q, state = steepest.make_step(tx), few_params(), tx.init(p)
    first, second = gradients(p, 0), gradients(p, 1)
    q, state = step(q, state, first)
    with compiles(0):
        q, state = step(q, state, second)
    want, want_state = few_params(), tx.init(p)
    for t in range(2):
        u, want_state = tx.update(gradients(p, t), want_state, want)
        want = steepest.apply_updates(want, u)
    _close((q, state), (want, want_state), row.rounding)


@over([row for row in ZOO if row.maker.__name__ not in COPIES])
def test_a_step_writes_in_place(row: Row):
    """XLA adds no `copy` of an array as large as a param, and reuses every buffer.

    Nothing is executed, so the arrays can be as large as in practice.
    """
    tx, p = row.make(), {"w": jnp.zeros((768, 512)), "b": jnp.zeros((512,))}
    p, state = jax.eval_shape(lambda: (p, tx.init(p)))
    compiled = steepest.make_step(tx).lower(p, state, p).compile()
    assert not re.findall(r"= \w+\[(?:\d,)*768,512\]\S* copy\(", compiled.as_text())
    arrays = [x for x in jax.tree.leaves((p, state)) if x.ndim]
    reused = compiled.memory_analysis().alias_size_in_bytes
    assert reused >= sum(x.size * x.dtype.itemsize for x in arrays)


@over([row for row in DISTINCT if row.backwards])
def test_differentiating_through_it_is_finite(row: Row):
    """Also if a gradient is zero, which is common in meta-learning."""

    def moved(c):
        p = few_params()
        g = jax.tree.map(lambda x: c * x.at[()].set(0) if x.ndim else c * x, p)
        u, _ = row.make().update(g, row.make().init(p), p)
        return sum(jnp.sum(x) for x in jax.tree.leaves(u))

    assert np.isfinite(jax.jit(jax.grad(moved))(1.0))
