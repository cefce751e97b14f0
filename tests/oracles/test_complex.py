"""Complex params where Optax squares a gradient: `g^2` is not `|g|^2`.

A formula for complex numbers should be equivariant to phase: if all gradients and
params are multiplied by a phase, so are the updates, and real quantities do not change.
"""

import functools
import os

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

P = {"w": jnp.array([1 + 2j, -0.5 + 0.25j, 2 - 1j]), "b": jnp.array([0.5 - 1j])}
G = [
    jax.tree.map(lambda x, t=t: (2 + 0.3j * t) * x - 0.7j * jnp.conj(x), P)
    for t in range(4)
]

# maker, the real numbers of its state, and whether Optax's updates are equivariant
MAKERS = {
    "adadelta": (lambda m: m.adadelta(0.5), (), False),
    "simplified_ademamix": (lambda m: m.contrib.simplified_ademamix(0.01), (), False),
    "dadapt_adamw": (
        lambda m: m.contrib.dadapt_adamw(estim_lr0=0.01),
        ("estim_lr", "numerator_weighted"),
        False,
    ),
    "prodigy": (
        lambda m: m.contrib.prodigy(estim_lr0=0.01),
        ("estim_lr", "numerator_weighted"),
        False,
    ),
    "distance_over_gradients": (
        lambda m: m.chain(m.scale_by_distance_over_gradients(0.1)),
        (),
        False,
    ),
    "mechanize": (
        lambda m: m.contrib.mechanize(m.sgd(0.1), s_init=0.1),
        ("s", "r", "v"),
        True,
    ),
    "momo": (lambda m: m.contrib.momo(0.1), ("gamma", "barf", "lb"), True),
    "momo_adam": (lambda m: m.contrib.momo_adam(0.1), ("gamma", "barf", "lb"), False),
}


def _run(library, name, turn, jit=lambda update: update):
    """The updates of a few steps, rotated back, and the final state."""
    tx = MAKERS[name][0](library)
    update = jit(tx.update)
    turned = functools.partial(jax.tree.map, lambda x: x * turn)
    p = turned(P)
    state, us = tx.init(p), []
    for g in G:
        u, state = update(turned(g), state, p, value=jnp.array(3.0))
        p = jax.tree.map(lambda x, y: x + 0.1 * y, p, u)
        us.append(jax.tree.map(lambda x: x / turn, u))
    return us, state


def _apart(library, name):
    """The distance between the updates of rotated gradients and the rotated updates."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        (straight, _), (turned, _) = (
            _run(library, name, turn) for turn in (1, np.exp(0.9j).astype(np.complex64))
        )
    pairs = zip(jax.tree.leaves(straight), jax.tree.leaves(turned), strict=True)
    return max(float(jnp.max(jnp.abs(x - y)) / jnp.max(jnp.abs(x))) for x, y in pairs)


@pytest.mark.parametrize("name", MAKERS)
def test_turned_gradients_make_turned_updates(name):
    assert _apart(steepest, name) < 1e-4


@pytest.mark.parametrize("name", MAKERS)
def test_what_belongs_to_the_tree_is_real(name):
    _, state = _run(steepest, name, 1)
    for field in MAKERS[name][1]:
        assert not jnp.iscomplexobj(steepest.tree.get(state, field))


@pytest.mark.filterwarnings("ignore:Casting from complex")
@pytest.mark.parametrize("name", [k for k, row in MAKERS.items() if not row[2]])
def test_in_optax_they_do_not(name):
    """If this fails, Optax has changed: remove the row in `from-optax.md`."""
    assert _apart(optax, name) > 1e-3


@pytest.mark.parametrize("name, field", [("momo", "gamma"), ("mechanize", "s")])
def test_in_optax_it_is_complex(name, field):
    # Optax clips a complex number, which XLA's older emitters cannot (see conftest.py).
    option = "xla_cpu_use_fusion_emitters"
    options = {option: True} if option in os.environ["XLA_FLAGS"] else {}
    jit = functools.partial(jax.jit, compiler_options=options)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        _, state = _run(optax, name, 1, jit)
    found = optax.tree.get(state, field)
    assert jnp.iscomplexobj(found) and found.imag.any()
