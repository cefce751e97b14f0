"""Skipping bad steps."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

import steepest

P = {"w": jnp.array([3.0, 4.0]), "n": None}  # of norm 5
NAN = {"w": jnp.array([jnp.nan, 1.0]), "n": None}
TX = steepest.guard(steepest.sgd(1.0, 0.5), window=4, max_consecutive=2)


def _times(c):
    return {"w": jnp.float32(c) * P["w"], "n": None}


def _run(gradients, tx=TX, state=None, **extra):
    """Which steps were taken, and the last state."""
    state, taken = tx.init(P) if state is None else state, []
    for g in gradients:
        u, state = tx.update(g, state, P, **extra)
        taken.append(bool(np.any(u["w"])))
    return taken, state


def _same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


@pytest.mark.parametrize("bad", [NAN, _times(jnp.inf)], ids=["nan", "inf"])
def test_a_gradient_that_is_not_finite_changes_nothing(bad):
    taken, state = _run([P, bad, bad, bad, bad])
    assert taken == [True, False, False, False, False]
    _same(state.inner_state, _run([P])[1].inner_state)
    assert [int(x) for x in state[1:7]] == [4, 4, 0, 4, 0, 0]
    taken, state = _run([P], state=state)
    assert taken == [True] and int(state.skipped_in_a_row) == 0
    _same(state.inner_state, _run([P, P])[1].inner_state)


def test_a_large_gradient_is_skipped_once_there_is_a_history():
    assert _run([P, _times(50.0)])[0] == [True, True]
    taken, state = _run([P, _times(1.05), _times(50.0), P])
    assert taken == [True, True, False, True]
    assert int(state.high_norm) == 1 and int(state.not_finite) == 0
    np.testing.assert_allclose(state.norms.last, [0, 5, 5.25, 5], 1e-6)


def test_slightly_above_a_constant_is_not_an_outlier():
    assert _run([P] * 4 + [_times(1.09), _times(1.5)])[0] == [True] * 5 + [False]


def test_the_limit_is_in_standard_deviations():
    tx = steepest.guard(steepest.sgd(1.0), window=4, sigmas=2.0, margin=0.0)
    usual = [_times(c) for c in (1.0, 3.0, 1.0, 3.0)]  # mean 2, standard deviation 1
    assert _run([*usual, _times(3.9)], tx)[0][-1]
    assert not _run([*usual, _times(4.1)], tx)[0][-1]


def test_after_zeros_no_gradient_is_too_large():
    assert _run([_times(0.0)] * 4 + [P])[0] == [False] * 4 + [True]


def test_a_high_loss_is_skipped():
    state = _run([P] * 3, value=-2.0)[1]
    for value, good in [(-1.9, True), (7.0, False), (jnp.nan, False), (-50, True)]:
        taken, new = _run([P], state=state, value=value)
        assert taken == [good] and int(new.high_value) == (not good)
    assert _run([P], state=state)[0] == [True]  # without `value` nothing is skipped


def test_a_loss_that_is_never_finite_does_not_stop_everything():
    """It is not added to the history either."""
    taken, state = _run([P] * 6, value=jnp.nan)
    assert taken == [False, False, True] * 2
    assert int(state.values.seen) == 0 and int(state.norms.seen) == 2


def test_a_new_level_is_accepted_after_a_while():
    """It becomes the new normal; a NaN in between changes nothing."""
    high = _times(9.0)
    taken, state = _run([P, P, P, high, NAN, NAN, high, NAN, high, high, high])
    assert taken == [True] * 3 + [False] * 5 + [True] * 3
    assert int(state.norms.seen) == 3 and int(state.outliers_in_a_row) == 0
    assert int(state.high_norm) == 2 and int(state.not_finite) == 3
    assert _run([_times(90.0)], state=state)[0] == [False]


def test_a_finite_gradient_whose_square_overflows_is_just_an_outlier():
    taken, state = _run([P, P, P] + [_times(1e25)] * 4)
    assert taken == [True] * 3 + [False, False, True, True]
    assert int(state.not_finite) == 0 and np.isfinite(state.norms.last).all()


def test_norms_are_computed_in_float32():
    g = {"w": jnp.full(2, 300.0, jnp.float16), "n": None}
    state = _run([g])[1]
    np.testing.assert_allclose(state.norms.last[-1], 300 * 2**0.5, 1e-6)


def test_keys_integers_and_scalars_are_kept():
    """The state may contain arrays of any kind, and the same array twice."""

    def init(p):
        one = jnp.ones(2)
        return jax.random.split(jax.random.key(0), 3), jnp.arange(3), 2 * one, 3 * one

    def update(g, state, params=None, **extra):
        keys, integers, *_ = state
        new = jax.random.split(keys[0], 3)
        return g, (new, integers + 1, g["w"], g["w"])

    inner = steepest.GradientTransformationExtraArgs(init, update)
    tx = steepest.guard(inner, window=2)
    begin = tx.init(P)
    _, state = tx.update(NAN, begin, P)
    bare = steepest.tree.unwrap_random_key_data
    _same(bare(state.inner_state), bare(init(P)))
    _, state = tx.update(P, state, P)
    keys, integers, *both = state.inner_state
    assert keys.dtype == begin.inner_state[0].dtype
    assert integers.tolist() == [1, 2, 3]
    _same(both, [P["w"], P["w"]])


def test_in_a_scan_and_for_an_ensemble():
    gs = {"w": jnp.stack([P["w"], NAN["w"], 2 * P["w"]]), "n": None}
    step = lambda state, g: tuple(reversed(TX.update(g, state)))
    state, us = jax.lax.scan(step, TX.init(P), gs)
    _same(us["w"][1], [0.0, 0.0])
    assert int(state.skipped) == 1
    many = jax.vmap(lambda g: TX.update(g, TX.init(P)))(gs)[1]
    assert many.skipped.tolist() == [0, 1, 0]
    assert many.norms.seen.tolist() == [1, 0, 1]


@pytest.mark.parametrize("where", ["replicated", "sharded"])
def test_devices_agree(where):
    """If one device has a NaN, all of them skip, also with sharded arrays."""
    mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
    mine, all_of_it = PartitionSpec("d"), PartitionSpec()
    tx = steepest.guard(steepest.sgd(1.0, 0.5), window=2, axis_name="d")
    p = jnp.ones(8)
    state = tx.init(p)
    spec = mine if where == "sharded" else all_of_it
    specs = jax.tree.map(lambda x: spec if x.shape == p.shape else all_of_it, state)

    def step(g, state, value):
        if where == "replicated":
            g = jax.lax.psum(jnp.zeros(8) + g, "d")
        return tx.update(g, state, value=value[0])

    step = jax.shard_map(
        step, mesh=mesh, in_specs=(mine, specs, mine), out_specs=(spec, specs)
    )
    step, value = jax.jit(step), jnp.arange(8.0)
    _, state = step(jnp.ones(8), state, value)
    assert float(state.values.last[-1]) == 3.5
    u, new = step(jnp.ones(8).at[5].set(jnp.nan), state, value)
    assert not np.any(u) and int(new.not_finite) == 1
    u, new = step(jnp.ones(8).at[5].set(1e6), state, value)
    assert not np.any(u) and int(new.high_norm) == 1
    _same(new.inner_state, state.inner_state)


def test_accumulation_inside():
    """A bad gradient does not count as one of the `k`."""
    tx = steepest.guard(steepest.MultiSteps(steepest.sgd(1.0), 2), window=4)
    taken, state = _run([P, NAN, _times(3.0)], tx)
    assert taken == [False, False, True]
    np.testing.assert_allclose(state.inner_state.acc_grads["w"], 2 * P["w"], 1e-6)


def test_inside_accumulation():
    """A bad mean skips the step."""
    tx = steepest.MultiSteps(TX, 2)
    taken, state = _run([P, P, P, NAN, P, P], tx)
    assert taken == [False, True, False, False, False, True]
    _same(state.inner_opt_state.inner_state, _run([P, P])[1].inner_state)
    assert int(state.inner_opt_state.not_finite) == 1


def test_with_masks_around_and_inside():
    mask = {"w": True, "b": False}
    p = {"w": jnp.ones(2), "b": jnp.full(2, 7.0)}
    bad = {"w": jnp.ones(2), "b": jnp.full(2, jnp.nan)}
    inside = steepest.guard(steepest.masked(steepest.trace(0.5), mask), window=2)
    u, state = inside.update(bad, inside.init(p), p)
    assert not np.any(u["b"]) and int(state.skipped) == 1
    around = steepest.masked(steepest.guard(steepest.trace(0.5), window=2), mask)
    u, state = around.update(bad, around.init(p), p)
    assert u["w"].tolist() == [1, 1] and int(state.inner_state.skipped) == 0


MADE = {
    "adamw": lambda: steepest.adamw(0.1),
    "clipped lion": lambda: steepest.chain(
        steepest.clip_by_global_norm(1.0), steepest.lion(0.1)
    ),
    "accumulated adam": lambda: steepest.MultiSteps(steepest.adam(0.1), 2),
}


@pytest.mark.parametrize("name", MADE)
def test_nothing_is_copied(name):
    """Every array is updated in place, as without the guard."""
    leaf = jnp.ones((256, 256))
    p = [leaf, leaf + 1, leaf + 2]

    def compiled(tx):
        return steepest.make_step(tx).lower(p, tx.init(p), p).compile()

    without, found = compiled(MADE[name]()), compiled(steepest.guard(MADE[name]()))
    assert not re.findall(r"= \w+\[256,256\]\S* copy\(", found.as_text())
    memory = [x.memory_analysis().temp_size_in_bytes for x in (without, found)]
    assert memory[1] < memory[0] + leaf.nbytes / 4


def test_the_decision_is_made_once():
    """Deciding at every leaf, from all leaves, made 200 leaves compile for minutes."""

    p = [jnp.ones(2) for _ in range(20)]
    compiled = steepest.make_step(TX).lower(p, TX.init(p), p).compile()
    loops = compiled.as_text().split("\n\n")
    of_all_leaves = [loop for loop in loops if loop.count(" parameter(") >= len(p)]
    assert len(of_all_leaves) < len(p)


def test_the_gradient_of_a_skipped_step_is_zero():
    """A NaN in the discarded step does not reach the gradient either."""
    tx = steepest.guard(steepest.adam(0.1), window=2)
    for bad in (jnp.nan, 0.0):
        moved = lambda c, bad=bad: jnp.sum(
            tx.update(jnp.array([bad, c]), tx.init(jnp.ones(2)))[0]
        )
        assert np.isfinite(jax.grad(moved)(1.0))


def test_functions_may_be_passed_on():
    def update(updates, state, params=None, *, value_fn, **extra):
        return jax.tree.map(lambda u: u * value_fn(2.0), updates), state

    inner = steepest.GradientTransformationExtraArgs(steepest.init_empty_state, update)
    tx = steepest.guard(inner, window=2)
    u, _ = tx.update(P, tx.init(P), P, value_fn=lambda x: x**2)
    assert u["w"].tolist() == [12, 16]


REFUSED = {
    "window is 0, expected": dict(window=0),
    "window is a ArrayImpl, expected a Python int": dict(window=jnp.array(3)),
    "warmup is 0, expected": dict(warmup=0),
    "warmup is 9 and window is 4, expected a warmup of at most": dict(
        window=4, warmup=9
    ),
    "sigmas is 0, expected a number above 0": dict(sigmas=0),
    "sigmas is nan": dict(sigmas=float("nan")),
    "margin is -1": dict(margin=-1),
    "max_consecutive is -1": dict(max_consecutive=-1),
    "max_consecutive is a NoneType": dict(max_consecutive=None),
}


@pytest.mark.parametrize("says", REFUSED)
def test_impossible_numbers_are_refused(says, as_users_do):
    with pytest.raises((TypeError, ValueError), match=f"guard: {says}"):
        steepest.guard(steepest.sgd(0.1), **REFUSED[says])


def test_wrong_calls_are_errors(as_users_do):
    with pytest.raises(ValueError, match=r"guard: `value` has shape \(2,\)"):
        TX.update(P, TX.init(P), P, value=jnp.ones(2))
    with pytest.raises(TypeError, match="guard: the state is a tuple"):
        TX.update(P, (), P)
    grows = lambda g, s, p=None: (g, {"m": jnp.ones(3)})
    tx = steepest.GradientTransformation(lambda p: {"m": jnp.ones(2)}, grows)
    tx = steepest.guard(tx, window=2)
    with pytest.raises(ValueError, match=r"guard: leaf \['m'\] has shape \(3,\) in"):
        tx.update(P, tx.init(P), P)
