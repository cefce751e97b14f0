"""A bad call and its error message."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp


@dataclass(frozen=True)
class Bad:
    """`call()` raises a `kind` with message `says`.

    If `says` has several parts, the message contains them in this order.
    """

    call: Callable[[], Any]
    kind: type[Exception]
    says: str | tuple[str, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.says,) if isinstance(self.says, str) else self.says


def params() -> Any:
    """A small tree for bad calls."""
    return {"w": jnp.ones((3, 2)), "b": jnp.zeros(2)}
