"""Sophia, and estimates of the diagonal of the Hessian."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest import contrib

P = {"a": jnp.array([1.0, -2.0, 0.5]), "b": jnp.array(3.0), "n": None}
CURVES = {"a": jnp.array([1.0, 2.0, 4.0]), "b": jnp.array(8.0)}


def _bowl(p):
    return 0.5 * (jnp.sum(CURVES["a"] * p["a"] ** 2) + CURVES["b"] * p["b"] ** 2)


def _crossed(p):
    """All coordinates interact, so the estimate depends on the signs."""
    return 0.5 * (jnp.sum(p["a"] * jnp.array([1.0, 10.0, 100.0])) + 7 * p["b"]) ** 2


def test_of_a_diagonal_hessian_the_estimate_is_exact():
    tx = contrib.hutchinson_estimator_diag_hessian()
    h, _ = tx.update(P, tx.init(P), P, obj_fn=_bowl)
    np.testing.assert_allclose(h["a"], CURVES["a"], rtol=1e-6)
    np.testing.assert_allclose(h["b"], CURVES["b"], rtol=1e-6)
    assert h["n"] is None


def test_the_estimates_are_right_on_average():
    tx = contrib.hutchinson_estimator_diag_hessian(jax.random.key(1))

    def look(state, _):
        h, state = tx.update(P, state, P, obj_fn=_crossed)
        return state, h["a"]

    _, found = jax.lax.scan(look, tx.init(P), None, length=4000)
    np.testing.assert_allclose(found.mean(0), [1, 100, 10000], rtol=0.2, atol=8)


@pytest.mark.parametrize("key", [None, "old", "new"])
def test_the_signs_are_those_of_optax(key):
    kinds = {"old": jax.random.PRNGKey, "new": jax.random.key}
    seed = kinds[key](7) if key else None
    ours = contrib.hutchinson_estimator_diag_hessian(seed)
    theirs = optax.contrib.hutchinson_estimator_diag_hessian(seed)
    state, other = ours.init(P), theirs.init(P)
    for _ in range(3):
        h, state = ours.update(P, state, P, obj_fn=_crossed)
        want, other = theirs.update(P, other, P, obj_fn=_crossed)
        jax.tree.map(np.testing.assert_array_equal, h, want)
        assert (state.key == other.key).all()


def test_a_seed_may_be_a_number():
    """Optax treats it as a key, and fails."""
    old = jax.random.PRNGKey(3)
    for seed in (3, np.int64(3), jnp.array(3)):
        key = contrib.hutchinson_estimator_diag_hessian(seed).init(P).key
        assert (key == old).all()


def test_the_second_step_is_newtons():
    """If nothing is clipped, u = -m / h, with the curvature of the first step."""
    tx = contrib.sophia(
        1.0, b1=0.0, b2=0.0, gamma=1.0, clip_threshold=None, weight_decay=0.0
    )
    g = jax.grad(_bowl)(P)
    _, state = tx.update(g, tx.init(P), P, obj_fn=_bowl)
    u, state = tx.update(g, state, P, obj_fn=_bowl)
    np.testing.assert_allclose(u["a"], -P["a"], rtol=1e-5)
    assert state[0].count == 2


def test_the_curvature_is_updated_every_few_steps():
    """Eager and compiled: at steps 1, 4 and 7 for an interval of 3."""
    tx = contrib.sophia(0.1, update_interval=3, weight_decay=0.0)
    update = jax.jit(lambda g, s: tx.update(g, s, P, obj_fn=_bowl))
    state = other = tx.init(P)
    looks = []
    for _ in range(7):
        old = state
        _, state = tx.update(P, state, P, obj_fn=_bowl)
        _, other = update(P, other)
        looks.append(bool((state[0].nu["a"] != old[0].nu["a"]).any()))
        same = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6)
        jax.tree.map(same, state, other)
    assert looks == [True, False, False, True, False, False, True]


def test_a_leaf_without_a_gradient_keeps_its_curvature():
    tx = contrib.sophia(0.1, weight_decay=0.0)
    u, state = tx.update({**P, "a": None}, tx.init(P), P, obj_fn=_bowl)
    assert u["a"] is None
    assert not state[0].nu["a"].any() and state[0].nu["b"] > 0


def _printed(m, capfd, **options):
    tx = m.contrib.sophia(0.1, eps=1.0, verbose=True, weight_decay=0.0, **options)
    state = tx.init(P)
    g = {"a": jnp.array([0.5, 0.1, 3.0]), "b": jnp.array(-0.2), "n": None}
    for _ in range(4):
        _, state = tx.update(g, state, P, obj_fn=_bowl)
    jax.effects_barrier()
    return capfd.readouterr().out


@pytest.mark.parametrize(
    "options",
    [{}, {"print_win_rate_every_n_steps": 3}, {"clip_threshold": None}],
    ids=["always", "every third", "not clipped"],
)
def test_the_win_rate_is_printed_as_optax_prints_it(capfd, options):
    ours = _printed(steepest, capfd, **options)
    with jax.numpy_dtype_promotion("standard"):
        assert ours == _printed(optax, capfd, **options)
    assert ours.count("\n") == {0: 4, 3: 1, None: 0}[next(iter(options.values()), 0)]


@pytest.mark.usefixtures("as_users_do")
def test_what_is_refused():
    tx = contrib.sophia(0.1)
    with pytest.raises(ValueError, match="needs `obj_fn` and was called without it"):
        tx.update(P, tx.init(P), P)
    with pytest.raises(ValueError, match="sophia: `update` needs `params`"):
        tx.update(P, tx.init(P), obj_fn=_bowl)
    with pytest.raises(TypeError, match="sophia: hessian_diagonal_fn is a function"):
        contrib.sophia(
            0.1, hessian_diagonal_fn=contrib.hutchinson_estimator_diag_hessian
        )
    with pytest.raises(ValueError, match="sophia: update_interval is 0"):
        contrib.sophia(0.1, update_interval=0)
    with pytest.raises(TypeError, match="sophia: verbose is 2, expected True or False"):
        contrib.sophia(0.1, verbose=2)
    for seed in ("x", 0.5):
        with pytest.raises(TypeError, match=r"hessian: random_seed .* one random key"):
            contrib.hutchinson_estimator_diag_hessian(seed)
    tx = contrib.hutchinson_estimator_diag_hessian()
    with pytest.raises(
        TypeError, match="hessian: the state is a tuple, expected a Hutchins"
    ):
        tx.update(P, (), P, obj_fn=_bowl)
    with pytest.raises(
        TypeError, match="hessian: obj_fn is a float, expected a function"
    ):
        tx.update(P, tx.init(P), P, obj_fn=1.0)
    whole = {"n": jnp.ones(2, int)}
    with pytest.raises(
        TypeError, match=r"leaf \['n'\] has dtype int32, expected a floating"
    ):
        tx.update(whole, tx.init(whole), whole, obj_fn=_bowl)
    phase = {"z": jnp.ones(2, jnp.complex64)}
    tx = contrib.sophia(0.1)
    with pytest.raises(
        ValueError, match=r"sophia: leaf \['z'\] is complex64, expected a rea"
    ):
        tx.update(phase, tx.init(phase), phase, obj_fn=_bowl)
