"""One step for several gradients."""

import functools
import re
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, PartitionSpec

import steepest

from ..unusual import ODD

P = {"w": jnp.array([1.0, 2.0]), "n": None}


def _times(c):
    return {"w": c * P["w"], "n": None}


def _run(ms, gradients):
    state, rows = ms.init(P), []
    for g in gradients:
        u, state = ms.update(g, state, P)
        rows.append(u["w"].tolist())
    return rows, state


def test_the_mean_of_k_gradients_is_one_gradient():
    """Several small batches give the same step as one large batch."""
    rows, state = _run(
        steepest.MultiSteps(steepest.adam(0.1), 3), [_times(c) for c in (1.0, 2.0, 6.0)]
    )
    adam = steepest.adam(0.1)
    want, inner = adam.update(_times(3.0), adam.init(P), P)
    assert rows[:2] == [[0, 0], [0, 0]]
    np.testing.assert_allclose(rows[2], want["w"], 1e-6)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, 1e-6),
        inner,
        state.inner_opt_state,
    )
    assert int(state.gradient_step) == 1 and int(state.mini_step) == 0


def test_has_updated_says_when():
    ms = steepest.MultiSteps(steepest.sgd(1.0), 2)
    state, seen = ms.init(P), []
    seen.append(bool(ms.has_updated(state)))
    for _ in range(4):
        _, state = ms.update(P, state, P)
        seen.append(bool(ms.has_updated(state)))
    assert seen == [False, False, True, False, True]


def test_k_may_change_with_the_steps():
    ms = steepest.MultiSteps(steepest.sgd(1.0), lambda step: step + 1)
    rows, _ = _run(ms, [P] * 6)
    moved = [row != [0, 0] for row in rows]
    assert moved == [True, False, True, False, False, True]


def test_skipped_gradients_do_not_count():
    ms = steepest.MultiSteps(
        steepest.sgd(1.0), 2, should_skip_update_fn=steepest.skip_not_finite
    )
    rows, state = _run(ms, [_times(1.0), _times(jnp.inf), _times(3.0)])
    assert rows == [[0, 0], [0, 0], [-2, -4]]
    assert not state.skip_state["should_skip"]
    assert int(state.skip_state["num_not_finite"]) == 0


def test_long_gradients_and_nan_are_skipped():
    skip = functools.partial(steepest.skip_large_updates, max_squared_norm=20.0)
    assert not skip(_times(1.0), None, None)[0]
    assert skip(_times(2.0), None, None)[0]
    bad, seen = skip(_times(jnp.nan), None, None)
    assert bad and np.isnan(seen["norm_squared"])
    half = jax.tree.map(lambda x: (300 * x).astype(jnp.float16), P)
    assert float(skip(half, None, None)[1]["norm_squared"]) == 450000.0


def test_half_precision_is_accumulated_in_float32():
    """A thousand gradients of 1/1000 add up to 1; in bfloat16 the sum stops growing."""
    g = {"w": jnp.full(2, 1e-3, jnp.bfloat16), "n": None}
    ms = steepest.MultiSteps(steepest.sgd(1.0), 1000, use_grad_mean=False)
    step = jax.jit(lambda state, _: (ms.update(g, state)[1], None))
    state, _ = jax.lax.scan(step, ms.init(g), length=999)
    u, _ = ms.update(g, state)
    assert state.acc_grads["w"].dtype == jnp.float32
    assert u["w"].dtype == jnp.bfloat16
    np.testing.assert_allclose(np.float32(u["w"]), -1, 1e-2)


def test_the_accumulator_may_be_as_narrow_as_the_params():
    g = jax.tree.map(lambda x: x.astype(jnp.bfloat16), P)
    ms = steepest.MultiSteps(steepest.sgd(1.0), 2, accumulator_dtype=None)
    _, state = ms.update(g, ms.init(g), g)
    assert state.acc_grads["w"].dtype == jnp.bfloat16


def test_complex_numbers_keep_their_imaginary_part():
    g = jnp.array([1 + 2j])
    ms = steepest.MultiSteps(steepest.sgd(1.0), 2)
    _, state = ms.update(g, ms.init(g), g)
    u, _ = ms.update(g, state, g)
    np.testing.assert_allclose(u, -g, 1e-6)


