"""No optimizer of matrices makes a step far above its usual ones.

Bases, roots and projections follow the gradients with a delay. What is divided by an
average in old coordinates can be huge, although every number is finite.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

SHAPE, STEPS = (12, 20), 48
PLAIN = {"weight_decay": 0.0}
OFTEN = {**PLAIN, "frequency": 1}

# Each with the largest root mean square of an update, at a learning rate of 1. That of
# Adam is 1, in the first step.
MAKERS = {
    "adamw": (partial(steepest.adamw, b1=0.95, b2=0.95, **PLAIN), 1),
    "soap": (partial(steepest.soap, **PLAIN), 1),
    "soap every step": (partial(steepest.soap, **OFTEN), 1),
    "soap, other decay rates": (
        partial(steepest.soap, b1=0.9, b2=0.99, frequency=2, **PLAIN),
        2,
    ),
    "soap rotation": (partial(steepest.soap, basis="rotation", **OFTEN), 1),
    "soap fresh": (partial(steepest.soap, fresh=True, **OFTEN), 1),
    "soap fresh at once": (
        partial(steepest.soap, fresh=True, rolled=False, frequency=2, **PLAIN),
        1,
    ),
    # Not bounded: how large it gets depends on rounding errors.
    "soap paper": (partial(steepest.soap, rolled=False, **PLAIN), 4),
    "soap paper every step": (partial(steepest.soap, rolled=False, **OFTEN), 4),
    "soap kl": (partial(steepest.soap, factors="kl", **PLAIN), 1),
    "soap kl fresh": (partial(steepest.soap, factors="kl", fresh=True, **OFTEN), 1),
    "soap_muon": (partial(steepest.soap_muon, **OFTEN), 0.3),
    "shampoo": (partial(steepest.shampoo, **OFTEN), 1),
    "shampoo kl": (partial(steepest.shampoo, factors="kl", **OFTEN), 1),
    "psgd": (partial(steepest.psgd, **PLAIN), 1),
    "kron": (partial(steepest.kron, **PLAIN), 1),
    "splus": (partial(steepest.splus, **OFTEN), 1),
    "muon": (partial(steepest.muon, **PLAIN), 0.3),
    "normuon": (partial(steepest.normuon, **PLAIN), 0.3),
    "adamuon": (partial(steepest.adamuon, **PLAIN), 0.3),
    "dion2": (partial(steepest.dion2, **PLAIN), 0.3),
    "fira": (partial(steepest.fira, rank=4, update_proj_gap=8), 3),
    "apollo": (partial(steepest.apollo, rank=4, update_proj_gap=8), 3),
    "adam_mini": (partial(steepest.adam_mini, b2=0.95, **PLAIN), 1),
}


def _gradients():
    """Runs of gradients, by name."""
    random = np.random.default_rng(0)
    m, n = SHAPE
    full = random.normal(size=(STEPS, m, n))
    t = np.arange(STEPS)[:, None, None]
    product = lambda rank: (
        random.normal(size=(STEPS, m, rank)) @ random.normal(size=(STEPS, rank, n))
    )
    rows = np.argsort(random.random((STEPS, m)), axis=1) < 2
    spectra = 1.0 / (1 + np.arange(m)[:, None]) ** 2 / (1 + np.arange(n)) ** 2
    return {
        "full": full,
        "zeros, then full": full * (t >= 5),
        "one direction, then all": np.where(t < 15, 1.0, full),
        "rank one": product(1),
        "rank three": product(3),
        "few rows": full * rows[:, :, None],
        "steep": full * spectra,
        "growing": full * 1.5**t,
        "sometimes zero": full * (t % 7 > 0),
    }


GRADIENTS = {name: jnp.asarray(gs, jnp.float32) for name, gs in _gradients().items()}


@pytest.mark.parametrize("name", MAKERS)
def test_no_step_is_far_above_the_usual(name):
    make, most = MAKERS[name]
    tx = make(1.0)

    @jax.jit
    def sizes(gs):
        def step(state, g):
            u, state = tx.update({"kernel": g}, state, p)
            return state, jnp.sqrt(jnp.mean(jnp.square(u["kernel"])))

        p = {"kernel": jnp.zeros(SHAPE)}
        return jax.lax.scan(step, tx.init(p), gs)[1]

    largest = {kind: float(jnp.max(sizes(gs))) for kind, gs in GRADIENTS.items()}
    assert all(x <= 1.01 * most for x in largest.values()), largest
    assert all(x > 0.001 for x in largest.values()), largest
