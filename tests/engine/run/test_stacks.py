"""Matrices of equal shape share a stack, and the results are the same."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from steepest.core import Every, gives, Matrix, Rule
from steepest.engine import lift
from steepest.engine.run import _joined
from steepest.numerics import zero_count

SHAPES = {"a": (3, 5), "b": (5, 3), "c": (3, 5), "stack": (2, 3, 5), "d": (4, 4)}
BOTH_WAYS = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])


def _grads(dtype=jnp.float32, seed=0, shapes=SHAPES):
    keys = jax.random.split(jax.random.key(seed), len(shapes))
    draws = zip(shapes.items(), keys, strict=True)
    return {
        name: jax.random.normal(key, shape).astype(dtype)
        for (name, shape), key in draws
    }


def _rule(seen, fold=None, **options):
    """A formula that commutes with transposition: `x x^T x`."""

    def matrix(g, *, c):
        seen.append(g.shape)
        return c * g @ g.T @ g

    per_step = gives("c")(lambda: {"c": jnp.float32(2)})
    formula = lambda g: g + 1
    return Rule(
        "cube", formula, per_step=per_step, matrix=Matrix(matrix, fold), **options
    )


def _cubes(grads):
    wide = jax.tree.map(lambda g: np.asarray(g, np.float64) + 1, grads)
    return jax.tree.map(lambda x: 2 * x @ np.swapaxes(x, -1, -2) @ x, wide)


@pytest.mark.parametrize("by_rows", [False, True])
@BOTH_WAYS
def test_stacks_change_no_number(compiled, by_rows, monkeypatch):
    """Also where rows are joined first: on one CPU device. The tests have eight."""
    monkeypatch.setattr(_joined, "joins_rows", lambda x: by_rows)
    seen, grads = [], _grads()
    tx = lift(_rule(seen))
    update = jax.jit(tx.update) if compiled else tx.update
    u, _ = update(grads, tx.init(grads))
    for name, cube in _cubes(grads).items():
        np.testing.assert_allclose(u[name], cube, rtol=1e-5, atol=1e-5)


def test_the_formula_is_traced_once_for_a_shape():
    seen, grads = [], _grads()
    tx = lift(_rule(seen))
    jax.jit(tx.update)(grads, tx.init(grads))
    assert sorted(set(seen)) == [(3, 5), (4, 4)]
    assert len(seen) == 2


def test_a_half_leaf_is_computed_wide_and_comes_back():
    grads = _grads(jnp.bfloat16)
    tx = lift(_rule([]))
    u, _ = tx.update(grads, tx.init(grads))
    assert {x.dtype for x in u.values()} == {jnp.dtype(jnp.bfloat16)}
    for name, cube in _cubes(grads).items():
        np.testing.assert_allclose(np.float32(u[name]), cube, rtol=2**-8, atol=0.1)


@BOTH_WAYS
def test_a_tensor_is_folded_and_unfolded(compiled):
    """Tensors that are folded to one shape share a stack."""
    fold = lambda shape, *, axes: (*shape[:-axes], *_flat(shape[-axes:]))
    shapes = {"conv": (3, 1, 5), "stacked": (2, 3, 1, 5), "tall": (5, 1, 3)}
    seen, grads = [], _grads(shapes=shapes)
    tx = lift(_rule(seen, fold=fold, numbers={"axes": 3}))
    update = jax.jit(tx.update) if compiled else tx.update
    u, _ = update(grads, tx.init(grads))
    flat = {k: g.reshape(*g.shape[:-3], *_flat(g.shape[-3:])) for k, g in grads.items()}
    for name, cube in _cubes(flat).items():
        assert u[name].shape == shapes[name]
        np.testing.assert_allclose(
            u[name].reshape(cube.shape), cube, rtol=1e-5, atol=1e-5
        )
    assert set(seen) == {(3, 5)}


def _flat(shape):
    *rows, columns = shape
    return int(np.prod(rows)), columns


class ShampooState(NamedTuple):
    """Shampoo's memory: sums of outer products, and inverses computed from them."""

    count: Any
    left: Any  # (m, m), the sum of g g^T
    right: Any  # (n, n), the sum of g^T g
    roots: Any  # the inverses of both


