"""A problem to race on: a model, its data and its metric."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Unpack

import jax
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from ._arguments import check_arguments
from ._options import BUFFER, DataOptions, Metric, Options
from ._visible import visible

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

    def __new__(cls, *args: object, **options: object) -> "Problem":
        """An error for a misspelled field says which it may be."""
        known = [field.name for field in fields(cls)]
        check_arguments(cls.__name__, options, known)
        return super().__new__(cls)

    def __repr__(self) -> str:
        arrays = [x for x in jax.tree.leaves(self.data) if hasattr(x, "nbytes")]
        megabytes = sum(x.nbytes for x in arrays) / 1e6
        told = f"measure: {self.measure}, better: {self.better}, target: {self.target}"
        told += f", data: {len(arrays)} arrays of {megabytes:.3g} MB"
        told += f", steps: {self.steps}, seeds: {self.seeds}"
        return visible(f"<Problem {self.name}, {told}>")

    @property
    def steady(self) -> bool:
        """Whether the loss is the same function in every step."""
        return self.batches is _everything and not self.stateful

    @staticmethod
    def from_functions(
        init: Callable[[Array], Any],
        loss: Callable[..., Any],
        data: Any,
        *,
        metric: Metric = None,
        validation: Any = None,
        batch_size: int = 32,
        eval_batch_size: int | None = None,
        buffer_bytes: int = BUFFER,
        stateful: bool = False,
        **options: Unpack[Options],
    ) -> "Problem":
        """A problem made of plain functions, with a data set or a loader.

        Args:
            init: `init(key) -> params`; with `stateful`, `(params, state)`.
            loss: `loss(params, batch) -> value`, or `(value, logits)`; with `stateful`,
                `loss(params, state, batch) -> (value, state)`, or `(value, state,
                logits)`. A loss with an argument named `key` gets a random
                key, and one named `train` whether this is training.
            data: the training data: a dict or tuple of arrays with one row for each
                example, a loader (any iterable of batches), or a function that returns
                a loader. NumPy and JAX arrays, torch tensors and Hugging Face datasets
                are accepted. A loader is read ahead of the race, one batch for each
                step; all runs see the same batches in the same order, and a shorter
                loader starts again.
            metric: what decides the race, on the validation set. By default the loss,
                in evaluation mode; `"accuracy"` if the loss also returns the logits; or
                a function like the loss, with `better="higher"` or `"lower"`. It must
                be a mean over the rows.
            validation: data that is not trained on, of the same kinds as `data`; or the
                fraction of `data` to hold out. By default a tenth is held out, but at
                most 1000 rows.
            batch_size: rows of a batch, drawn at random from arrays; at least as many
                as there are rows means all of them. A loader has its own batch size.
            eval_batch_size: rows of a batch in evaluation; by default as in training.
            buffer_bytes: most bytes to read from a loader. If they do not suffice for
                all steps, the batches repeat, with a remark in the results.
            stateful: whether the model has state that changes in training but is not
                optimized, such as the statistics of batch normalisation.
            options: other fields of a `Problem`: `steps`, `seeds`, `name`, `target`...
        """
        from ._models import functions_problem

        how = DataOptions(
            data, validation, metric, batch_size, eval_batch_size, buffer_bytes
        )
        return functions_problem(init, loss, how, stateful, options)

    @staticmethod
    def from_nnx(
        model: Any,
        loss: Callable[..., Any],
        data: Any,
        *,
        metric: Metric = None,
        validation: Any = None,
        batch_size: int = 32,
        eval_batch_size: int | None = None,
        buffer_bytes: int = BUFFER,
        wrt: Any = None,
        **options: Unpack[Options],
    ) -> "Problem":
        """A problem made of a Flax NNX module.

        All variables but the params, such as the statistics of `nnx.BatchNorm` and the
        keys of `nnx.Dropout`, are model state: they change from step to step and are
        not optimized. The module is in training mode in the loss, and in evaluation
        mode in the metric.

        Args:
            model: makes the module from `nnx.Rngs`: a class, or a function such as
                `lambda rngs: MLP(4, 2, rngs=rngs)`. A module is accepted, too; then all
                seeds start from its params.
            loss: `loss(model, batch) -> value`, or `(value, logits)`. A loss with
                an argument named `key` gets a random key, and one named `train` whether
                this is training.
            data: the training data: a dict or tuple of arrays with one row for each
                example, a loader (any iterable of batches), or a function that returns
                a loader. NumPy and JAX arrays, torch tensors and Hugging Face datasets
                are accepted. A loader is read ahead of the race, one batch for each
                step; all runs see the same batches in the same order, and a shorter
                loader starts again.
            metric: what decides the race, on the validation set. By default the loss,
                in evaluation mode; `"accuracy"` if the loss also returns the logits; or
                a function like the loss, with `better="higher"` or `"lower"`. It must
                be a mean over the rows.
            validation: data that is not trained on, of the same kinds as `data`; or the
                fraction of `data` to hold out. By default a tenth is held out, but at
                most 1000 rows.
            batch_size: rows of a batch, drawn at random from arrays; at least as many
                as there are rows means all of them. A loader has its own batch size.
            eval_batch_size: rows of a batch in evaluation; by default as in training.
            buffer_bytes: most bytes to read from a loader. If they do not suffice for
                all steps, the batches repeat, with a remark in the results.
            wrt: the variables to optimize, as for `nnx.Optimizer`; by default
                `nnx.Param`.
            options: other fields of a `Problem`: `steps`, `seeds`, `name`, `target`...
        """
        from ._models import nnx_problem

        how = DataOptions(
            data, validation, metric, batch_size, eval_batch_size, buffer_bytes
        )
        return nnx_problem(model, loss, how, wrt, options)

    @staticmethod
    def from_linen(
        module: Any,
        loss: Callable[..., Any],
        data: Any,
        *,
        metric: Metric = None,
        validation: Any = None,
        batch_size: int = 32,
        eval_batch_size: int | None = None,
        buffer_bytes: int = BUFFER,
        init: Callable[[Array], PyTree] | None = None,
        rngs: Sequence[str] = ("dropout",),
        **options: Unpack[Options],
    ) -> "Problem":
        """A problem made of a Flax linen module.

        The loss gets the module with its variables, as a function: `model(x, ...)` is
        `module.apply(variables, x, ..., rngs=..., mutable=...)`. All collections but
        `"params"`, such as `"batch_stats"`, are model state: they change in training
        and are not optimized.

        Args:
            module: the module.
            loss: `loss(model, batch) -> value`, or `(value, logits)`. A loss with
                an argument named `key` gets a random key, and one named `train` whether
                this is training. Pass it on to a module with two modes: `model(x,
                train=train)`.
            data: the training data: a dict or tuple of arrays with one row for each
                example, a loader (any iterable of batches), or a function that returns
                a loader. NumPy and JAX arrays, torch tensors and Hugging Face datasets
                are accepted. A loader is read ahead of the race, one batch for each
                step; all runs see the same batches in the same order, and a shorter
                loader starts again.
            metric: what decides the race, on the validation set. By default the loss,
                in evaluation mode; `"accuracy"` if the loss also returns the logits; or
                a function like the loss, with `better="higher"` or `"lower"`. It must
                be a mean over the rows.
            validation: data that is not trained on, of the same kinds as `data`; or the
                fraction of `data` to hold out. By default a tenth is held out, but at
                most 1000 rows.
            batch_size: rows of a batch, drawn at random from arrays; at least as many
                as there are rows means all of them. A loader has its own batch size.
            eval_batch_size: rows of a batch in evaluation; by default as in training.
            buffer_bytes: most bytes to read from a loader. If they do not suffice for
                all steps, the batches repeat, with a remark in the results.
            init: `init(key) -> variables`, such as `lambda key: module.init(key, x)`.
                By default, the first call of the model in the loss initialises it.
            rngs: the streams of random keys that the module uses, besides `"params"`.
            options: other fields of a `Problem`: `steps`, `seeds`, `name`, `target`...
        """
        from ._models import linen_problem

        how = DataOptions(
            data, validation, metric, batch_size, eval_batch_size, buffer_bytes
        )
        return linen_problem(module, loss, how, init, rngs, options)

    @staticmethod
    def from_equinox(
        model: Any,
        loss: Callable[..., Any],
        data: Any,
        *,
        metric: Metric = None,
        validation: Any = None,
        batch_size: int = 32,
        eval_batch_size: int | None = None,
        buffer_bytes: int = BUFFER,
        wrt: Any = None,
        **options: Unpack[Options],
    ) -> "Problem":
        """A problem made of an Equinox module.

        Arrays that are not optimized, and the `eqx.nn.State` of layers such as
        `eqx.nn.BatchNorm`, are model state. The metric is computed in inference mode.

        Args:
            model: makes the module from a key: a class, or a function such as `lambda
                key: MLP(4, 2, key=key)`. It may also make a pair `(model, state)`, as
                `eqx.nn.make_with_state` does. A module or a pair is accepted, too;
                then all seeds start from its params.
            loss: `loss(model, batch) -> value`, or `(value, logits)`; if the model has
                state, `loss(model, state, batch) -> (value, state)`, or `(value, state,
                logits)`. A loss with an argument named `key` gets a random
                key, and one named `train` whether this is training.
            data: the training data: a dict or tuple of arrays with one row for each
                example, a loader (any iterable of batches), or a function that returns
                a loader. NumPy and JAX arrays, torch tensors and Hugging Face datasets
                are accepted. A loader is read ahead of the race, one batch for each
                step; all runs see the same batches in the same order, and a shorter
                loader starts again.
            metric: what decides the race, on the validation set. By default the loss,
                in evaluation mode; `"accuracy"` if the loss also returns the logits; or
                a function like the loss, with `better="higher"` or `"lower"`. It must
                be a mean over the rows.
            validation: data that is not trained on, of the same kinds as `data`; or the
                fraction of `data` to hold out. By default a tenth is held out, but at
                most 1000 rows.
            batch_size: rows of a batch, drawn at random from arrays; at least as many
                as there are rows means all of them. A loader has its own batch size.
            eval_batch_size: rows of a batch in evaluation; by default as in training.
            buffer_bytes: most bytes to read from a loader. If they do not suffice for
                all steps, the batches repeat, with a remark in the results.
            wrt: the arrays to optimize, as for `eqx.partition`; by default
                `eqx.is_inexact_array`.
            options: other fields of a `Problem`: `steps`, `seeds`, `name`, `target`...
        """
        from ._models import equinox_problem

        how = DataOptions(
            data, validation, metric, batch_size, eval_batch_size, buffer_bytes
        )
        return equinox_problem(model, loss, how, wrt, options)
