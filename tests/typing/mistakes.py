"""A user's script with seven mistakes that a type checker should find, and no others.

Each is on the line that ends with `# mistake`. `make typing` prints who finds which.
"""

import jax
import jax.numpy as jnp

import steepest as lib

params = {"w": jnp.ones(3)}


def misspelt_keyword() -> lib.GradientTransformation:
    """A keyword that does not exist."""
    return lib.adamw(1e-3, weight_deacy=1e-4)  # mistake


def string_as_learning_rate() -> lib.GradientTransformation:
    """A number from the command line that was not converted."""
    return lib.adam("1e-3")  # mistake


def init_without_params() -> object:
    """`init` needs the params."""
    tx = lib.adam(1e-3)
    return tx.init()  # mistake


def update_without_state() -> object:
    """`update` needs the state."""
    tx = lib.sgd(1e-3)
    return tx.update(params)  # mistake


def apply_without_params() -> object:
    """`apply_updates` needs the params and the updates."""
    tx = lib.sgd(1e-3)
    updates, _ = tx.update(params, tx.init(params), params)
    return lib.apply_updates(updates)  # mistake


def schedule_in_a_chain() -> lib.GradientTransformation:
    """A schedule is not a transformation."""
    schedule = lib.cosine_decay_schedule(1e-3, 100)
    return lib.chain(lib.scale_by_adam(), schedule)  # mistake


def pair_as_updates() -> jax.Array:
    """`update` returns the updates and the state."""
    tx = lib.sgd(1e-3)
    updates = tx.update(params, tx.init(params), params)
    return params["w"] + updates["w"]  # mistake
