"""Read one number of a running optimizer by name."""

from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from .. import check
from ..core import AnyTransformation, as_inner, OptState
from ..engine import shown
from ..tree import get_all_with_path, names_in
from ._watched import alone, by_name


def read(state: OptState, name: str, tx: AnyTransformation | None = None) -> Any:
    """Find a number by name in a state of any nesting; for several groups, a dict.

    It finds the numbers of `watched` (`"learning_rate"`, `"gradient_norm"`,
    `"update_norm"`) and `inject_hyperparams`, and every field of a state (`"count"`,
    `"mu"`). The state of a plain `adamw(schedule)` holds a count but no learning rate;
    pass the transformation too in that case.

    A scalar is returned as a Python number, ready for a logger, which waits for the
    device. Under `jit` it is an array.

    Args:
        state: the state that `tx.init` or `tx.update` returned.
        name: the name to look for.
        tx: the transformation, which gives the learning rate of the last step.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.chain(steepest.clip(1.0), steepest.adamw(3e-4))
    >>> state = tx.init(jnp.ones(3))
    >>> round(read(state, "learning_rate", tx), 6)
    0.0003
    """
    if not isinstance(name, str):
        raise TypeError(
            f"read: name is a {type(name).__name__}, expected a string. Call "
            '`read(state, "learning_rate")`.'
        )
    known = {}
    if tx is not None:
        known = by_name(shown(as_inner("read", "tx", tx), state))
    if name in known:
        return jax.tree.map(_plain, known[name])  # a number, or one for each group
    rows = get_all_with_path(state, name)
    # Prefer the value of an injected schedule to its state, which has the same name.
    rows = [row for row in rows if not _is_memory(row[0])] or rows
    if not rows:
        names = list(dict.fromkeys([*known, *names_in(state)]))
        advice = "Wrap the optimizer in `steepest.watched`, or pass it as `tx`."
        raise KeyError(
            f"read: the state has no {name!r}, expected one of {names}. "
            + (advice if tx is None else "Wrap the optimizer in `steepest.watched`.")
        )
    groups = {_groups(path): value for path, value in rows}
    if len(groups) < len(rows):  # the groups are not unique, but the whole path is
        groups = {"/".join(map(str, path)): value for path, value in rows}
    return alone({label: _plain(value) for label, value in groups.items()})


def _plain(x: Any) -> object:
    """A concrete scalar as a Python number; everything else unchanged."""
    known = check.is_number(x) and not isinstance(x, Tracer)
    return np.asarray(x).item() if known and np.ndim(x) == 0 else x


def _is_memory(path: tuple[object, ...]) -> bool:
    """Whether this is the path of a schedule's state in `inject_hyperparams`."""
    names = [getattr(step, "name", None) for step in path]
    return "hyperparams_states" in names


def _groups(path: tuple[Any, ...]) -> str:
    """The dictionary keys on the path, which are the labels of the groups."""
    return "/".join(str(step.key) for step in path[:-1] if hasattr(step, "key"))
