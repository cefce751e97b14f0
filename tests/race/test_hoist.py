"""Data is placed on the devices once, wherever a problem stores it."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.race import _arrays, race
from steepest.race._arrays import digest, Shelf
from steepest.race._hoist import traced
from steepest.race._model import Model
from steepest.race._plan import RunPlan
from steepest.race._program import Program
from steepest.race._sweep import evaluations
from steepest.race.entrants import entrant

from .small import LINE

DATA = np.random.default_rng(0).normal(size=(30_000, 4)).astype(np.float32)  # 480 kB
ON_DEVICE = jnp.asarray(DATA)
ROWS = jax.jit(lambda start: jax.lax.dynamic_slice(DATA, (start, 0), (8, 4)))


def _batch_of(data):
    return lambda key, _: LINE.batches(key, jnp.asarray(data))


def _in_a_loop(params, batch):
    """A constant in a `jit`, in a branch, in a scan."""
    more = lambda x: jax.lax.cond(x > 0, lambda: x + ROWS(3).sum(), lambda: x)
    total = jax.lax.scan(lambda c, x: (more(c), None), jnp.zeros(()), None, length=2)[0]
    return LINE.loss(params, batch) + 0 * total


KEPT = {
    "data": {"data": DATA},
    "data of JAX": {"data": ON_DEVICE},
    "in batches": {"batches": _batch_of(DATA)},
    "in batches, of JAX": {"batches": _batch_of(ON_DEVICE)},
    "in a jitted function": {"batches": jax.jit(_batch_of(DATA))},
    "in a jitted loss": {"loss": jax.jit(lambda p, b: LINE.loss(p, ROWS(0)))},
    "in a loop": {"loss": _in_a_loop},
    "in the metric": {"metric": lambda p, data: LINE.loss(p, jnp.asarray(DATA))},
}


@pytest.mark.parametrize("change", KEPT.values(), ids=KEPT)
def test_no_look_sends_the_data_again(change, monkeypatch):
    model = Model(replace(LINE, **change), entrant("sgd", steps=2))
    program = Program(model, RunPlan((0.1, 0.2), (0,), 2), at_once=2)
    assert any(x.shape == DATA.shape for x in program.traced.arrays)
    assert len(program.lowered.as_text()) < 200_000  # it is not embedded in the program
    given, compiled = [], program.compiled

    def listening(*arguments):
        given.append(arguments[-1])
        return compiled(*arguments)

    monkeypatch.setattr(program, "compiled", listening)
    *_, last = evaluations(program)
    assert np.isfinite(last.sweep.metric).all() and len(given) > 3
    for arrays in given:
        assert all(isinstance(x, jax.Array) for x in arrays)
        assert all(x.sharding.device_set == set(program.devices) for x in arrays)
        assert all(x is y for x, y in zip(arrays, given[0], strict=True))


def test_enclosed_or_not_makes_no_difference():
    how = {"learning_rates": [0.1], "seeds": 1, "steps": 3}
    ends = [
        race(replace(LINE, metric=None, **change), ["adam"], **how).sweeps[0].metric
        for change in (KEPT["data"], KEPT["in batches"], KEPT["in a jitted function"])
    ]
    np.testing.assert_array_equal(ends[0], ends[1])
    np.testing.assert_array_equal(ends[0], ends[2])


def test_optimizers_share_what_is_placed():
    shelf, mesh = Shelf(), jax.sharding.Mesh(np.array(jax.devices()[:2]), ("rates",))
    (first,) = shelf.place([DATA], mesh)
    (second,) = shelf.place([DATA.copy()], mesh)
    assert first is second


def test_a_traced_function_is_the_same_function():
    """Rebuilt loops and branches compute the same as before."""

    def f(w):
        body = lambda c, k: (c - 0.1 * jax.grad(g)(c, k), g(c, k))
        w, ys = jax.lax.scan(body, w, jnp.arange(3))
        again = lambda k, c: jax.lax.cond(k > 0, lambda: c, lambda: c * g(c, k))
        return jax.lax.fori_loop(0, jnp.asarray(2), again, w), ys

    g = jax.jit(lambda w, k: jnp.sum(jnp.tanh(ROWS(k) @ w)))
    w = jnp.ones(4)
    result = traced(f, w)
    assert [x.shape for x in result.consts] == [DATA.shape]
    again = jax.core.eval_jaxpr(result.jaxpr, result.consts, w)
    for x, y in zip(again, jax.tree.leaves(f(w)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_digests_tell_arrays_apart():
    some = [DATA, DATA[:-1], DATA.astype(np.float16), DATA.T, -DATA, 1.0, 1, True]
    some += [jax.random.key(0), jax.random.key(1), np.zeros((0, 3)), np.zeros((3, 0))]
    assert len({digest(x) for x in some}) == len(some)
    assert digest(DATA) == digest(ON_DEVICE) == digest(np.asfortranarray(DATA))


def test_the_shelf_looks_at_an_array_once(monkeypatch):
    """Equal arrays share a place, and the same array is not read again."""
    seen = []
    monkeypatch.setattr(_arrays, "digest", lambda x: seen.append(x) or digest(x))
    mesh, shelf = jax.make_mesh((1,), ("d",)), Shelf()
    first, again, equal = (shelf.place([x], mesh) for x in (DATA, DATA, DATA.copy()))
    assert first[0] is again[0] is equal[0] and len(seen) == 2
