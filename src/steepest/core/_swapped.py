"""The error for an `update` whose arguments are in the wrong order."""

import warnings
from collections.abc import Callable

import jax
from jaxtyping import PyTree


def swapped(
    name: str,
    init: Callable[[PyTree], PyTree],
    updates: PyTree,
    state: PyTree,
    params: PyTree,
) -> TypeError | None:
    """The error for an `update` that got its state in another place, if it did.

    To be called after another error, since it traces `init`.

    Args:
        name: name used in the message.
        init: the `init` of the transformation.
        updates: the first argument.
        state: the second argument.
        params: the third argument.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = jax.tree.structure(jax.eval_shape(init, state))
        found = [jax.tree.structure(x) for x in (updates, state, params)]
    except Exception:  # `state` cannot stand for params
        return None
    if wanted == found[1] or wanted not in found:
        return None
    place = "first" if wanted == found[0] else "third"
    return TypeError(
        f"{name}: `update` got the state as its {place} argument, expected it as the "
        "second: the arguments are swapped. Call `tx.update(grads, state, params)`."
    )
