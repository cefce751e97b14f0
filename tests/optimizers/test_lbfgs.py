"""L-BFGS: as in Optax, as in the book, and what may go wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

from ._problems import beginnings, descend
from ._refused import NOT_FLAGS, refuses

PROBLEMS = ["quadratic", "rosenbrock", "logistic"]
MAKERS = {
    "lbfgs": lambda m: m.lbfgs(),
    "a short memory, unscaled": lambda m: m.lbfgs(0.7, 2, False),
    # In most steps the first trial is accepted; here it is not, and cubics are used.
    "a small slope": lambda m: m.lbfgs(
        linesearch=m.scale_by_zoom_linesearch(20, curv_rtol=0.01)
    ),
    "backtracking": lambda m: m.lbfgs(
        memory_size=3,
        linesearch=m.scale_by_backtracking_linesearch(15, store_grad=True),
    ),
}
loosely = lambda: (
    jax.numpy_dtype_promotion("standard"),
    jax.numpy_rank_promotion("allow"),
)


def _counts(rows):
    return [int(steepest.tree.get(s, "num_linesearch_steps")) for s, _ in rows]


def _both(name, problem, dtype, steps, **how):
    f, p = beginnings(dtype)[problem]
    ours = descend(steepest, MAKERS[name](steepest), f, p, steps, **how)
    promotion, ranks = loosely()
    with promotion, ranks:
        theirs = descend(optax, MAKERS[name](optax), f, p, steps, **how)
    return ours, theirs


@pytest.mark.parametrize(
    "name, problem",
    [
        *(("lbfgs", problem) for problem in PROBLEMS),
        # Not the quadratic: the third coefficient of a cubic through its points is only
        # rounding error, and moving the start by 1e-13 changes the number of trials.
        ("a small slope", "rosenbrock"),
        ("a small slope", "logistic"),
        ("a short memory, unscaled", "rosenbrock"),
        ("backtracking", "logistic"),
    ],
)
def test_same_way_as_optax(name, problem):
    """In float64: the same points, values and numbers of trials.

    Twenty steps, or until it converges: after that, rounding decides what is better.
    """
    with jax.enable_x64(True):
        ours, theirs = _both(name, problem, "float64", 20)
        f, _ = beginnings("float64")[problem]
        values = np.array([f(p) for _, p in theirs])
        there = values - values.min() < 1e-13 * max(1.0, abs(values.min()))
        steps = max(3, int(np.argmax(there))) if there.any() else 20
        assert _counts(ours)[:steps] == _counts(theirs)[:steps]
        for (a, p), (b, q) in zip(ours[:steps], theirs[:steps], strict=True):
            jax.tree.map(
                lambda x, y: np.testing.assert_allclose(x, y, 1e-7, 1e-9), p, q
            )
            for key in ("learning_rate", "value"):
                x, y = (steepest.tree.get(s, key) for s in (a, b))
                np.testing.assert_allclose(x, y, 1e-7, 1e-10)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_same_first_steps_in_float32(problem):
    ours, theirs = _both("lbfgs", problem, "float32", 4)
    assert _counts(ours) == _counts(theirs)
    for (_, p), (_, q) in zip(ours, theirs, strict=True):
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 2e-4, 1e-5), p, q)


def test_what_is_stored_need_not_be_computed():
    """The same steps with the value and gradient stored by the last search."""
    with jax.enable_x64(True):
        f, p = beginnings("float64")["rosenbrock"]
        tx = steepest.lbfgs()
        plain = descend(steepest, tx, f, p, 20)
        stored = descend(steepest, tx, f, p, 20, from_state=True)
        same = lambda x, y: np.testing.assert_allclose(x, y, 1e-7)
        jax.tree.map(same, plain[-1][1], stored[-1][1])
        assert f(stored[-1][1]) < 0.5


def _dense(pairs, g, gamma):
    """The inverse Hessian of BFGS, as a matrix (Nocedal and Wright, 6.17)."""
    inverse = gamma * np.eye(g.size)
    for s, y in pairs:
        rho, one = 1 / (s @ y), np.eye(g.size)
        left = one - rho * np.outer(s, y)
        inverse = left @ inverse @ left.T + rho * np.outer(s, s)
    return inverse @ g


@pytest.mark.parametrize("scaled", [True, False], ids=["scaled", "unscaled"])
@pytest.mark.parametrize("size", [1, 3, 8])
def test_two_loops_are_the_matrix(scaled, size):
    """A BFGS step, with the matrix of the last `size` pairs."""
    rng = np.random.default_rng(1)
    ps, gs = rng.normal(size=(2, 7, 4))
    gs = gs + 2 * ps  # so that most pairs have positive curvature
    with jax.enable_x64(True):
        tx = steepest.scale_by_lbfgs(size, scaled)
        state = tx.init(jnp.asarray(ps[0]))
        for t, (p, g) in enumerate(zip(ps, gs, strict=True)):
            u, state = tx.update(jnp.asarray(g), state, jnp.asarray(p))
            last = range(max(1, t + 1 - size), t + 1)
            pairs = [(ps[i] - ps[i - 1], gs[i] - gs[i - 1]) for i in last]
            gamma = 1 / max(1, np.linalg.norm(g))
            if pairs:
                s, y = pairs[-1]
                gamma = (s @ y) / (y @ y)
            want = _dense(pairs, g, gamma if scaled else 1.0)
            np.testing.assert_allclose(u, want, 1e-9)
    assert int(state.count) == 7


@pytest.mark.parametrize("kind", ["same params", "same gradient", "no gradient"])
def test_steps_without_information(kind):
    """If a difference is zero: as in Optax, and nothing is NaN."""
    rng = np.random.default_rng(2)
    ps, gs = (jnp.asarray(x, jnp.float32) for x in rng.normal(size=(2, 7, 3)))
    if kind == "same params":
        ps = ps.at[3:6].set(ps[3])
    else:
        gs = gs.at[3:6].set(gs[3] if kind == "same gradient" else 0)
    outs = []
    for m in (steepest, optax):
        tx = m.scale_by_lbfgs(2)
        state, us = tx.init(ps[0]), []
        promotion, ranks = loosely()
        with promotion, ranks:
            update = jax.jit(tx.update)
            for p, g in zip(ps, gs, strict=True):
                u, state = update(g, state, p)
                us.append(u)
        outs.append((us, state.weights_memory))
    for x, y in zip(*map(jax.tree.leaves, outs), strict=True):
        assert np.isfinite(x).all()
        np.testing.assert_allclose(x, y, 1e-3, 1e-5)


def test_a_curvature_too_small_to_invert_is_none():
    """The product is subnormal, or zero on devices without subnormal numbers."""
    tx, p = steepest.scale_by_lbfgs(2), jnp.zeros(2)
    state = tx.init(p)
    for k in range(3):
        g = jnp.full(2, 1e-20 * (k + 1), jnp.float32)
        u, state = tx.update(g, state, p + 1e-20 * k)
        assert np.isfinite(u).all()
    assert not state.weights_memory.any()


def test_complex_params_are_pairs_of_real_ones():
    target, weight = jnp.array([0.3 - 1j, 0.5 + 0.2j]), jnp.array([1.0, 3.0])

    def f(z):
        return jnp.sum(jnp.abs(z - target) ** 2 * weight)

    def of_pairs(x):
        return f(jax.lax.complex(x[0], x[1]))

    tx, z = steepest.lbfgs(), jnp.array([1 + 2j, -1 + 0.5j])
    x = jnp.stack([z.real, z.imag])
    state, other = tx.init(z), tx.init(x)
    for _ in range(4):
        value, g = jax.value_and_grad(f)(z)
        known = {"value": value, "grad": g.conj(), "value_fn": f}
        u, state = tx.update(g.conj(), state, z, **known)
        z = z + u
        value, g = jax.value_and_grad(of_pairs)(x)
        u, other = tx.update(g, other, x, value=value, grad=g, value_fn=of_pairs)
        x = x + u
        np.testing.assert_allclose(x, jnp.stack([z.real, z.imag]), 1e-4, 1e-5)
    assert f(z) < 1e-3


def test_many_at_once():
    """`vmap` over starting points, in a `scan`: each follows its own path."""
    f, _ = beginnings("float32")["rosenbrock"]
    tx = steepest.lbfgs(memory_size=3)

    @jax.jit
    def run(p):
        def step(carry, _):
            p, state = carry
            value, g = jax.value_and_grad(f)(p)
            u, state = tx.update(g, state, p, value=value, grad=g, value_fn=f)
            return (steepest.apply_updates(p, u), state), None

        return jax.lax.scan(step, (p, tx.init(p)), None, length=40)[0][0]

    starts = {"x": jnp.array([-1.2, 2.0, 0.0]), "y": jnp.array([1.0, -1.0, 3.0])}
    ends = jax.jit(jax.vmap(run))(starts)
    np.testing.assert_allclose(ends["x"], 1, atol=2e-2)
    np.testing.assert_allclose(ends["y"], 1, atol=4e-2)


def test_errors(as_users_do):
    for size in (0, -1):
        with pytest.raises(ValueError, match=r"memory_size is .*, expected at least 1"):
            steepest.scale_by_lbfgs(size)
    for size in (1.5, None, "a"):
        with pytest.raises(TypeError):
            steepest.scale_by_lbfgs(size)
    p = jnp.ones(2)
    tx = steepest.scale_by_lbfgs()
    with pytest.raises(ValueError, match=r"scale_by_lbfgs: .*params"):
        tx.update(p, tx.init(p))
    with pytest.raises(ValueError, match=r"leaf.*'b'"):
        tx.update({"a": p, "b": p}, tx.init({"a": p}), {"a": p, "b": p})
    odd = {"updates": {"a": jnp.ones(3)}, "params": {"a": jnp.ones(3)}}
    for name in odd:
        given = {"updates": {"a": p}, "params": {"a": p}, name: odd[name]}
        with pytest.raises(ValueError, match=r"scale_by_lbfgs: leaf \['a'\] has shape"):
            tx.update(given["updates"], tx.init({"a": p}), given["params"])
    with pytest.raises(ValueError, match=r"leaf \['a'\] .* in the state's `params`"):
        tx.update({"a": p}, tx.init(odd["params"]), {"a": p})
    with pytest.raises(TypeError, match="EmaState, expected a ScaleByLBFGSState"):
        tx.update(p, steepest.ema(0.9).init(p), p)
    with pytest.raises(TypeError, match=r"leaf \['n'\] of the params has dtype int32"):
        tx.init({"n": jnp.arange(2)})
    tx = steepest.lbfgs()
    with pytest.raises(TypeError, match=r"scale_by_zoom_linesearch: .*`value`"):
        tx.update(p, tx.init(p), p)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.scale_by_lbfgs,
        memory_size=[1.5, "10", None, jnp.ones(2)],
        scale_init_precond=NOT_FLAGS,
    )
    refuses(steepest.lbfgs, linesearch=[3, steepest.scale_by_zoom_linesearch])
