"""A description of what an optimizer will do to each leaf."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import steepest

P = {
    "embed": jax.ShapeDtypeStruct((1000, 8), jnp.bfloat16),
    "layers": [{"kernel": jax.ShapeDtypeStruct((8, 8), jnp.float32), "none": None}],
    "scale": jax.ShapeDtypeStruct((), jnp.float32),
}


def _routed():
    return steepest.route(
        {"embed": None, "kernel": steepest.adamw(0.1), ".*": steepest.sgd(0.1, 0.9)}
    )


def test_each_leaf_with_its_transformation():
    tx = steepest.chain(steepest.clip_by_global_norm(1.0), _routed())
    found = {line.path: line for line in steepest.describe(tx, P).lines}
    kernel = found["['layers'][0]['kernel']"]
    assert kernel.handled_by == (
        "clip_by_global_norm",
        "scale_by_adam",
        "add_decayed_weights",
        "scale_by_learning_rate",
    )
    assert (kernel.shape, kernel.memory, kernel.bytes) == ((8, 8), ("float32",), 512)
    assert found["['embed']"].handled_by == ("clip_by_global_norm", "freeze")
    assert found["['embed']"].bytes == 0
    assert found["['scale']"].bytes == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda: steepest.adamw(0.1),
        lambda: steepest.adafactor(0.1, momentum=0.9, min_dim_size_to_factor=4),
        lambda: steepest.sm3(0.1),
        lambda: steepest.contrib.muon(0.1),
        lambda: steepest.MultiSteps(steepest.adam(0.1), 2),
        lambda: steepest.guard(steepest.lion(0.1)),
        lambda: _routed(),
    ],
    ids=["adamw", "adafactor", "sm3", "muon", "MultiSteps", "guard", "route"],
)
def test_the_bytes_are_those_of_the_state(make):
    tx = make()
    found = steepest.describe(tx, P)
    state = jax.eval_shape(tx.init, P)
    assert found.state_bytes == sum(
        x.size * x.dtype.itemsize for x in jax.tree.leaves(state)
    )
    assert found.param_bytes == 16000 + 256 + 4


def test_groups_are_shown_with_reasons():
    """Both labels of a `partition` in a `route`, and the reasons in the labels."""

    def labels(params):
        return jax.tree.map(lambda x: "many" if x.ndim > 1 else "few", params)

    labels.reasons = lambda params: [f"{x.ndim} axes" for x in jax.tree.leaves(params)]
    inner = {"many": steepest.sgd(0.1), "few": steepest.sgd(0.2)}
    tx = steepest.route(
        {"embed": None, ".*": steepest.partition(inner, param_labels=labels)}
    )
    tx = steepest.guard(steepest.chain(steepest.clip(1.0), tx))
    lines = {line.path: line for line in steepest.describe(tx, P).lines}
    found = lines["['layers'][0]['kernel']"]
    assert (found.groups, found.why) == ((".*", "many"), "2 axes")
    assert (lines["['scale']"].groups, lines["['scale']"].why) == (
        (".*", "few"),
        "0 axes",
    )
    assert (lines["['embed']"].groups, lines["['embed']"].why) == (("embed",), "")
    assert ".* > many" in str(steepest.describe(tx, P))


def test_wrappers_show_what_they_wrap():
    tx = steepest.guard(steepest.apply_if_finite(steepest.sgd(0.1), 3))
    (line,) = steepest.describe(tx, jnp.ones(3)).lines
    (handled,) = line.handled_by
    assert handled.startswith("guard(apply_if_finite(")
    assert "scale_by_learning_rate" in handled


def test_it_prints_as_a_table():
    text = str(steepest.describe(steepest.adam(0.1), {"w": jnp.ones((512, 512))}))
    head, line, row, total, optimizer = text.split("\n")
    assert optimizer == repr(steepest.adam(0.1))
    assert head.split() == [
        "leaf",
        "shape",
        "dtype",
        "handled",
        "by",
        "memory",
        "bytes",
        "per",
        "step",
    ]
    assert set(line) == {"-"}
    assert row.split()[:3] == ["['w']", "512x512", "float32"]
    assert row.endswith("2.0 MiB  3.9 MFLOP")
    assert total.endswith("3.9 MFLOP per step")
    assert "1.0 MiB of params, 2.0 MiB of state (2.00 times the params)" in total


def test_the_count_does_not_belong_to_a_single_array():
    found = steepest.describe(steepest.adam(0.1), jnp.ones(3))
    assert (found.lines[0].bytes, found.shared_bytes) == (24, 4)


def test_unknown_work_is_said():
    tx = steepest.GradientTransformation(
        lambda params: (), lambda g, state, p=None: 1 / 0
    )
    found = steepest.describe(tx, jnp.ones(3))
    assert found.lines[0].flops is None and found.flops == 0
    assert "unknown" in str(found)


def test_work_is_shown_for_each_leaf():
    found = steepest.describe(_routed(), P)
    lines = {line.path: line.flops for line in found.lines}
    assert lines["['embed']"] == 0
    assert lines["['layers'][0]['kernel']"] > 64
    assert found.flops == sum(lines.values())


def test_the_sharding_of_memory_on_a_mesh():
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    where = NamedSharding(mesh, PartitionSpec("x", "y"))
    p = {"w": jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=where)}
    tx = steepest.adafactor(1e-3, min_dim_size_to_factor=4)
    line = steepest.describe(tx, p).lines[0]
    assert line.sharding == ("P('x',)", "P('y',)", "P(None,)")
    assert "P('x',)" in str(steepest.describe(tx, p))
    line = steepest.describe(tx, {"w": jnp.ones((8, 16))}).lines[0]
    assert line.sharding == ()
    p = {"w": jax.ShapeDtypeStruct((64, 512), jnp.float32, sharding=where)}
    line = steepest.describe(steepest.lion(1e-3, memory_dtype="int8"), p).lines[0]
    assert line.sharding == ("P('x', 'y')",)


def test_which_matrices_the_devices_share():
    """A single matrix of its shape is left to the compiler; vectors go to AdamW."""
    shape = lambda *sides: jax.ShapeDtypeStruct(sides, jnp.float32)
    params = {
        "up": shape(8, 32),
        "down": shape(32, 8),
        "one": shape(16, 8),
        "bias": shape(8),
        "stacked": shape(3, 16, 4),
    }
    alone = "by the compiler: no other matrix has its shape"
    both = "over data, model: one of 2"

    def found(make, **options):
        tx = make(0.1, **options)
        lines = steepest.describe(tx, params).lines
        return {line.path[2:-2]: line.reshard for line in lines}

    axes = {"reshard": ("data", "model"), "stacked": "stacked"}
    several = {"bias": "", "one": alone, "stacked": "over data, model: one of 3"}
    assert found(steepest.muon, **axes) == {"up": both, "down": both, **several}
    assert found(steepest.soap, **axes) == {"up": alone, "down": alone, **several}
    assert "of 52" in found(steepest.soap, **axes, block_size=4)["up"]
    assert not any(found(steepest.muon).values())


def test_memory_in_stacks_belongs_to_its_leaves():
    """With the sharding of the stack. Copies that fill a stack belong to all leaves."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    where = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    shape = lambda *s: jax.ShapeDtypeStruct(s, jnp.float32, sharding=where)
    params = {k: shape(8, 16) for k in "cde"} | {"one": shape(8, 8)}
    tx = steepest.soap(0.1, reshard="data")
    shared, plain = (steepest.describe(x, params) for x in (tx, steepest.soap(0.1)))
    for line, alone in zip(shared.lines, plain.lines, strict=True):
        assert line.bytes == alone.bytes
    copies = 5 * 8 * (8 * 16 + 8 * 8 + 16 * 16)  # 3 matrices on 8 devices
    assert shared.shared_bytes == plain.shared_bytes + copies
    assert shared.lines[0].sharding == ("P('data', None, None)",)
    assert shared.lines[0].reshard == "over data: one of 3"
    assert shared.lines[3].sharding == ("P('data', None)",)
