"""What a race is about: a model, its data, and how to tell who is ahead."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Params = Any
Data = Any
Batch = Any


def _everything(key: Any, data: Data) -> Batch:
    """The whole data, in every step."""
    del key
    return data


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A model to train, the same for every optimizer.

    All functions are JAX's: pure, and compiled. A key decides everything that is
    random, so that every optimizer begins at the same params and sees the same batches.

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
        init: `init(key) -> params`, the params at the start.
        loss: `loss(params, batch) -> value`, what training makes small: one number.
        batches: `batches(key, data) -> batch`, what one step learns from; it draws from
            `key`. By default every batch is all of `data`, or `None` if there is none.
        metric: `metric(params, data) -> value`, what the race is decided by: one
            number. By default the loss, on a batch that no step sees.
        data: arrays in any pytree, which are placed on the devices once.
        adjust: `adjust(params, batch) -> adjustments`, what to go downhill by, instead
            of the gradient of the loss: a local rule. An optimizer that searches along
            a line cannot be in such a race.
        name: what to call the problem.
        about: one sentence for the reader of the report.
        measure: what to call the metric.
        better: whether a `"lower"` or a `"higher"` metric wins.
        target: a metric worth reaching: the race counts steps and seconds until then.
        steps: how many steps a run has, where nobody says.
        seeds: from how many seeds, where nobody says.
        optimizers: who takes part, where nobody says.
        learning_rates: those tried, where nobody says.
        source: where it was found, as `my_module:problem`; a race that goes on finds it
            there again. It is set when the problem is asked for by name.
    """

    init: Callable[[Any], Params]
    loss: Callable[[Params, Batch], Any]
    batches: Callable[[Any, Data], Batch] = _everything
    metric: Callable[[Params, Data], Any] | None = None
    data: Data = None
    adjust: Callable[[Params, Batch], Params] | None = None
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

    source: str | None = None

    @property
    def steady(self) -> bool:
        """Whether the loss is the same function in every step."""
        return self.batches is _everything
