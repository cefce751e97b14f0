"""GaLore: gradients projected to a low rank."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import steepest
from steepest.contrib import galore, GaLoreDimensionNumbers, scale_by_galore

G = jax.random.normal(jax.random.key(0), (4, 3))


def _first(tx, g):
    return tx.update(g, tx.init(g))[0]


def test_full_rank_is_the_identity():
    """With full rank and no inner optimizer, it does nothing."""
    for g in (G, G.T, jax.random.normal(jax.random.key(0), (3, 3), "complex64")):
        u = _first(scale_by_galore(3, base_optimizer=steepest.identity()), g)
        np.testing.assert_allclose(u, g, atol=1e-5)


@pytest.mark.parametrize("turn", [False, True], ids=["tall", "wide"])
def test_low_rank_is_the_best_approximation(turn):
    """The nearest matrix of that rank, by Eckart and Young."""
    g = G.T if turn else G
    u = _first(scale_by_galore(1, scale=2.0, base_optimizer=steepest.identity()), g)
    left, values, right = np.linalg.svd(np.asarray(g), full_matrices=False)
    np.testing.assert_allclose(u, 2 * values[0] * left[:, :1] @ right[:1], atol=1e-5)


def test_the_basis_is_kept_between_updates():
    tx = scale_by_galore(1, update_proj_gap=3)
    state, bases = tx.init(G), []
    for t in range(4):
        _, state = tx.update(jnp.cos(G + t), state)
        bases.append(state.projector)
    np.testing.assert_array_equal(bases[0], bases[2])
    assert np.abs(bases[3] - bases[0]).max() > 1e-3


def test_memory_is_small():
    p = {"w": jnp.zeros((8, 6)), "b": jnp.zeros(5), "none": None}
    state = scale_by_galore(2).init(p)
    assert state.base_optimizer_state.mu["w"].shape == (2, 6)
    assert state.base_optimizer_state.mu["b"].shape == (5,)
    assert state.projector["w"].shape == (8, 2)
    assert state.projector["b"].shape == (1, 1)
    assert state.projector["none"] is None


def test_tensors_with_dimension_numbers():
    """A tensor and the matrix it folds to give the same result."""
    g = jax.random.normal(jax.random.key(0), (2, 2, 3))
    tx = scale_by_galore(2, weight_dimension_numbers=GaLoreDimensionNumbers((0, 1), 2))
    u = _first(tx, g)
    want = _first(scale_by_galore(2), g.reshape(4, 3))
    np.testing.assert_allclose(u.reshape(4, 3), want, rtol=1e-5, atol=1e-6)


def test_dimension_numbers_may_be_a_function():
    numbers = lambda p: {"w": GaLoreDimensionNumbers(1, 0), "v": None}
    state = scale_by_galore(1, weight_dimension_numbers=numbers).init({"w": G, "v": G})
    assert state.projector["w"].shape == (4, 1)
    assert state.projector["v"].shape == (1, 1)


def test_half_precision():
    """Stored in half precision, computed in float32."""
    g = G.astype("bfloat16")
    tx = scale_by_galore(2, base_optimizer=steepest.identity())
    u, state = tx.update(g, tx.init(g))
    assert u.dtype == state.projector.dtype == "bfloat16"
    want = _first(tx, g.astype("float32"))
    np.testing.assert_allclose(u.astype("float32"), want, atol=0.02)


def test_extra_arguments_reach_the_inner_optimizer():
    seen = []

    def update(g, state, p=None, **extra):
        seen.append((p, extra["value"]))
        return g, state

    spy = steepest.GradientTransformationExtraArgs(lambda p: (), update)
    tx = galore(0.1, 1, base_optimizer=spy)
    tx.update(G, tx.init(G), G, value=3.0)
    assert seen[0][0] is None and len(seen) == 1


@pytest.mark.parametrize(
    "options, kind, said",
    [
        ({"rank": 0}, ValueError, "rank is 0, expected a number that is whole and at"),
        ({"rank": 1.5}, ValueError, "rank is 1.5, expected a number that is whole"),
        ({"rank": "few"}, TypeError, "rank is a str, expected a number that is whole"),
        ({"update_proj_gap": 0}, ValueError, "update_proj_gap is 0"),
        ({"base_optimizer": 3}, TypeError, "base_optimizer is a int"),
    ],
    ids=["none", "float", "text", "gap", "base"],
)
def test_impossible_options(as_users_do, options, kind, said):
    with pytest.raises(kind, match=f"scale_by_galore: {said}"):
        scale_by_galore(**options)


def test_dimension_numbers_must_cover_every_axis(as_users_do):
    tx = scale_by_galore(1, weight_dimension_numbers=GaLoreDimensionNumbers(0, 2))
    with pytest.raises(ValueError, match="every axis in one of them"):
        tx.init(jnp.ones((2, 3, 4)))


def test_vectors_need_no_dimension_numbers():
    """A bias next to tensors is not projected and needs no dimension numbers."""
    numbers = steepest.contrib.GaLoreDimensionNumbers(0, (1, 2))
    p = {"w": jnp.ones((4, 2, 3)), "b": jnp.ones(4)}
    tx = steepest.contrib.galore(0.1, rank=2, weight_dimension_numbers=numbers)
    u, state = tx.update(p, tx.init(p), p)
    assert u["w"].shape == (4, 2, 3) and u["b"].shape == (4,)
    assert state[0].base_optimizer_state.mu["b"].shape == (4,)


@pytest.mark.parametrize(
    "change, said",
    [
        (
            {"w": jnp.ones((7, 3))},
            r"leaf \['w'\] has shape \(7, 3\) in the updates and",
        ),
        ({"v": jnp.ones(2)}, r"leaf \['v'\] is in the updates and not in the state's"),
    ],
    ids=["shape", "structure"],
)
def test_updates_of_other_params(as_users_do, change, said):
    tx, p = scale_by_galore(1), {"w": jnp.ones((4, 3))}
    with pytest.raises(ValueError, match=f"scale_by_galore: {said}"):
        tx.update({**p, **change}, tx.init(p))


def test_integer_gradients_are_projected_too():
    p = {"w": jnp.arange(12).reshape(4, 3)}
    tx = scale_by_galore(1)
    u, state = tx.update(p, tx.init(p))
    assert u["w"].dtype == state.projector["w"].dtype == jnp.float32


def test_bad_dimension_numbers(as_users_do):
    tx = scale_by_galore(1, weight_dimension_numbers={"w": (0, 1)})
    with pytest.raises(
        (TypeError, ValueError), match=r"scale_by_galore: .*dimension num"
    ):
        tx.init({"w": jnp.ones((4, 3))})


def test_nothing_is_differentiated_through_the_basis():
    """The gradient treats the basis as constant, and is always finite.

    Optax differentiates the singular vectors, which gives NaN if two singular values
    are equal.
    """
    A, B = jnp.array([[2.0, 1.0], [0.5, 1.0], [0.0, 3.0]]), jnp.eye(3, 2)

    def moved(library, c, A, B):
        tx = library.contrib.scale_by_galore(rank=1, base_optimizer=library.trace(0.9))
        u, _ = tx.update({"w": A + c * B}, tx.init({"w": A}), {"w": A})
        return jnp.sum(u["w"] * B)

    slope = lambda library, *args: float(jax.grad(moved, 1)(library, 1.0, *args))
    basis = jnp.linalg.svd(A + B, full_matrices=False)[0][:, :1]
    fixed = float(jnp.sum((basis @ (basis.T @ B)) * B))
    np.testing.assert_allclose(slope(steepest, A, B), fixed, rtol=1e-4)
    assert np.isfinite(slope(steepest, B, B))
    assert np.isnan(slope(optax, B, B))


@pytest.mark.parametrize("jit", [True, False])
def test_explicit_axes_without_set_mesh(jit):
    kind = AxisType.Explicit
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
    p = jax.device_put(jnp.ones((8, 6)), NamedSharding(mesh, PartitionSpec("x", "y")))
    p = {"w": p, "b": jax.device_put(jnp.ones(3), NamedSharding(mesh, PartitionSpec()))}
    tx = steepest.contrib.galore(0.1, rank=2)
    state = tx.init(p)
    u, new = (jax.jit(tx.update) if jit else tx.update)(p, state, p)
    assert jax.typeof(u["w"]) == jax.typeof(p["w"])
    assert jax.tree.map(jax.typeof, new[0].projector) == jax.tree.map(
        jax.typeof, state[0].projector
    )
