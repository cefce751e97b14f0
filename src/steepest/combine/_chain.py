"""Transformations one after the other."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from ..core import (
    AnyTransformation,
    GradientTransformationExtraArgs,
    OptState,
    transformation,
)
from ..engine import plan_of, sequence


@transformation
def chain(*args: AnyTransformation) -> GradientTransformationExtraArgs:
    """Apply transformations from left to right, each to what the last one returned.

    Neighbours that are rules run in one pass over the leaves, also those of chains
    inside this one. The state is the tuple of their states.

    Args:
        args: one transformation or more. Extra arguments reach all that take them.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.chain(steepest.clip(1.0), steepest.scale(-0.1))
    >>> updates, state = tx.update(jnp.array([5.0]), tx.init(jnp.array([5.0])))
    >>> round(float(updates[0]), 3)
    -0.1
    """
    if not args:
        raise ValueError(
            "chain: got no transformation, expected at least one. Use `identity()` "
            "for a transformation that does nothing."
        )
    plans = [plan_of("chain", f"argument {i}", tx) for i, tx in enumerate(args)]

    def apart(state: OptState) -> Sequence[OptState]:
        # A list too: what loads a checkpoint may turn tuples into lists.
        if not isinstance(state, tuple | list) or len(state) != len(plans):
            raise _wrong_state("chain", state, f"a tuple of {len(plans)} states")
        return state

    return sequence(plans, apart, tuple).pair


@transformation
def named_chain(
    *args: tuple[str, AnyTransformation],
) -> GradientTransformationExtraArgs:
    """`chain`, with a name for each link: the state is a dict of their states.

    Args:
        args: pairs of a name and a transformation; no name twice.

    >>> import jax.numpy as jnp, steepest
    >>> clip, descend = steepest.clip(1.0), steepest.scale(-0.1)
    >>> tx = steepest.named_chain(("clip", clip), ("descend", descend))
    >>> list(tx.init(jnp.array([5.0])))
    ['clip', 'descend']
    """
    wanted = (
        'expected pairs of a name and a transformation, such as `("clip", '
        "clip(1.0))`, no name twice."
    )
    for i, pair in enumerate(args):
        # A transformation is a pair too, of two functions.
        if not isinstance(pair, tuple | list) or len(pair) != 2 or callable(pair[0]):
            found = type(pair).__name__
            raise TypeError(f"named_chain: argument {i} is a {found}, {wanted}")
    names = [name for name, _ in args]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        found = f"the name {twice[0]!r} twice" if twice else "no transformation"
        raise ValueError(f"named_chain: got {found}, {wanted}")
    plans = [plan_of("named_chain", repr(name), tx) for name, tx in args]

    def apart(state: OptState) -> Sequence[OptState]:
        if not isinstance(state, Mapping) or set(state) != set(names):
            raise _wrong_state("named_chain", state, f"a dict with the keys {names}")
        return [state[name] for name in names]

    def together(states: list[OptState]) -> OptState:
        return OrderedDict(zip(names, states, strict=True))

    return sequence(plans, apart, together).pair


def _wrong_state(name: str, state: OptState, wanted: str) -> ValueError:
    size = f" of {len(state)}" if isinstance(state, tuple | list | Mapping) else ""
    return ValueError(
        f"{name}: the state is a {type(state).__name__}{size}, expected {wanted}. Make "
        "the state with this transformation's own `init`."
    )