def _square(axis):
    """The initial sum: a square matrix for each matrix of a leaf."""

    def begin(p):
        return jnp.zeros((*p.shape[:-2], p.shape[axis], p.shape[axis]), jnp.float32)

    return begin


def _two_squares(p):
    return [_square(-2)(p), _square(-1)(p)]


def _shampoo(refreshed, seen=None, **options):
    """`u = (1 + L)^-1 g (1 + R)^-1`, with inverses computed every `k` steps."""

    def matrix(g, left, right, roots):
        if seen is not None:
            seen.append(g.shape)
        u = roots[0] @ g @ roots[1]
        return u, left + g @ g.T, right + g.T @ g, roots

    def refresh(g, left, right, roots, *, eps):
        jax.debug.callback(refreshed.append, jnp.sum(g))
        inverse = lambda x: jnp.linalg.inv(x + eps * jnp.eye(len(x)))
        return ([inverse(left + g @ g.T), inverse(right + g.T @ g)],)

    @gives("due")
    def numbers(count, *, k):
        return {"due": count % k == 0}, count + 1

    return Rule(
        "shampoo",
        lambda g: g,
        ShampooState,
        memory={"left": _square(-2), "right": _square(-1), "roots": _two_squares},
        shared={"count": zero_count},
        numbers={"k": 3, "eps": 1.0},
        per_step=numbers,
        matrix=Matrix(matrix, every=Every(refresh, ("roots",), due="due")),
        **options,
    )


def _reference(gs, k, eps=1.0):
    """The updates of one matrix, and the sums at the end: with numpy, in float64."""
    m, n = gs[0].shape
    left, right, updates = np.zeros((m, m)), np.zeros((n, n)), []
    for t, g in enumerate(np.asarray(gs, np.float64)):
        if t % k == 0:
            l = np.linalg.inv(left + g @ g.T + eps * np.eye(m))
            r = np.linalg.inv(right + g.T @ g + eps * np.eye(n))
        updates.append(l @ g @ r)
        left, right = left + g @ g.T, right + g.T @ g
    return updates, left, right


