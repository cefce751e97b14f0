import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import steepest

MESH = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
REPLICATED, SHARDED = NamedSharding(MESH, P()), NamedSharding(MESH, P("data"))
TX = steepest.adamw(0.1)


def _params(where=REPLICATED):
    return jax.device_put({"w": jnp.ones((8, 4)), "b": jnp.ones(8)}, where)


def _spread(state):
    """The state sharded by hand, as in ZeRO."""
    return jax.tree.map(
        lambda x: jax.device_put(x, SHARDED if x.ndim else REPLICATED), state
    )


def _all_like(tree, where):
    return all(
        x.sharding.is_equivalent_to(where, x.ndim) for x in jax.tree.leaves(tree)
    )


@pytest.mark.parametrize("kind", ["make_step", "make_train_step"])
def test_params_stay_replicated_when_the_state_is_sharded(kind, compiles):
    p, g = _params(), _params()
    state = _spread(TX.init(p))
    if kind == "make_step":
        step, more = steepest.make_step(TX), (g,)
    else:
        loss = lambda p: jnp.sum(p["w"] ** 2) + jnp.sum(p["b"] ** 2)
        step, more = steepest.make_train_step(loss, TX), ()
    with compiles(1):
        for _ in range(3):
            p, state, *_ = step(p, state, *more)
    assert _all_like(p, REPLICATED)
    assert _all_like(state[0].mu, SHARDED)


def test_a_new_count_does_not_compile_again(compiles):
    """`tx.init` makes a count that JAX may move."""
    p, g, step = _params(SHARDED), _params(SHARDED), steepest.make_step(TX)
    state = TX.init(p)
    jax.device_put(state[0].count, REPLICATED)  # the program of the transfer
    with compiles(1):
        for _ in range(3):
            p, state = step(p, state, g)
    assert _all_like((p, state[0].mu), SHARDED)
    assert int(state[0].count) == 3


def test_memory_kinds_are_kept():
    host = NamedSharding(MESH, P(), memory_kind="pinned_host")
    count = jax.device_put(jnp.zeros((), jnp.int32), host)

    def update(g, state, p=None):
        here = jax.device_put(state, REPLICATED) + 1
        return g, here

    tx = steepest.GradientTransformation(lambda p: count, update)
    _, state = steepest.make_step(tx)(_params(), count, _params())
    assert state.sharding.memory_kind == "pinned_host"
    assert int(state) == 1


def test_one_program_for_each_placement():
    step = steepest.make_step(TX)
    for where in (REPLICATED, SHARDED, SHARDED, REPLICATED):
        p, _ = step(_params(where), steepest.init(TX, _params(where)), _params())
        assert _all_like(p, where)
    assert len(step._placed) == 2


def test_lower_sees_the_shardings():
    p, step = _params(), steepest.make_step(TX)
    text = step.lower(p, _spread(TX.init(p)), p).compile().as_text()
    assert "all-gather" in text
    struct = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)
    shapes = jax.tree.map(struct, (p, _spread(TX.init(p)), p))
    assert "all-gather" in step.lower(*shapes).compile().as_text()


def test_a_state_on_one_device_is_an_error():
    p, g = _params(), _params()
    state = jax.device_put(TX.init(p), jax.devices()[0])
    with pytest.raises(
        ValueError,
        match=r"^make_step: state\[0\].count is on one device and params\['b'\] on 8, "
        r".*steepest.place\(state, steepest.shardings\(tx, params\)\)",
    ):
        steepest.make_step(TX)(p, state, g)


def test_a_state_that_changes_is_an_error():
    p = _params()
    init = lambda p: {"a": jnp.zeros(())}
    tx = steepest.GradientTransformation(init, lambda g, s, p=None: (g, {"b": s["a"]}))
    with pytest.raises(
        ValueError, match=r"make_step: leaf \['a'\] is in the old state"
    ):
        steepest.make_step(tx)(p, tx.init(p), _params())
    grow = lambda g, s, p=None: (g, {"a": jnp.zeros(2)})
    tx = steepest.GradientTransformation(init, grow)
    with pytest.raises(ValueError, match=r"state\['a'\] has shape \(\) before"):
        steepest.make_step(tx)(p, tx.init(p), _params())


def test_inside_jit_nothing_is_kept():
    p, g = _params(), _params()
    step = steepest.make_step(TX)
    q, _ = jax.jit(lambda p, g: step(p, TX.init(p), g))(p, g)
    np.testing.assert_allclose(q["w"], 0.9, atol=1e-3)


PUT = {
    "nothing": lambda p, s, g: (p, s, g),
    "params": lambda p, s, g: (_put(p), s, g),
    "state": lambda p, s, g: (p, _put(s), g),
    "gradients": lambda p, s, g: (p, s, _put(g)),
    "part of the state": lambda p, s, g: (
        p,
        (s[0]._replace(mu=_put(s[0].mu)), *s[1:]),
        g,
    ),
    "NumPy params": lambda p, s, g: (jax.device_get(p), _put(s), g),
}


def _put(tree):
    return jax.device_put(tree, jax.devices()[0])


@pytest.mark.parametrize("what", PUT)
@pytest.mark.parametrize("make", [steepest.init, lambda tx, p: tx.init(p)])
def test_one_program_whatever_the_user_put_on_the_device(what, make, compiles):
    """Results of a step are committed if one argument is; the next step is the same."""
    tx, p = steepest.adamw(1e-2, keep_count=True), {"w": jnp.ones((8, 8))}
    p, state, g = PUT[what](p, make(tx, p), jax.tree.map(jnp.copy, p))
    step = steepest.make_step(tx)
    expected = tx.update(g, state, p)[0]["w"] + 1
    with compiles(1):
        p, state = step(p, state, g)
        np.testing.assert_array_equal(p["w"], expected)
        for _ in range(2):
            p, state = step(p, state, g)


@pytest.mark.parametrize("what", ["nothing", "params", "gradients"])
def test_one_program_for_state_in_host_memory(what, compiles):
    tx, p = steepest.offload(steepest.adamw(1e-2)), {"w": jnp.ones((8, 8))}
    p, state, g = PUT[what](p, steepest.init(tx, p), jax.tree.map(jnp.copy, p))
    step = steepest.make_step(tx)
    with compiles(1):
        for _ in range(3):
            p, state = step(p, state, g)


def test_one_program_to_train_on_batches_of_one_device(compiles):
    tx, p = steepest.adamw(1e-2), {"w": jnp.ones((8, 8))}
    state, step = tx.init(p), steepest.make_train_step(_loss, tx)
    batch = _put(jnp.ones((4, 8)))
    with compiles(1):
        for _ in range(3):
            p, state, _ = step(p, state, batch)


def _loss(p, x):
    return jnp.mean((x @ p["w"]) ** 2)


def test_arrays_without_a_device_go_where_the_others_are():
    tx, p = steepest.adamw(1e-2), {"w": jnp.ones((8, 8))}
    there = jax.devices()[1]
    g = jax.device_put({"w": jnp.ones((8, 8))}, there)
    p, state = steepest.make_step(tx)(p, tx.init(p), g)
    assert {x.device for x in jax.tree.leaves((p, state))} == {there}
