"""What the optimizers that build on Muon have in common."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ._reference import gradients, matrix, run, updates

# Numbers that are not needed to stay finite, and would hide an invariance.
BARE = {"eps": 0.0, "coefficients": "deepseek"}
MAKERS = {
    "muon": lambda **k: steepest.muon(0.1, weight_decay=0.0, **BARE, **k),
    "normuon": lambda **k: steepest.normuon(0.1, weight_decay=0.0, **BARE, **k),
    "adamuon": lambda **k: steepest.adamuon(0.1, weight_decay=0.0, **BARE, **k),
    "dion2": lambda **k: steepest.dion2(0.1, weight_decay=0.0, **BARE, **k),
    "scion": lambda **k: steepest.scion(1e-3, constrained=False, **BARE, **k),
}
plain = functools.cache(lambda name: MAKERS[name]())  # the tests share programs
SHAPES = [(4, 9), (9, 4), (6, 6)]
everyone = pytest.mark.parametrize("name", MAKERS)
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def _gs(shape, steps=3):
    return [matrix(t, *shape) for t in range(steps)]


def _close(found, wanted, tolerance=1e-4):
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, tolerance, tolerance * float(jnp.abs(y).max()))


def _orthogonal(seed, n):
    return jnp.linalg.qr(matrix(seed, n, n))[0]


@everyone
@shapes
@pytest.mark.parametrize("factor", [1e-20, 1e20])
def test_the_size_of_the_gradient_does_not_matter(name, shape, factor):
    tx, gs = plain(name), _gs(shape)
    _close(updates(tx, [factor * g for g in gs], gs[0]), updates(tx, gs))


@everyone
@shapes
def test_the_order_of_inputs_and_outputs_does_not_matter(name, shape):
    tx, gs = plain(name), _gs(shape)
    rows, columns = (
        np.random.default_rng(k).permutation(n) for k, n in enumerate(shape)
    )
    move = lambda x: x[rows][:, columns]
    _close(updates(tx, [move(g) for g in gs]), [move(u) for u in updates(tx, gs)])


# On which sides a rotation of the gradient rotates the update. AdaMuon takes signs and
# Dion2 takes L1 norms, which depend on the basis, unless it uses all rows.
ROTATES = {
    "muon": (MAKERS["muon"], ("in", "out")),
    "scion": (MAKERS["scion"], ("in", "out")),
    "normuon": (MAKERS["normuon"], ("in",)),
    "dion2": (lambda: MAKERS["dion2"](fraction=1.0), ("in", "out")),
}


@pytest.mark.parametrize("name", ROTATES)
@shapes
def test_rotations_go_through(name, shape):
    maker, sides = ROTATES[name]
    tx, gs = maker(), _gs(shape)
    q, r = _orthogonal(7, shape[0]), _orthogonal(8, shape[1])
    if "in" in sides:
        found = updates(tx, [q @ g for g in gs])
        _close(found, [q @ u for u in updates(tx, gs)], 1e-3)
    if "out" in sides:
        found = updates(tx, [g @ r for g in gs])
        _close(found, [u @ r for u in updates(tx, gs)], 1e-3)


def _fifty_steps(tx, p):
    """The updates and the states after each step with the same gradient."""

    def step(state, g):
        u, state = tx.update(g, state, p)
        return state, (u, state)

    repeat = lambda g: jnp.broadcast_to(g, (50, *g.shape))
    return jax.jit(lambda g: jax.lax.scan(step, tx.init(p), repeat(g))[1])


@everyone
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_difficult_gradients_leave_everything_finite(name, dtype):
    """In each of 50 steps, with the usual numbers and with `eps=0`."""
    one = jnp.outer(jnp.arange(4.0), jnp.ones(9))
    sizes = (6e-8, 3e4) if dtype == "float16" else (1e-30, 1e30)
    kinds = [
        0 * one,
        one,
        *(c * one for c in sizes),
        *(c * matrix(0, 4, 9) for c in sizes),
    ]
    p = matrix(1, 4, 9).astype(dtype)
    usual = getattr(steepest, name)(0.1)
    for tx in (usual, plain(name)):
        run_50 = _fifty_steps(tx, p)
        for g in kinds:
            g = (
                jnp.clip(g, -6e4, 6e4).astype(dtype)
                if dtype == "float16"
                else g.astype(dtype)
            )
            us, states = run_50(g)
            for x in jax.tree.leaves((us, states)):
                assert np.isfinite(np.asarray(x, "float32")).all()
            if not jnp.any(g) and tx is not usual:
                assert not jnp.any(us)


@everyone
@shapes
def test_a_stack_is_its_matrices(name, shape):
    x = matrix(0, 3, *shape)
    apart = {f"w{k}": w for k, w in enumerate(x)}
    together = {"layers": x}
    tx = MAKERS[name](stacked="layers")
    found, _ = run(tx, together, gradients(together, 3))
    wanted, _ = run(tx, apart, gradients(apart, 3))
    _close(list(found["layers"]), list(wanted.values()), 1e-5)


@everyone
def test_compiled_is_eager(name):
    p = {"tall": matrix(0, 9, 4), "wide": matrix(1, 4, 9), "b": matrix(2, 9)}
    tx, gs = plain(name), gradients(p, 2)
    found, _ = run(tx, p, gs)
    wanted, _ = run(tx, p, gs, compiled=False)
    _close(jax.tree.leaves(found), jax.tree.leaves(wanted), 1e-5)


@everyone
def test_words_say_what_the_axes_are(name):
    """Folded, a tensor is the matrix that it represents."""
    g = matrix(1, 2, 3, 2, 5)
    p = {"conv": g, "torch": g, "heads": g}
    words = ["in in in out", "out in in in", "in out out"]
    tx = MAKERS[name](routes=dict(zip(p, words, strict=True)))
    found, _ = run(tx, p, gradients(p, 3))
    flat = {
        "conv": [g.reshape(12, 5)],
        "torch": [g.reshape(2, 30).T],
        "heads": [x.reshape(3, 10) for x in g],
    }
    wanted, _ = run(plain(name), flat, gradients(flat, 3))
    torch = wanted["torch"][0].T
    _close([found["conv"]], [wanted["conv"][0].reshape(g.shape)])
    _close([found["torch"]], [torch.reshape(g.shape)])
    _close([found["heads"]], [jnp.stack(wanted["heads"]).reshape(g.shape)])


# Bytes of state for a matrix of `inputs` x `outputs` in float32.
BYTES = {
    "muon": lambda inputs, outputs: 4 * inputs * outputs,
    "normuon": lambda inputs, outputs: 4 * inputs * outputs + 4 * outputs,
    "adamuon": lambda inputs, outputs: 8 * inputs * outputs,
    "dion2": lambda inputs, outputs: 4 * inputs * outputs,
    "scion": lambda inputs, outputs: 4 * inputs * outputs,
}


@everyone
@shapes
def test_the_state_has_this_many_bytes(name, shape):
    p = {"kernel": matrix(0, *shape), "layers": {"kernel": matrix(0, 3, *shape)}}
    p = jax.tree.map(lambda x: x.astype("float32"), p)
    tx = MAKERS[name](stacked="layers")
    arrays = [x for x in jax.tree.leaves(tx.init(p)) if x.ndim]
    found = sum(x.size * x.dtype.itemsize for x in arrays)
    assert found == 4 * BYTES[name](*shape)
    by_leaf = {line.path: line.bytes for line in steepest.describe(tx, p).lines}
    assert by_leaf["['kernel']"] == BYTES[name](*shape)


@everyone
def test_a_matrix_without_elements_passes(name):
    word = "spectral" if name == "scion" else name
    tx = MAKERS[name](routes={"w": word})
    p = {"w": jnp.zeros((0, 3)), "stack": {"w": jnp.zeros((2, 3, 0))}}
    u, _ = tx.update(p, tx.init(p), p)
    assert jax.tree.map(jnp.shape, u) == jax.tree.map(jnp.shape, p)
