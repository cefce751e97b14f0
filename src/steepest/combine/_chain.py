"""Transformations in sequence."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from ..core import (
    AnyTransformation,
    called_by_user,
    GradientTransformationExtraArgs,
    OptState,
    transformation,
)
from ..engine import plan_of, sequence


@transformation
def chain(*args: AnyTransformation) -> GradientTransformationExtraArgs:
    """Apply transformations in order, each to the updates of the previous one.

    Consecutive rules run in one pass over the leaves, including those of nested chains.
    The state is the tuple of their states.

    Args:
        args: one or more transformations. Each receives the extra arguments it takes.

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
    name = called_by_user("chain")

    def apart(state: OptState) -> Sequence[OptState]:
        # Accept lists too: loading a checkpoint may turn tuples into lists.
        if not isinstance(state, tuple | list) or len(state) != len(plans):
            raise _wrong_state(name, state, f"a tuple of {len(plans)} states")
        return state

    return sequence(plans, apart, tuple).pair


@transformation
def named_chain(
    *args: tuple[str, AnyTransformation],
) -> GradientTransformationExtraArgs:
    """`chain` with named transformations: the state is a dict of their states.

    Args:
        args: pairs of a name and a transformation; the names must be distinct.

    >>> import jax.numpy as jnp, steepest
    >>> clip, descend = steepest.clip(1.0), steepest.scale(-0.1)
    >>> tx = steepest.named_chain(("clip", clip), ("descend", descend))
    >>> list(tx.init(jnp.array([5.0])))
    ['clip', 'descend']
    """
    expected = (
        'expected pairs of a name and a transformation, such as `("clip", '
        "clip(1.0))`, with distinct names."
    )
    for i, pair in enumerate(args):
        # A transformation is a pair as well, of two functions.
        if not isinstance(pair, tuple | list) or len(pair) != 2 or callable(pair[0]):
            kind = type(pair).__name__
            raise TypeError(f"named_chain: argument {i} is a {kind}, {expected}")
    names = [name for name, _ in args]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        got = f"the name {twice[0]!r} twice" if twice else "no transformation"
        raise ValueError(f"named_chain: got {got}, {expected}")
    plans = [plan_of("named_chain", repr(name), tx) for name, tx in args]

    def apart(state: OptState) -> Sequence[OptState]:
        if not isinstance(state, Mapping) or set(state) != set(names):
            raise _wrong_state("named_chain", state, f"a dict with the keys {names}")
        return [state[name] for name in names]

    def together(states: list[OptState]) -> OptState:
        return OrderedDict(zip(names, states, strict=True))

    return sequence(plans, apart, together).pair


def _wrong_state(name: str, state: OptState, expected: str) -> ValueError:
    size = f" of {len(state)}" if isinstance(state, tuple | list | Mapping) else ""
    return ValueError(
        f"{name}: the state is a {type(state).__name__}{size}, expected {expected}. "
        "Make the state with this transformation's own `init`."
    )
