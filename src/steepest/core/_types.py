"""Type aliases that every room uses."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable, TypeAlias

import jax
import numpy as np
from jaxtyping import Array, PyTree

Params: TypeAlias = PyTree  # arrays, or their shapes; `None` where there is none
Updates: TypeAlias = PyTree  # like the params
# One leaf of the params, or its shape.
Param: TypeAlias = Array | np.ndarray | np.generic | jax.ShapeDtypeStruct
OptState: TypeAlias = Any  # a pytree of arrays
Real: TypeAlias = int | float | np.number | Array  # a hyperparameter, maybe traced
Schedule: TypeAlias = Callable[[Any], Any]  # step -> number
ScalarOrSchedule: TypeAlias = Real | Schedule


@runtime_checkable
class StatefulSchedule(Protocol):
    """A schedule with state, which may depend on extra arguments."""

    def init(self) -> Any:
        """The initial state."""
        ...

    def update(self, state: Any, **extra_args: Any) -> Any:
        """The state after a step with these extra arguments."""
        ...

    def __call__(self, state: Any, **extra_args: Any) -> Any:
        """The value in this state."""
        ...
