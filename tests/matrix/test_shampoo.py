"""Shampoo: its roots, its lengths, and its state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ._difficult import DTYPES, stays_finite
from ._reference import matrix, run, updates
from ._runs import no_gradient_makes_it_infinite, spread, steps_to_solve

NORM = np.linalg.norm


def _root(a, q, how, eps, exponent, trace):
    """`(a + eps)^-exponent` and its basis."""
    a = a / np.sqrt(np.trace(a)) if trace else a
    if how == "basis":
        x = a @ q
        order = np.argsort(-(q * x).sum(0))
        new = np.empty_like(q)
        new[:, order] = np.linalg.qr(x[:, order])[0]
        q, values = new, (new * (a @ new)).sum(0)
    else:
        values, q = np.linalg.eigh(a)
    return (q * (values + eps) ** -exponent) @ q.T, q


def _shampoo(
    gs,
    how="basis",
    graft="adam",
    frequency=1,
    start=1,
    beta=0.95,
    exponent=0.25,
    trace=False,
    eps=1e-6,
):
    """The slow reference: the update of each step."""
    m, n = gs[0].shape
    factors, bases, roots = [0, 0], [np.eye(m), np.eye(n)], [np.eye(m), np.eye(n)]
    mu = nu = 0 * gs[0]
    us = []
    for t, g in enumerate(gs, 1):
        mu = 0.9 * mu + 0.1 * g
        nu = nu + g * g if graft == "adagrad" else 0.95 * nu + 0.05 * g * g
        for k, term in enumerate((g @ g.T, g.T @ g)):
            factors[k] = beta * factors[k] + (1 if beta == 1 else 1 - beta) * term
            if t == start or (t > start and t % frequency == 0):
                a = factors[k] / (1 if beta == 1 else 1 - beta**t)
                args = a, bases[k], how, eps, exponent, trace
                roots[k], bases[k] = _root(*args)
        mean = mu / (1 - 0.9**t)
        squares = nu / (1 - 0.95**t) if graft == "adam" else nu
        other = mean if graft in ("sgd", "none") else mean / (np.sqrt(squares) + 1e-8)
        u = roots[0] @ mean @ roots[1]
        if graft != "none":
            u = u * NORM(other) / NORM(u)
        us.append(u if t >= start else other)
    return us


# From the third step on, the factors have no null space, whose basis is arbitrary.
CASES = [
    {"start": 3},
    {"how": "eigh"},
    {"how": "newton"},
    {"graft": "rmsprop", "frequency": 2, "start": 3},
    {"graft": "adagrad", "beta": 1.0, "start": 3},
    {"graft": "sgd", "frequency": 3, "start": 3, "how": "eigh"},
    {"graft": "none", "exponent": 0.5, "trace": True, "start": 3},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("compiled", [True, False])
def test_a_few_steps_against_a_slow_reference(case, compiled):
    options = {
        {"how": "root", "beta": "factor_beta"}.get(k, k): x for k, x in case.items()
    }
    options = {"frequency": 1, "start": 1, **options, "rolled": False}
    with jax.enable_x64(True):
        gs = [jnp.asarray(matrix(t, 4, 6), "float64") for t in range(8)]
        tx = steepest.scale_by_shampoo(eps=1e-6, **options)
        update = jax.jit(tx.update) if compiled else tx.update
        state = tx.init(gs[0])
        for g, want in zip(
            gs, _shampoo(list(map(np.asarray, gs)), **case), strict=True
        ):
            u, state = update(g, state)
            np.testing.assert_allclose(u, want, 1e-5, 1e-5 * abs(want).max())


def test_taking_turns_in_every_step_is_all_at_once():
    p = {"a": matrix(0, 4, 4), "b": matrix(1, 5, 5), "c": matrix(2, 4, 4)}
    gs = [jax.tree.map(lambda x, t=t: jnp.cos(3 * x + t), p) for t in range(5)]
    found = [
        run(steepest.shampoo(0.1, eps=1e-3, frequency=1, rolled=rolled), p, gs)[0]
        for rolled in (True, False)
    ]
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-4, 1e-5), *found)


@pytest.mark.parametrize("options", [{}, {"factors": "kl"}], ids=str)
def test_a_stack_is_its_matrices(options):
    """And so is a tensor whose axes are joined."""
    make = lambda **k: steepest.shampoo(0.1, frequency=1, **options, **k)
    stack = jnp.stack([matrix(k, 4, 6) for k in range(3)])
    gs = [jnp.cos(3 * stack + t) for t in range(4)]
    found, _ = run(make(stacked="s"), {"s": stack}, [{"s": g} for g in gs])
    for k in range(3):
        one, _ = run(make(), {"w": stack[k]}, [{"w": g[k]} for g in gs])
        np.testing.assert_allclose(found["s"][k], one["w"], 2e-4, 2e-5)
    tall = lambda x: {"conv": x.reshape(2, 6, 6)}
    wide = lambda x: {"conv": x.reshape(12, 6)}
    joined = make(routes={"conv": "in in out"})
    found, _ = run(joined, tall(stack), list(map(tall, gs)))
    wanted, _ = run(make(), wide(stack), list(map(wide, gs)))
    np.testing.assert_allclose(found["conv"].reshape(12, 6), wanted["conv"], 2e-4, 2e-5)


@pytest.mark.parametrize("frequency", [1, 3])
def test_before_the_start_it_is_the_other_method(frequency):
    gs = [matrix(t, 4, 6) for t in range(4)]
    found = updates(
        steepest.scale_by_shampoo(0.9, 0.95, start=4, frequency=frequency), gs
    )
    adam = updates(steepest.scale_by_adam(0.9, 0.95), gs)
    for u, want in zip(found[:3], adam, strict=False):
        np.testing.assert_allclose(u, want, 1e-5, 1e-6)
    assert NORM(found[3] - adam[3]) > 0.1 * NORM(adam[3])
    np.testing.assert_allclose(NORM(found[3]), NORM(adam[3]), 1e-5)


def test_rotations_of_the_gradient_rotate_the_update():
    left, right = (jnp.linalg.qr(matrix(k, k, k))[0] for k in (4, 6))
    gs = [matrix(t, 4, 6) for t in range(6)]
    for root in ("basis", "eigh", "newton"):
        tx = steepest.scale_by_shampoo(
            eps=1e-3, frequency=1, root=root, graft="sgd", start=1
        )
        turned = updates(tx, [left @ g @ right for g in gs])
        # The first basis is the identity, which is not rotated.
        last = left @ updates(tx, gs)[-1] @ right
        close = 0.1 if root == "basis" else 1e-3
        assert NORM(turned[-1] - last) < close * NORM(last)


def test_one_side():
    """A side without a factor has the identity, whichever it is."""
    gs = [matrix(t, 4, 6) for t in range(4)]
    options = {"graft": "none", "frequency": 1, "exponent": 0.5, "eps": 1e-6}
    short = steepest.scale_by_shampoo(one_sided=True, **options)
    assert short.init(gs[0]).factors[1] is None
    for root in ("basis", "eigh"):
        tx = steepest.scale_by_shampoo(longest=4, root=root, **options)
        for u, want in zip(updates(tx, gs), updates(short, gs), strict=True):
            if root == "basis":
                np.testing.assert_array_equal(u, want)
        wide = updates(tx, gs)[0]
        tall = updates(tx, [g.T for g in gs])[0].T
        np.testing.assert_allclose(wide, tall, 1e-4, 1e-5)


def test_what_is_kept():
    """24 bytes per element of a square matrix, and 42 if one side is 4 times longer."""
    size = lambda tree: sum(x.nbytes for x in jax.tree.leaves(tree))
    for shape, most in (((8, 8), 24), ((8, 32), 42)):
        p = jnp.ones(shape)
        state = steepest.scale_by_shampoo().init(p)
        assert isinstance(state, steepest.ScaleByShampooState)
        vectors = 4 * sum(shape)
        assert size(state) == most * p.size + vectors + 4  # and the count
        state = steepest.scale_by_shampoo(root="newton").init(p)
        assert size(state) == most * p.size + 4
        state = steepest.scale_by_shampoo(graft="sgd").init(p)
        assert size(state) == (most - 4) * p.size + vectors + 4
        state = steepest.scale_by_shampoo(factors="kl").init(p)
        assert isinstance(state, steepest.ScaleByKlShampooState)
        assert size(state) == (most - 4) * p.size + vectors + 4


RUNS = {
    "basis": {},
    "eigh": {"root": "eigh", "graft": "rmsprop"},
    "newton": {"root": "newton", "graft": "none"},
    "sum": {"factor_beta": 1.0, "graft": "adagrad", "rolled": False},
    "trace": {"trace": True, "exponent": 0.5, "graft": "none"},
    "no eps": {"eps": 0.0},
    "kl": {"factors": "kl"},
    "kl as in the paper": {"factors": "kl", "rolled": False},
}


@pytest.mark.parametrize("name", RUNS)
def test_no_gradient_makes_it_infinite(name):
    no_gradient_makes_it_infinite(steepest.scale_by_shampoo(frequency=2, **RUNS[name]))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_gradients_in_every_dtype(name, dtype):
    stays_finite(steepest.shampoo(0.1, frequency=2, **RUNS[name]), dtype)


@pytest.mark.parametrize(
    "options",
    [{"exponent": 0.5, "graft": "none"}, {"factors": "kl"}],
    ids=["shampoo", "kl"],
)
def test_updates_are_white(options):
    """Rows and columns of the updates have the same variance, and no covariance."""
    tx = steepest.scale_by_shampoo(0.0, 0.995, frequency=1, **options)
    assert max(spread(tx)) < 0.1


@pytest.mark.parametrize(
    "options, rates",
    [
        ({}, [0.06, 0.08, 0.1]),
        ({"frequency": 10}, [0.06, 0.08, 0.1]),
        ({"factors": "kl"}, [0.03]),
    ],
    ids=["shampoo", "every 10", "kl"],
)
def test_a_kronecker_quadratic_takes_a_tenth_of_adams_steps(options, rates):
    """With the best of a few rates, as for Adam.

    The smallest eigenvalues are below the rounding errors of float32. So it is chance
    which rates are too large to reach a millionth of the loss without a decay.
    """
    options = {"frequency": 1, "weight_decay": 0.0, **options}
    mine = steps_to_solve(lambda r: steepest.shampoo(r, **options), rates, 2000)
    adam = steps_to_solve(steepest.adam, [0.03, 0.1, 0.3, 1.0], 10 * mine)
    assert mine < 500 and adam >= 10 * mine


BAD = [
    ({"graft": "lion"}, "graft is 'lion', expected one of: adam, rmsprop, adagrad"),
    ({"root": "svd"}, "root is 'svd', expected one of: basis, eigh, newton"),
    ({"factors": "soap"}, "factors is 'soap', expected one of: shampoo, kl"),
    ({"exponent": 0.0}, "exponent is 0.0, expected a number above 0"),
    ({"exponent": 0.4, "root": "newton"}, "exponent is 0.4, expected 1/p"),
    ({"start": 0}, "start is 0, expected a number that is whole and at least 1"),
    ({"factors": "kl", "trace": True}, "factors is 'kl', expected no `graft`"),
]


@pytest.mark.parametrize("options, says", BAD, ids=str)
def test_bad_options(options, says, as_users_do):
    with pytest.raises(ValueError, match=f"shampoo: {says}"):
        steepest.shampoo(1e-3, **options)


def test_complex_matrices_are_refused():
    tx, g = steepest.scale_by_shampoo(), jnp.ones((2, 2), complex)
    with pytest.raises(ValueError, match=r"is complex\d+, expected a real matrix"):
        tx.update(g, tx.init(jnp.ones((2, 2))))
