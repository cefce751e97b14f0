from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import SingleDeviceSharding

import steepest

from ._layouts import EXPLICIT, mesh, on, params, specs


def test_memory_is_sharded_like_its_param():
    where = steepest.shardings(steepest.adamw(1e-3), params(mesh()))
    assert specs(where[0]) == ((), *2 * [{"w": ("x", "y"), "b": ("y",)}])


def test_a_mean_of_rows_is_sharded_like_the_rows():
    tx = steepest.adafactor(1e-3, min_dim_size_to_factor=4)
    where = steepest.shardings(tx, params(mesh()))
    assert specs(where[0].v_row["w"]) == ("x",)
    assert specs(where[0].v_col["w"]) == ("y",)


def test_a_stack_has_one_more_axis():
    where = steepest.shardings(steepest.lbfgs(memory_size=3), params(mesh()))
    assert specs(where[0].diff_params_memory["w"]) == (None, "x", "y")


def test_codes_and_scales_in_8_bits():
    p = {"w": jax.device_put(jnp.ones((64, 512)), on(mesh(), "x", "y"))}
    where = steepest.shardings(steepest.lion(1e-3, memory_dtype="int8"), p)
    assert specs(where[0].mu["w"]) == (("x", "y"), ("x", "y"))
    p = {"w": jax.device_put(jnp.ones((64, 512)), on(mesh(), "x"))}
    where = steepest.shardings(steepest.lion(1e-3, memory_dtype="int8"), p)
    assert specs(where[0].mu["w"]) == (("x",), ("x",))


def test_shapes_are_enough():
    tx, p = steepest.adamw(1e-3), params(mesh())
    struct = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)
    shapes = jax.tree.map(struct, p)
    assert steepest.shardings(tx, shapes) == steepest.shardings(tx, p)


def test_inside_jit_with_explicit_axes():
    p, found = params(mesh(EXPLICIT)), []

    @jax.jit
    def f(p):
        found.append(steepest.shardings(steepest.adamw(1e-3), p))
        return p

    f(p)
    assert specs(found[0][0].mu) == {"w": ("x", "y"), "b": ("y",)}


@pytest.mark.parametrize("kind", ["mesh", "context"])
def test_the_mesh_around_does_not_matter(kind):
    p = params(mesh())
    want = steepest.shardings(steepest.adamw(1e-3), p)
    with jax.set_mesh(mesh(EXPLICIT) if kind == "context" else mesh()):
        assert steepest.shardings(steepest.adamw(1e-3), p) == want


def test_on_one_device_so_is_the_state():
    device = jax.devices()[3]
    where = steepest.shardings(steepest.adam(0.1), jax.device_put(jnp.ones(3), device))
    assert set(jax.tree.leaves(where)) == {SingleDeviceSharding(device)}
    where = steepest.shardings(steepest.adam(0.1), np.ones(3))
    assert jax.tree.leaves(where)[0].device_set == {jax.devices()[0]}
    with jax.default_device(device):
        where = steepest.shardings(steepest.adam(0.1), np.ones(3))
    assert jax.tree.leaves(where)[0].device_set == {device}


def test_leaves_without_a_sharding_count_as_replicated():
    p = {**params(mesh()), "n": np.ones((8, 4), np.float32), "none": None}
    where = steepest.shardings(steepest.adam(0.1), p)
    assert specs(where[0].mu["n"]) == ()
    assert where[0].mu["none"] is None


def test_what_jax_cannot_infer_goes_by_path():
    """A concatenation of leaves is replicated, and what has a param's shape is not."""
    both = steepest.chain(steepest.flatten(steepest.adam(0.1)), steepest.trace(0.9))
    where = steepest.shardings(both, params(mesh()))
    assert specs(where[0][0].mu) == ()
    assert specs(where[1].trace) == {"w": ("x", "y"), "b": ("y",)}


def test_errors_of_init_are_raised():
    def init(p):
        raise KeyError("mine")

    tx = steepest.GradientTransformation(init, steepest.sgd(0.1).update)
    with pytest.raises(KeyError, match="mine"):
        steepest.shardings(tx, params(mesh()))


def test_host_memory_is_kept():
    where = on(mesh(), "x", memory_kind="pinned_host")
    p = jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=where)
    found = steepest.shardings(steepest.adam(0.1), p)[0]
    assert (found.mu.memory_kind, found.count.memory_kind) == ("pinned_host", "device")


def test_offload_on_one_device():
    found = steepest.shardings(steepest.offload(steepest.adam(0.1)), jnp.ones(3))[0]
    assert (found.mu.memory_kind, found.count.memory_kind) == ("pinned_host", "device")


def test_unknown_inside_jit(as_users_do):
    tx = steepest.adam(0.1)
    with pytest.raises(
        TypeError, match=r"^shardings: the sharding of params\['b'\] is"
    ):
        jax.jit(lambda p: steepest.shardings(tx, p))(params(mesh()))


def test_two_meshes_are_an_error():
    p = params(mesh())
    p["w"] = jax.device_put(p["w"], on(jax.make_mesh((8,), ("z",)), "z"))
    with pytest.raises(ValueError, match=r"params\['w'\] is on the mesh .* and params"):
        steepest.shardings(steepest.adam(0.1), p)


def test_other_shardings_are_an_error():
    """JAX has others, which are not public."""
    p = SimpleNamespace(sharding=SimpleNamespace(device_set=jax.devices()))
    with pytest.raises(
        TypeError, match="params has a SimpleNamespace, expected a Name"
    ):
        steepest.shardings(steepest.adam(0.1), p)
