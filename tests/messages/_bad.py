"""A bad call and what it is answered."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp


@dataclass(frozen=True)
class Bad:
    """`call()` raises a `kind` whose words are `says`, or begin and go on so.

    Where `says` has several parts, the message has them in this order.
    """

    call: Callable[[], Any]
    kind: type[Exception]
    says: str | tuple[str, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.says,) if isinstance(self.says, str) else self.says


def params() -> Any:
    """A small tree to call badly with."""
    return {"w": jnp.ones((3, 2)), "b": jnp.zeros(2)}