@BOTH_WAYS
def test_memory_of_a_matrix_and_what_happens_every_few_steps(compiled):
    """Matrices, tall and wide, and stacks of them, against a slow reference."""
    refreshed, seen, steps = [], [], 7
    tx = lift(_shampoo(refreshed, seen))
    gs = [_grads(seed=t) for t in range(steps)]
    state = tx.init(gs[0])
    assert state.left["b"].shape == (5, 5) and state.left["stack"].shape == (2, 3, 3)
    update = jax.jit(tx.update) if compiled else tx.update
    found = []
    for g in gs:
        u, state = update(g, state)
        found.append(u)
    jax.effects_barrier()
    # In three of seven steps, once for each of the six matrices.
    assert len(refreshed) == 3 * 6
    # Rows and columns have different memory, so a tall matrix stays tall.
    assert set(seen) == {(3, 5), (5, 3), (4, 4)}
    for name, shape in SHAPES.items():
        for k in np.ndindex(shape[:-2]):
            want, left, right = _reference([g[name][k] for g in gs], 3)
            for t in range(steps):
                np.testing.assert_allclose(
                    found[t][name][k], want[t], rtol=1e-4, atol=1e-4
                )
            np.testing.assert_allclose(state.left[name][k], left, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(
                state.right[name][k], right, rtol=1e-4, atol=1e-4
            )
    assert int(state.count) == steps


def test_in_other_steps_the_condition_skips_the_work():
    """One branch of a condition, not a choice between two results."""
    tx, g = lift(_shampoo([])), _grads()
    text = str(jax.make_jaxpr(tx.update)(g, tx.init(g)))
    assert text.count(" cond[") == 3  # for stacks of three shapes


def test_memory_keeps_its_dtype():
    """The memory in one stack has one dtype."""
    tx, g = lift(_shampoo([])), {"half": jnp.ones((3, 5)), "wide": jnp.ones((3, 5))}
    state = tx.init(g)
    low = {**state.left, "half": state.left["half"].astype(jnp.bfloat16)}
    _, new = tx.update(g, state._replace(left=low))
    assert new.left["half"].dtype == jnp.bfloat16
    assert new.left["wide"].dtype == jnp.float32


def test_memory_that_the_matrix_does_not_name_is_the_formulas():
    class State(NamedTuple):
        mu: Any
        gram: Any

    def formula(g, mu):
        mu = mu + g
        return mu, mu

    def matrix(g, gram, *, c):
        gram = gram + g @ g.T
        return c * gram @ g, gram

    memory = {"mu": jnp.zeros_like, "gram": _square(-2)}
    numbers = {"c": 2.0}
    tx = lift(Rule("x", formula, State, memory, numbers=numbers, matrix=Matrix(matrix)))
    g = _grads()
    state = tx.init(g)
    for _ in range(2):
        u, state = tx.update(g, state)
    for name, x in g.items():
        x = np.asarray(x, np.float64)
        gram = 5 * x @ np.swapaxes(x, -1, -2)
        np.testing.assert_allclose(state.mu[name], 2 * x, rtol=1e-5)
        np.testing.assert_allclose(state.gram[name], gram, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(u[name], 4 * gram @ x, rtol=1e-4, atol=1e-3)


def test_a_matrix_without_rows():
    g = {
        "none": jnp.zeros((0, 5)),
        "layers": jnp.zeros((0, 3, 5)),
        "w": jnp.ones((3, 5)),
    }
    tx = lift(_shampoo([]))
    u, state = jax.jit(tx.update)(g, tx.init(g))
    assert {k: x.shape for k, x in u.items()} == {k: x.shape for k, x in g.items()}
    assert state.left["none"].shape == (0, 0)


def test_memory_on_a_mesh_with_explicit_axes():
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    g = {"w": jax.random.normal(jax.random.key(0), (8, 4))}
    tx = lift(_shampoo([]))
    want, kept = tx.update(g, tx.init(g))
    with jax.set_mesh(mesh):
        where = NamedSharding(mesh, PartitionSpec("x", "y"))
        split = jax.device_put(g, where)
        state = tx.init(split)
        u, new = jax.jit(tx.update)(split, state)
        assert jax.typeof(u["w"]).sharding == jax.typeof(split["w"]).sharding
        for a, b in zip(jax.tree.leaves(new), jax.tree.leaves(state), strict=True):
            assert jax.typeof(a).sharding == jax.typeof(b).sharding
    np.testing.assert_allclose(u["w"], want["w"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(new.left["w"], kept.left["w"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "every, message",
    [
        ({"due": None}, "expected either `k` or `due`"),
        ({"k": "k"}, "expected either `k` or `due`"),
        ({"due": "today"}, "there is no number `today`"),
        ({"writes": ("mu",)}, "`writes` is \\('mu',\\), expected arguments"),
    ],
)
def test_every_needs_its_names(every, message):
    rule = _shampoo([])
    matrix = rule.matrix._replace(every=rule.matrix.every._replace(**every))
    with pytest.raises(TypeError, match=f"shampoo: every: {message}"):
        replace(rule, matrix=matrix)


def test_turns_need_a_count():
    class State(NamedTuple):
        m: Any

    every = Every(lambda m: m, ("m",), k="k")
    with pytest.raises(TypeError, match="x: every: there is no count"):
        Rule(
            "x",
            lambda g: g,
            State,
            {"m": jnp.zeros_like},
            numbers={"k": 3},
            matrix=Matrix(lambda g: g, every=every),
        )


def test_a_matrix_formula_does_not_see_the_param():
    with pytest.raises(TypeError, match="asks for p, expected positional arguments"):
        Rule("x", lambda g: g, matrix=Matrix(lambda g, p: g))