def test_it_is_a_transformation_as_it_stands():
    ms = steepest.MultiSteps(steepest.sgd(1.0), 1)
    tx = steepest.chain(ms, steepest.scale(2.0))
    u, _ = tx.update(P, tx.init(P), P, value=1.0)
    assert u["w"].tolist() == [-2, -4]
    assert isinstance(
        ms.gradient_transformation(), steepest.GradientTransformationExtraArgs
    )
    assert isinstance(ms.inner_opt, steepest.GradientTransformationExtraArgs)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_mean_of_half_precision_is_exact(dtype):
    """Also where it is zero: 1 + 0 + 0 - 1 gives exactly 0."""
    gs = jax.random.normal(jax.random.key(0), (4, 500)).astype(dtype)
    gs = gs.at[:, 0].set(jnp.array([1, 0.1, -0.1, -1], dtype))
    ms = steepest.MultiSteps(steepest.scale(1.0), 4)
    state, us = jax.lax.scan(
        lambda state, g: tuple(reversed(ms.update(g, state))), ms.init(gs[0]), gs
    )
    want = np.asarray(gs, np.float64).mean(0).astype(gs.dtype)
    np.testing.assert_array_equal(us[-1], want)
    assert us[-1][0] == 0 and not np.any(us[:-1])
    assert state.acc_grads.dtype == jnp.float32


def test_a_new_accumulation_ignores_the_last_one():
    ms = steepest.MultiSteps(steepest.sgd(1.0), 2)
    rows, _ = _run(ms, [P, _times(jnp.nan), P, P])
    assert np.isnan(rows[1]).all() and rows[3] == [-1, -2]
    ms = steepest.MultiSteps(steepest.sgd(1.0), 2, use_grad_mean=False)
    rows, state = _run(ms, [P] * 4)
    assert rows[1] == rows[3] == [-2, -4] and not np.any(state.acc_grads["w"])


def test_schedules_count_steps_not_gradients():
    ms = steepest.MultiSteps(steepest.sgd(lambda count: count + 1), 2)
    rows, state = _run(ms, [P] * 6)
    assert rows[1::2] == [[-1, -2], [-2, -4], [-3, -6]]
    assert int(state.inner_opt_state[-1].count) == 3


def test_groups_and_masks_inside():
    """Nothing moves between the steps, not even leaves outside a mask."""
    p = {"w": jnp.ones(2), "b": jnp.ones(2), "f": jnp.ones(2)}
    groups = {
        "a": steepest.sgd(1.0),
        "b": steepest.masked(steepest.scale(5.0), {"w": False, "b": True, "f": False}),
        "c": steepest.set_to_zero(),
    }
    ms = steepest.MultiSteps(
        steepest.partition(groups, {"w": "a", "b": "b", "f": "c"}), 2
    )
    first, state = ms.update(p, ms.init(p), p)
    assert not any(np.any(x) for x in jax.tree.leaves(first))
    second, state = ms.update(jax.tree.map(lambda x: 3 * x, p), state, p)
    assert [float(second[k][0]) for k in "wbf"] == [-2, 10, 0]


@jax.tree_util.register_dataclass
@dataclass
class Module:
    """As in Equinox: one field that is not a leaf, and one that is `None`."""

    weight: jax.Array
    bias: jax.Array | None
    activation: str = field(default="relu", metadata=dict(static=True))


def test_expensive_formulas_run_in_a_branch():
    """Muon computes polar factors only for the mean, with the same results."""
    p = Module(jnp.array([[1.0, 2.0], [3.0, 5.0]]), None)
    g = lambda c: Module(c * p.weight, None)
    muon = steepest.contrib.muon(0.1)
    ms = steepest.MultiSteps(muon, 2)
    first, state = ms.update(g(1.0), ms.init(p), p)
    second, state = ms.update(g(3.0), state, p)
    want, inner = muon.update(g(2.0), muon.init(p), p)
    assert not np.any(first.weight) and second.bias is None
    close = lambda a, b: np.testing.assert_allclose(a, b, 1e-5)
    jax.tree.map(close, (second, state.inner_opt_state), (want, inner))
    assert "cond" in str(jax.make_jaxpr(ms.update)(g(1.0), state, p))


