"""A problem to race on: a model, its data and its metric."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

Params = PyTree
State = PyTree
Data = PyTree
Batch = PyTree


def _everything(key: Array, data: Data) -> Batch:
    """Use all of the data in every step."""
    del key
    return data


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A model to train, the same for every optimizer.

    All functions must be pure: they are compiled. All randomness comes from the key, so
    every optimizer starts from the same params and sees the same batches.

        problem = Problem(
            init=lambda key: {"w": jax.random.normal(key, (64, 10)) / 8},
            loss=lambda params, batch: cross_entropy(params, *batch),
            batches=lambda key, data: take(data, jax.random.randint(key, (32,), 0, n)),
            metric=lambda params, data: accuracy(params, data["test"]),
            data={"train": ..., "test": ...},
            measure="accuracy",
            better="higher",
        )

    and then `steepest race my_module:problem`.

    Attributes:
        init: `init(key) -> params`, the initial params.
        loss: `loss(params, batch) -> value`, the number that training minimises.
        batches: `batches(key, data) -> batch`, the random batch of one step, or
            `batches(key, data, step)`, with the number of steps taken before. By
            default every batch is all of `data`, or `None` without data.
        metric: `metric(params, data) -> value`, the number that decides the race. By
            default the loss on a batch that no step trains on.
        data: any pytree of arrays, placed on the devices once.
        adjust: `adjust(params, batch) -> adjustments`, used in place of the gradient of
            the loss: a local learning rule. Optimizers with a line search cannot race
            on such a problem.
        stateful: whether the model has state that changes in training but is not
            optimized, such as the statistics of batch normalisation, or needs random
            keys, as dropout does. Then the functions are `init(key) -> (params,
            state)`, `loss(params, state, batch, key) -> (value, state)` and
            `metric(params, state, data)`. The state is any pytree of arrays, with the
            same shapes and dtypes after every step.
        name: the name of the problem.
        about: one sentence for the report.
        measure: the name of the metric.
        better: whether a `"lower"` or a `"higher"` metric wins.
        target: a value of the metric; the race counts steps and seconds to reach it.
        steps: default number of steps per run.
        seeds: default number of seeds.
        optimizers: default optimizers.
        learning_rates: default learning rates.
        cycle: number of steps after which the batches repeat, if they do. A race with
            more steps notes it.
        remarks: what the reader of the results must know, as sentences.
        source: where the problem was loaded from, such as `my_module:problem`; a
            resumed race loads it from there. Set when it is loaded by name.
    """

    init: Callable[[Array], Any]
    loss: Callable[..., Any]
    batches: Callable[..., Batch] = _everything
    metric: Callable[..., ArrayLike] | None = None
    data: Data = None
    adjust: Callable[[Params, Batch], Params] | None = None
    stateful: bool = False
    name: str = "problem"
    about: str = ""
    measure: str = "loss"
    better: Literal["lower", "higher"] = "lower"
    target: float | None = None
    steps: int = 1000
    seeds: int = 3
    optimizers: Sequence[str] = (
        "sgd",
        "sgd(momentum=0.9)",
        "adam",
        "adamw",
        "lion",
        "muon",
        "lookahead(adamw)",
        "schedule_free_adamw",
    )
    learning_rates: Sequence[float] = (
        6e-5,
        2.5e-4,
        1e-3,
        4e-3,
        1.6e-2,
        6e-2,
        0.25,
        1.0,
    )
    cycle: int | None = None
    remarks: Sequence[str] = ()
    source: str | None = None

    @property
    def steady(self) -> bool:
        """Whether the loss is the same function in every step."""
        return self.batches is _everything and not self.stateful
