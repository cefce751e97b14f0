"""Type aliases that every room uses."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable, TypeAlias

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

Params: TypeAlias = PyTree  # arrays, or their shapes; `None` where there is none
Updates: TypeAlias = PyTree  # like the params
# One leaf of the params, or its shape.
Param: TypeAlias = Array | np.ndarray | np.generic | jax.ShapeDtypeStruct
OptState: TypeAlias = PyTree  # arrays
Real: TypeAlias = int | float | np.number | Array  # a hyperparameter, maybe traced
Schedule: TypeAlias = Callable[[Any], ArrayLike]  # step -> number
ScalarOrSchedule: TypeAlias = Real | Schedule


@runtime_checkable
class StatefulSchedule(Protocol):
    """A schedule with state, which may depend on extra arguments.

    Extra arguments are `Any`: a class may ask for one of a certain type.
    """

    def init(self) -> PyTree:
        """The initial state."""
        ...

    def update(self, state: PyTree, **extra_args: Any) -> PyTree:
        """The state after a step with these extra arguments."""
        ...

    def __call__(self, state: PyTree, **extra_args: Any) -> ArrayLike:
        """The value in this state."""
        ...
