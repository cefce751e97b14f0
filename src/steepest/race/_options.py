"""Options of the functions that make problems of models and data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

Metric = Callable[..., Any] | Literal["accuracy"] | None
BUFFER = 1 << 31  # bytes: the default size of the buffer for a loader


class Options(TypedDict, total=False):
    """Fields of a `Problem` that are passed on."""

    name: str
    about: str
    measure: str
    better: Literal["lower", "higher"]
    target: float | None
    steps: int
    seeds: int
    optimizers: Sequence[str]
    learning_rates: Sequence[float]


@dataclass(frozen=True)
class DataOptions:
    """What the makers of problems know about data and metric.

    Attributes:
        data, validation, metric, batch_size, eval_batch_size, buffer_bytes: as for
            `Problem.from_nnx`.
    """

    data: Any
    validation: Any
    metric: Metric
    batch_size: int
    eval_batch_size: int | None
    buffer_bytes: int
