"""Gradient noise.

Neelakantan et al., Adding gradient noise improves learning for very deep networks,
2015, arXiv:1511.06807
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from ..core import (
    amount,
    GradientTransformationExtraArgs,
    like_optax,
    Params,
    Real,
    real,
    Rule,
    state_of,
    transformation,
    Updates,
)
from ..engine import Leaves, lift, update_dtype
from ..numerics import increment, key_from, zero_count
from ..tree import random_like


@like_optax
class AddNoiseState(NamedTuple):
    """What the noise remembers, for the tree."""

    count: Int[Array, ""]  # t, the steps taken
    rng_key: Array  # the key of the next step


class _Noise(NamedTuple):
    """The noise of one step: its size for the tree, its numbers for each leaf."""

    sigma: Array
    noise: Updates


@transformation
def add_noise(
    eta: Real, gamma: Real, key: Any = None, *, seed: int | None = None
) -> GradientTransformationExtraArgs:
    """Add normal noise that fades.

        u = g + sigma z          sigma^2 = eta / t^gamma,  z normal, another each step

    Inside `jax.shard_map` all devices draw the same noise for their parts: leave
    the mesh axes that split the params to `jit`.

    Args:
        eta: the variance of the noise in the first step.
        gamma: how fast it fades; 0 for never.
        key: a key of `jax.random`, or an integer to make one of.
        seed: the same as an integer `key`; deprecated, as in Optax.

    >>> import steepest
    >>> tx = steepest.add_noise(eta=0.01, gamma=0.55, key=0)
    >>> g = jnp.zeros(1000)
    >>> u, state = tx.update(g, tx.init(g))
    >>> round(float(jnp.std(u)), 1)
    0.1
    """
    (eta,) = amount.must("add_noise", eta=eta)
    (gamma,) = real("add_noise", gamma=gamma)
    first = key_from("add_noise", key, seed)

    def leaf(n: Any, g: Array, p: Array | None, z: Array) -> tuple[Array, Array]:
        return g + n.sigma * z, z

    # The rule adds what it is told to remember: dtypes and `None` are the engine's.
    adding = lift(
        Rule(
            "add_noise",
            _Noise,
            leaf,
            remember={"noise": jnp.zeros_like},
            shared={"sigma": lambda: jnp.zeros(())},
            prepare=lambda step, sigma: ({"sigma": sigma}, sigma),
        )
    )

    def init(params: Params) -> AddNoiseState:
        del params
        # A copy: whoever donates the state must be able to begin again.
        return AddNoiseState(zero_count(), jnp.copy(first))

    def update(
        updates: Updates,
        state: AddNoiseState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, AddNoiseState]:
        state = state_of("add_noise", AddNoiseState, state)
        leaves = Leaves(updates)
        leaves.check("add_noise")
        # The noise of an integer is real, as its update is.
        real = lambda g: g.astype(update_dtype(g, None))
        t = increment(jnp.asarray(state.count))
        key, now = jax.random.split(state.rng_key)
        sigma = jnp.sqrt(eta / t.astype(float) ** gamma)
        noise = _Noise(
            sigma, random_like(now, jax.tree.map(real, leaves.like(leaves.arrays)))
        )
        updates, _ = adding.update(updates, noise, params, **extra_args)
        return updates, AddNoiseState(t, key)

    return GradientTransformationExtraArgs(init, update)
