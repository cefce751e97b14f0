"""Bad calls of the decoupled rules, and of conversions between libraries."""

import jax.numpy as jnp
import optax

import steepest
from steepest import decoupled

from ._bad import Bad

_AMOUNT = "and a number of at least 0, expected below infinity."


def _theta():
    return [jnp.ones((3, 2)), jnp.zeros(2)]


def _swapped(name):
    """In Optax the updates come first and the state second."""
    step = getattr(decoupled, f"{name}_step")
    state = getattr(decoupled, f"{name}_init")(_theta())
    return lambda: step(_theta(), state, _theta())


BAD = {
    "decoupled.adam_init": Bad(
        lambda: decoupled.adam_init(["W1", "W2"]),
        TypeError,
        "adam_init: leaf [0] of the theta is a str, expected an array.",
    ),
    "decoupled.adam_step": Bad(
        _swapped("adam"),
        TypeError,
        "adam_step: opt_params is a list of 2, expected (g1, g2, time_step). Make it "
        "with `adam_init(theta)`, then pass the state that the last step returned.",
    ),
    "decoupled.get_opt_init_fn": Bad(
        lambda: decoupled.get_opt_init_fn("rmsprop"),
        ValueError,
        "get_opt_init_fn: opt is 'rmsprop', expected one of: adam, nag, sgd. Use "
        "`decoupled.of` for any other optimizer.",
    ),
    "decoupled.get_opt_step_fn": Bad(
        lambda: decoupled.get_opt_step_fn("adam", eta=-0.1),
        ValueError,
        "get_opt_step_fn: eta is -0.1, expected a number of at least 0 and below "
        "infinity.",
    ),
    "decoupled.nag_init": Bad(
        lambda: decoupled.nag_init([jnp.ones(2), print]),
        TypeError,
        "nag_init: leaf [1] of the theta is a builtin_function_or_method, expected an "
        "array.",
    ),
    "decoupled.nag_step": Bad(
        lambda: decoupled.nag_step(
            decoupled.nag_init(_theta()), _theta(), _theta()[:1]
        ),
        ValueError,
        "nag_step: leaf [1] is in the theta and not in the updates. Pass trees of one "
        "structure.",
    ),
    "decoupled.of": Bad(
        lambda: decoupled.of(steepest.lion),
        TypeError,
        "decoupled.of: tx is a function, expected a gradient transformation (a pair "
        "of `init` and `update`). Call it first: `lion(...)`.",
    ),
    "decoupled.sgd_init": Bad(
        lambda: decoupled.sgd_init(["W"]),
        TypeError,
        "sgd_init: leaf [0] of the theta is a str, expected an array.",
    ),
    "decoupled.sgd_step": Bad(
        lambda: decoupled.sgd_step(
            decoupled.sgd_init(_theta()), _theta(), [jnp.ones((2, 3)), jnp.zeros(2)]
        ),
        ValueError,
        "sgd_step: leaf [0] has shape (3, 2) in the theta and (2, 3) in the updates. "
        "Pass trees of one structure.",
    ),
    "from_optax": Bad(
        lambda: steepest.from_optax(optax.adam),
        TypeError,
        "from_optax: got a function, expected the state of an optimizer, or a "
        "transformation. Pass the state that `tx.init` or `tx.update` returned, or "
        "`tx` itself.",
    ),
    "install_as_optax": Bad(
        steepest.install_as_optax,
        RuntimeError,
        "install_as_optax: Optax 0.2.8 is already imported, and modules that imported "
        "it would keep it. Call `install_as_optax` first, before importing libraries "
        "that use Optax.",
    ),
    "to_optax": Bad(
        lambda: steepest.to_optax(steepest.nag(0.1).init(_theta())),
        ValueError,
        "to_optax: the state holds a NagState with the fields ('count', 'phi'), but "
        "the other library has no such class. Convert the rest without it, and make "
        "this part with `init`.",
    ),
}

# Functions that accept anything, and why.
TAKES_ANYTHING: dict[str, str] = {}
