"""What is known about a wrapper of a transformation."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...core import AnyTransformation, OptState, Params, Updates


class WrapperInfo(NamedTuple):
    """Information about a wrapper, for `describe` and `read`."""

    name: str
    tx: AnyTransformation  # the wrapped transformation
    at: str  # the field of the wrapper's state with the state of `tx`; "" if it is it
    # The params -> the shapes that `tx` sees, if they are not those of the params.
    seen: Callable[[Params], Params] | None = None
    # The params -> what else `describe` shows.
    notes: Callable[[Params], Sequence[str]] | None = None
    # The shapes of a state, with shardings -> the same in the memory where the wrapper
    # keeps it, if it moves arrays between memories.
    memory: Callable[[OptState], OptState] | None = None
    # (updates, state, params, extra arguments) -> (updates, state), for `make_step`: a
    # leaf of the updates may be `Landed`, a new param.
    advance: Callable[..., tuple[Updates, OptState]] | None = None

    def inner(self, state: OptState) -> OptState:
        """The state of `tx`, from the state of the wrapper."""
        return getattr(state, self.at) if self.at else state
