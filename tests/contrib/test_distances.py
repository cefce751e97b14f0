"""D-Adaptation, Prodigy, DoG and DoWG, which estimate the distance to the solution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import contrib

from ..unusual import ODD

TARGET = {"a": jnp.array([3.0, -4.0]), "b": jnp.array(0.5)}
START = jax.tree.map(jnp.zeros_like, TARGET)
MAKERS = {
    "dadapt_adamw": lambda **kw: contrib.dadapt_adamw(**{"estim_lr0": 1e-3, **kw}),
    "prodigy": lambda **kw: contrib.prodigy(**{"estim_lr0": 1e-3, **kw}),
    "dog": lambda **kw: contrib.dog(init_step=("heuristic", 0.01), **kw),
    "dog, distance": lambda **kw: contrib.dog(init_step=("distance", 0.01), **kw),
    "dog, rate": lambda **kw: contrib.dog(init_step=("learning_rate", 0.01), **kw),
    "dowg": lambda **kw: contrib.dowg(**kw),
}
everyone = pytest.mark.parametrize("name", MAKERS)


def _loss(p):
    parts = jax.tree.map(lambda x, y: jnp.sum((x - y) ** 2), p, TARGET)
    return sum(jax.tree.leaves(parts))


def _train(tx, p, steps, first=None):
    """Steps with the gradients in `first`, followed by `steps` others."""

    @jax.jit
    def run(p, state):
        def step(_, carry):
            p, state = carry
            u, state = tx.update(jax.grad(_loss)(p), state, p)
            return steepest.apply_updates(p, u), state

        return jax.lax.fori_loop(0, steps, step, (p, state))

    state = tx.init(p)
    for g in first or []:
        u, state = tx.update(g, state, p)
        p = steepest.apply_updates(p, u)
    return run(p, state)


@everyone
def test_zero_gradients_first_and_then_training(name):
    """Optax's Prodigy and D-Adaptation give NaN from then on; its DoG may stop."""
    tx = MAKERS[name]()
    p, state = _train(tx, START, 500, [START, START])
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(state))
    assert _loss(p) < 1e-2 * _loss(START)


@pytest.mark.parametrize("name", ["dadapt_adamw", "prodigy"])
def test_the_estimate_grows_to_the_distance(name):
    """Up to its order of magnitude: 5, whatever the initial estimate."""
    for begin in (1e-4, 1e-2):
        _, state = _train(MAKERS[name](estim_lr0=begin), START, 300)
        assert 0.5 < state.estim_lr < 10


def test_the_distance_is_over_all_leaves():
    p, state = _train(MAKERS["dog"](), START, 50)
    far = steepest.global_norm(p)
    np.testing.assert_allclose(state[1].max_dist, far, rtol=1e-2)


def test_the_initial_distance_of_dog():
    p = {"a": jnp.array([3.0, -4.0]), "b": None}
    begin = contrib.dog(init_step=("heuristic", 0.1)).init(p)[1]
    np.testing.assert_allclose(begin.max_dist, 0.1 * (1 + 5), rtol=1e-6)
    assert begin.is_init_step and begin.sum_sq_norm_grads == 0
    assert contrib.dog(init_step=("learning_rate", 0.1)).init(p)[1].max_dist == 0
    assert contrib.dowg(eps=0.25).init(p)[1].estim_sq_dist == 0.25


def test_the_first_step_of_dog_by_its_learning_rate():
    tx = contrib.dog(0.5, init_step=("learning_rate", 0.1))
    g = TARGET
    u, state = tx.update(g, tx.init(START), START)
    np.testing.assert_allclose(u["a"], -0.05 * g["a"], rtol=1e-6)
    assert not state[1].is_init_step and state[1].max_dist == 0


def test_dog_in_half_precision_computes_in_float32():
    """The norm of the params, 300 sqrt(90000), is too large for float16."""
    p = jnp.full(90000, 300.0, jnp.float16)
    state = contrib.dog(init_step=("heuristic", 1.0)).init(p)[1]
    assert state.max_dist.dtype == jnp.float32
    np.testing.assert_allclose(state.max_dist, 90001, rtol=1e-4)


def test_prodigy_multiplies_by_its_estimate_in_float16():
    """1e-6 times a gradient of 1e-3 is too small for float16."""
    p = jnp.ones(2, jnp.float16)
    tx = contrib.prodigy()
    _, state = tx.update(1e-3 * p, tx.init(p), p)
    assert (state.exp_avg > 0).all() and (state.grad_sum > 0).all()


def test_prodigy_forgets_as_beta3_says():
    p = jnp.ones(2)
    for beta3, share in ((0.25, 0.25), (None, 0.5)):
        tx = contrib.prodigy(betas=(0.9, 0.25), beta3=beta3)
        _, state = tx.update(p, tx.init(p), p)
        _, later = tx.update(0 * p, state, p)
        np.testing.assert_allclose(later.grad_sum, share * state.grad_sum, rtol=1e-6)


def test_the_safeguard_leaves_the_learning_rate_out_of_the_sum():
    p, sums = jnp.ones(2), []
    for rate in (1.0, 0.1):
        tx = contrib.prodigy(rate, safeguard_warmup=True)
        sums.append(tx.update(p, tx.init(p), p)[1].grad_sum)
    np.testing.assert_array_equal(*sums)


@pytest.mark.usefixtures("as_users_do")
def test_what_is_refused():
    with pytest.raises(ODD, match=r"dog: init_step\[0\] is 'far', expected one of"):
        contrib.dog(init_step=("far", 1.0))
    with pytest.raises(ODD, match=r"dog: init_step is 0.1, expected a name and a nu"):
        contrib.dog(init_step=0.1)
    with pytest.raises(ODD, match=r"prodigy: betas is 0.9, expected two numbers"):
        contrib.prodigy(betas=0.9)
    with pytest.raises(ODD, match="prodigy: estim_lr0 is 0"):
        contrib.prodigy(estim_lr0=0)
    with pytest.raises(ODD, match=r"dadapt_adamw: betas\[1\] is 2"):
        contrib.dadapt_adamw(betas=(0.9, 2))
    for name, make in MAKERS.items():
        tx = make()
        who = name.split(",")[0]
        with pytest.raises(ODD, match=f"{who}: `update` needs `params`"):
            tx.update(START, tx.init(START))
