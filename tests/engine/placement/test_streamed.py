"""Steps with their state in host memory, and a part of it on the device at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Literal
from jax.extend.core.primitives import device_put_p

import steepest
from steepest.engine.placement import _streamed

LEAVES, SIDE = 6, 64
BYTES = 4 * SIDE * SIDE


def _params():
    keys = jax.random.split(jax.random.key(0), LEAVES)
    return {f"w{k}": jax.random.normal(key, (SIDE, SIDE)) for k, key in enumerate(keys)}


def _equations(tx, params):
    """The equations of an update, and how each variable is made."""
    closed = jax.make_jaxpr(tx.update)(params, tx.init(params), params)
    made = {v: eqn for eqn in closed.jaxpr.eqns for v in eqn.outvars}
    return closed.jaxpr.eqns, made


def _space(eqn):
    return str(eqn.params["devices"][0]).rsplit(".", 1)[-1].lower()


def _behind(v, made):
    """The equations that a variable depends on."""
    todo, seen = [v], set()
    while todo:
        eqn = made.get(todo.pop())
        if eqn is not None and id(eqn) not in seen:
            seen.add(id(eqn))
            todo += [x for x in eqn.invars if not isinstance(x, Literal)]
    return seen


def _used(eqns):
    """The copies to the device that something uses."""
    reads = {v for eqn in eqns for v in eqn.invars if not isinstance(v, Literal)}
    copies = [eqn for eqn in eqns if eqn.primitive is device_put_p]
    return [x for x in copies if _space(x) == "device" and x.outvars[0] in reads]


@pytest.mark.parametrize("leaves_at_once", [1, 2])
def test_a_copy_waits_for_the_results_of_earlier_leaves(monkeypatch, leaves_at_once):
    monkeypatch.setattr(_streamed, "WINDOW", 2 * BYTES * leaves_at_once)
    adamw = steepest.chain(steepest.clip_by_global_norm(1.0), steepest.adamw(1e-3))
    eqns, made = _equations(steepest.offload(adamw), _params())
    arrivals = _used(eqns)
    assert len(arrivals) == 2 * LEAVES
    left = lambda x: [
        eqn
        for eqn in eqns
        if eqn.primitive is device_put_p
        and _space(eqn) == "host"
        and id(eqn) in _behind(x.invars[0], made)
    ]
    for k, copy in enumerate(arrivals):
        assert len(left(copy)) >= k + 1 - 2 * leaves_at_once


def test_without_pressure_nothing_waits():
    eqns, _ = _equations(steepest.offload(steepest.trace(0.9)), _params())
    assert not any(eqn.primitive.name == "optimization_barrier" for eqn in eqns)


CASES = {
    "adamw": lambda: steepest.adamw(1e-2),
    "clipped": lambda: steepest.chain(
        steepest.clip_by_global_norm(1.0), steepest.adamw(1e-2)
    ),
    "int8": lambda: steepest.adamw(1e-2, memory_dtype="int8"),
    "muon": lambda: steepest.muon(1e-2),
    "soap": lambda: steepest.soap(1e-2),
    "guard": lambda: steepest.guard(steepest.adamw(1e-2)),
    "MultiSteps": lambda: steepest.MultiSteps(
        steepest.adamw(1e-2), 2
    ).gradient_transformation(),
    "two moments of one rule": lambda: steepest.chain(
        steepest.trace(0.9), steepest.scale_by_adam(), steepest.scale(-1e-2)
    ),
}


@pytest.mark.parametrize("run", ["jit", "make_step", "scan"])
@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_one_array_at_a_time(monkeypatch, name, run):
    monkeypatch.setattr(_streamed, "WINDOW", 0)
    results = []
    for tx in (CASES[name](), steepest.offload(CASES[name]())):
        params = _params()
        state = steepest.init(tx, params)
        if run == "make_step":
            step = steepest.make_step(tx)
            for _ in range(3):
                params, state = step(params, state, _params())
        else:

            def once(carry, _, tx=tx):
                params, state = carry
                updates, state = tx.update(_params(), state, params)
                return (steepest.apply_updates(params, updates), state), None

            if run == "scan":
                many = lambda carry, once=once: jax.lax.scan(once, carry, length=3)[0]
                params, state = jax.jit(many)((params, state))
            else:
                for _ in range(3):
                    (params, state), _ = jax.jit(once)((params, state), None)
        results.append((params, state))
    plain, moved = map(jax.tree.leaves, results)
    for a, b in zip(plain, moved, strict=True):
        np.testing.assert_array_equal(a, b)
    kinds = {x.sharding.memory_kind for x in moved[LEAVES:] if x.ndim}
    assert kinds == {"pinned_host"}


def test_an_array_that_no_step_uses_is_not_copied():
    held = steepest.GradientTransformation(
        lambda params: {"held": jnp.ones((8, 8)), "mu": params},
        lambda g, state, params=None: (g, {**state, "mu": g}),
    )
    params = jnp.ones((8, 8))
    eqns, _ = _equations(steepest.offload(held), params)
    assert not _used(eqns)
    state = jax.jit(steepest.offload(held).update)(
        params, steepest.offload(held).init(params)
    )[1]
    assert {x.sharding.memory_kind for x in state.values()} == {"pinned_host"}


def test_derivatives_and_batches():
    tx = steepest.offload(steepest.adam(1e-2))
    params = jnp.arange(1.0, 5.0)
    state = tx.init(params)

    def end(rate):
        updates, _ = tx.update(params * rate, state, params)
        return jnp.sum(updates)

    plain = steepest.adam(1e-2)

    def expected(rate):
        updates, _ = plain.update(params * rate, plain.init(params), params)
        return jnp.sum(updates)

    for f in (jax.jit, lambda f: jax.jit(jax.grad(f))):
        np.testing.assert_array_equal(f(end)(2.0), f(expected)(2.0))
    rates = jnp.arange(1.0, 4.0)
    np.testing.assert_array_equal(
        jax.jit(jax.vmap(end))(rates), jax.jit(jax.vmap(expected))(rates)
    )
