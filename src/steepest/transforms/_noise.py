"""Gradient noise.

Neelakantan et al., Adding gradient noise improves learning for very deep networks,
2015, arXiv:1511.06807
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Int

from .. import check
from ..core import (
    GradientTransformationExtraArgs,
    like_optax,
    Params,
    Real,
    Rule,
    transformation,
    Updates,
)
from ..engine import Leaves, lift, update_dtype
from ..numerics import increment, key_from, zero_count
from ..tree import random_like


@like_optax
class AddNoiseState(NamedTuple):
    """One count and one random key for the tree."""

    count: Int[Array, ""]  # t, the number of steps taken
    rng_key: Array  # the key of the next step


class _Noise(NamedTuple):
    """The noise of one step, before scaling."""

    z: Updates


def noise_formula(g: Array, z: Array, *, sigma: Array) -> tuple[Array, Array]:
    """`u = g + sigma z`."""
    return g + sigma * z, z


@transformation
def add_noise(
    eta: Real, gamma: Real, key: ArrayLike | None = None, *, seed: int | None = None
) -> GradientTransformationExtraArgs:
    """Add normal noise with decaying variance.

        u = g + sigma z          sigma^2 = eta / t^gamma,  z normal, new at each step

    Inside `jax.shard_map` all devices draw the same noise for their shards. Leave the
    mesh axes that shard the params to `jit`.

    Args:
        eta: the variance of the noise in the first step.
        gamma: how fast the variance decays; 0 for constant variance.
        key: a key of `jax.random`, or an integer seed.
        seed: the same as an integer `key`; deprecated, as in Optax.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.add_noise(eta=0.01, gamma=0.55, key=0)
    >>> g = jnp.zeros(1000)
    >>> u, state = tx.update(g, tx.init(g))
    >>> round(float(jnp.std(u)), 1)
    0.1
    """
    (eta,) = check.amount.must("add_noise", eta=eta)
    (gamma,) = check.real("add_noise", gamma=gamma)
    first = key_from("add_noise", key, seed)

    # The noise is passed as memory, so that the engine handles dtypes and `None`.
    adding = lift(
        Rule(
            "add_noise",
            noise_formula,
            _Noise,
            memory={"z": jnp.zeros_like},
            extra=("sigma",),
        )
    )

    def init(params: Params) -> AddNoiseState:
        del params
        # A copy, so that `init` can be called again after the state was donated.
        return AddNoiseState(zero_count(), jnp.copy(first))

    def update(
        updates: Updates,
        state: AddNoiseState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, AddNoiseState]:
        del extra_args
        state = check.state_of("add_noise", AddNoiseState, state)
        leaves = Leaves(updates)
        leaves.check("add_noise")
        # Integer leaves get real noise, since their updates are real too.
        real = lambda g: g.astype(update_dtype(g, None))
        t = increment(jnp.asarray(state.count))
        key, now = jax.random.split(state.rng_key)
        sigma = jnp.sqrt(eta / t.astype(float) ** gamma)
        z = random_like(now, jax.tree.map(real, leaves.like(leaves.arrays)))
        updates, _ = adding.update(updates, _Noise(z), params, sigma=sigma)
        return updates, AddNoiseState(t, key)

    return GradientTransformationExtraArgs(init, update)
