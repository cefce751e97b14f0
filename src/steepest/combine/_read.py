"""One number of a running optimizer, found by its name."""

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
    """The number of that name, in a state of any nesting; of several groups, a dict.

    It finds what `watched` keeps (`"learning_rate"`, `"gradient_norm"`,
    `"update_norm"`), the numbers of `inject_hyperparams`, and every field of a state
    (`"count"`, `"mu"`). The state of a plain `adamw(schedule)` has no learning rate,
    only a count: there, pass the transformation too.

    A single number is a Python number, which any logger takes; getting it waits for the
    device. Under `jit` it is an array.

    Args:
        state: what `tx.init` or `tx.update` returned.
        name: what to look for.
        tx: the transformation; it knows the learning rate of the last step.

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
    found = get_all_with_path(state, name)
    # Of an injected schedule the number, and not its memory of the same name.
    found = [row for row in found if not _is_memory(row[0])] or found
    if not found:
        there = list(dict.fromkeys([*known, *names_in(state)]))
        advice = "Wrap the optimizer in `steepest.watched`, or pass it as `tx`."
        raise KeyError(
            f"read: nothing is called {name!r} in the state. There are {there}. "
            + (advice if tx is None else "Wrap the optimizer in `steepest.watched`.")
        )
    groups = {_groups(path): value for path, value in found}
    if len(groups) < len(found):  # groups do not tell them apart: the whole path does
        groups = {"/".join(map(str, path)): value for path, value in found}
    return alone({label: _plain(value) for label, value in groups.items()})


def _plain(x: Any) -> Any:
    """A single number as Python's; all else, and what is traced, as it is."""
    known = check.is_number(x) and not isinstance(x, Tracer)
    return np.asarray(x).item() if known and np.ndim(x) == 0 else x


def _is_memory(path: tuple[Any, ...]) -> bool:
    """Whether it is what a schedule of `inject_hyperparams` remembers."""
    names = [getattr(step, "name", None) for step in path]
    return "hyperparams_states" in names


def _groups(path: tuple[Any, ...]) -> str:
    """The keys of the dictionaries on the way: the labels of groups."""
    return "/".join(str(step.key) for step in path[:-1] if hasattr(step, "key"))