@pytest.mark.parametrize("where", ["replicated", "sharded"])
def test_under_shard_map(where):
    """With replicated gradients, and with sharded ones."""
    mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
    mine, everything = PartitionSpec("d"), PartitionSpec()
    ms, p = steepest.MultiSteps(steepest.adam(0.1), 2), jnp.ones(8)
    state = ms.init(p)
    spec = mine if where == "sharded" else everything
    specs = jax.tree.map(lambda x: spec if x.ndim else everything, state)

    def two(gs, state):
        for g in gs:
            if where == "replicated":
                g = jax.lax.pmean(jnp.zeros(8) + g, "d")
            u, state = ms.update(g, state)
        return u, state

    shards = (mine, mine), specs
    run = jax.shard_map(two, mesh=mesh, in_specs=shards, out_specs=(spec, specs))
    gs = jnp.arange(8.0), 3 * jnp.arange(8.0)
    u, state = jax.jit(run)(gs, state)
    if where == "replicated":
        gs = [jnp.full(8, jnp.mean(g)) for g in gs]
    adam = steepest.adam(0.1)
    want, inner = adam.update((gs[0] + gs[1]) / 2, adam.init(p))
    close = lambda a, b: np.testing.assert_allclose(a, b, 1e-5)
    jax.tree.map(close, (u, state.inner_opt_state), (want, inner))


def test_the_accumulator_is_all_the_extra_memory():
    """No array is copied, and no other array is allocated."""
    leaf = jnp.ones((256, 256))
    p = [leaf, leaf + 1, leaf + 2]
    tx = steepest.chain(steepest.clip_by_global_norm(1.0), steepest.adamw(0.1))
    ms = steepest.MultiSteps(tx, 4)
    compiled = steepest.make_step(ms).lower(p, ms.init(p), p).compile()
    assert not re.findall(r"= \w+\[256,256\]\S* copy\(", compiled.as_text())
    assert compiled.memory_analysis().temp_size_in_bytes < leaf.nbytes
    size = lambda tree: sum(x.nbytes for x in jax.tree.leaves(tree) if x.ndim)
    assert size(ms.init(p)) == size(tx.init(p)) + 3 * leaf.nbytes


def test_the_period_may_follow_any_schedule_of_steepest():
    """In Optax a schedule of floats is an error."""
    schedule = steepest.piecewise_constant_schedule(2, {1: 1.5})
    ms = steepest.MultiSteps(steepest.sgd(1.0), schedule)
    p = jnp.array([0.0])
    state, found = ms.init(p), []
    for _ in range(8):
        u, state = ms.update(jnp.array([1.0]), state, p)
        found.append(float(u[0]))
    assert found == [0, -1, 0, 0, -1, 0, 0, -1]


REFUSED = {
    "every_k_schedule is 0, expected a number that is whole": dict(every_k_schedule=0),
    "every_k_schedule is 2.5, expected a number that": dict(every_k_schedule=2.5),
    "every_k_schedule is a NoneType, expected": dict(every_k_schedule=None),
    "use_grad_mean is None, expected True or False": dict(use_grad_mean=None),
    "should_skip_update_fn is a int, expected a": dict(should_skip_update_fn=3),
    "accumulator_dtype is 'what', expected a dtype": dict(accumulator_dtype="what"),
}


@pytest.mark.parametrize("says", REFUSED)
def test_impossible_arguments_are_refused(says, as_users_do):
    with pytest.raises((TypeError, ValueError), match=f"MultiSteps: {says}"):
        steepest.MultiSteps(
            steepest.sgd(1.0), **{"every_k_schedule": 2, **REFUSED[says]}
        )


def test_wrong_calls_are_errors(as_users_do):
    ms = steepest.MultiSteps(steepest.sgd(1.0), 2)
    with pytest.raises(TypeError, match=r"leaf \['f'\] of the params is a function"):
        ms.init({"f": lambda x: x, "w": P["w"]})
    with pytest.raises(TypeError, match="MultiSteps: the state is a tuple"):
        ms.update(P, (), P)
    with pytest.raises(ODD, match=r"MultiSteps: leaf \['w'\] has shape \(3,\)"):
        ms.update({"w": jnp.ones(3), "n": None}, ms.init(P), P)
    each = lambda u, step, p: (u["w"] > 0, ())
    ms = steepest.MultiSteps(steepest.sgd(1.0), 2, should_skip_update_fn=each)
    with pytest.raises(ODD, match=r"one boolean .* got an array of shape \(2,\)"):
        ms.update(P, ms.init(P), P)
    with pytest.raises(ODD, match="max_squared_norm is -1"):
        steepest.skip_large_updates(P, 0, None, max_squared_norm=-1)


@jax.numpy_dtype_promotion("standard")
def test_the_inner_update_may_change_the_structure():
    """A result whose structure differs from that of the updates."""
    of = lambda library: library.MultiSteps(
        library.measure_with_ema(library.tree.norm, 0.9), 2
    ).gradient_transformation()
    found = []
    for tx in (of(steepest), of(optax)):
        state = tx.init(P)
        for _ in range(4):
            u, state = tx.update(P, state, P)
        found.append(u)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-6), *found)
