"""One run: a problem and an optimizer, as functions of a learning rate and a seed."""

import warnings
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

import steepest
from steepest import contrib, decoupled
from steepest.core import Real

from ._calls import batch_of, initial, loss_of, metric_of
from ._problem import Batch, Data, Params, Problem, State
from .entrants import Entrant

T = TypeVar("T")
_EVALUATION = 1 << 30  # step number of the evaluation batch: no run has as many steps
_LOSS = 2  # folded into the key of the seed: the stream of keys for the loss


class Run(NamedTuple):
    """The params, the optimizer's state and the model's state of one run."""

    params: Params
    state: steepest.OptState
    model_state: State = None


class Model:
    """The runs of one optimizer on one problem.

    Args:
        problem: the problem.
        entrant: the optimizer.
    """

    def __init__(self, problem: Problem, entrant: Entrant) -> None:
        self.problem, self.entrant = problem, entrant

    def start(self, rate: Real, seed: ArrayLike) -> Run:
        """The initial params and state.

        Args:
            rate: the learning rate.
            seed: of the params.
        """
        params, model_state = initial(self.problem, _keys(seed)[0])
        tx = self.entrant.make(rate)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # lookahead warns about plain params
            state = tx.init(params)
        if _find(state, steepest.LookaheadState) is None:
            return Run(params, state, model_state)
        params = steepest.LookaheadParams.init_synced(params)
        return Run(params, tx.init(params), model_state)

    def step(
        self, rate: Real, seed: ArrayLike, t: ArrayLike, run: Run, data: Data
    ) -> tuple[Run, Array]:
        """Take one step. Returns the run and the loss before the step.

        Args:
            rate: the learning rate.
            seed: of the batches.
            t: number of steps taken so far.
            run: the run so far.
            data: the problem's.
        """
        batch = self._batch(seed, t, data)
        tx, problem = self.entrant.make(rate), self.problem
        params, state, model_state = run
        if problem.stateful:
            train = steepest.make_train_step(problem.loss, tx, has_aux=True)
            rest = model_state, batch, _loss_key(seed, t)
            params, state, (value, model_state) = train(params, state, *rest)
        elif problem.adjust is None:
            again = problem.steady or None  # lets a line search reuse values
            train = steepest.make_train_step(problem.loss, tx, same_loss=again)
            params, state, value = train(params, state, batch)
        else:
            at = steepest.LookaheadParams.fast_of(params)
            value, adjustments = problem.loss(at, batch), problem.adjust(at, batch)
            state, params = decoupled.of(tx).step(state, params, adjustments)
        return Run(params, state, model_state), _number(value)

    def metric(self, seed: ArrayLike, run: Run, data: Data) -> Array:
        """The metric, at the params that the optimizer evaluates.

        Args:
            seed: of the batches.
            run: the run so far.
            data: the problem's.
        """
        params, state = evaluated(run), run.model_state
        value = metric_of(self.problem, params, state, data)
        if value is None:
            batch, key = (
                self._batch(seed, _EVALUATION, data),
                _loss_key(seed, _EVALUATION),
            )
            value, _ = loss_of(self.problem, params, state, batch, key)
        return _number(value)

    def _batch(self, seed: ArrayLike, t: ArrayLike, data: Data) -> Batch:
        key = jax.random.fold_in(_keys(seed)[1], t)
        return batch_of(self.problem, key, data, t)


def _keys(seed: ArrayLike) -> Array:
    """One key for the params, and one for the batches."""
    return jax.random.split(jax.random.key(seed))


def _loss_key(seed: ArrayLike, t: ArrayLike) -> Array:
    """The key of the loss in one step, the same for every optimizer."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), _LOSS), t)


def _number(x: ArrayLike) -> Array:
    """Cast to the widest floating dtype that is enabled."""
    return jnp.asarray(x).astype(jnp.result_type(float))


def evaluated(run: Run) -> Params:
    """The params to evaluate: slow for lookahead, averaged for schedule-free.

    Args:
        run: the run so far.
    """
    params, state, _ = run
    if isinstance(params, steepest.LookaheadParams):
        return params.slow
    free = _find(state, contrib.ScheduleFreeState)
    return params if free is None else contrib.schedule_free_eval_params(free, params)


def _find(state: steepest.OptState, kind: type[T]) -> T | None:
    """The first state of a kind in a tree of states, or `None`.

    One of Optax counts too: its class has the same name and the same fields.
    """
    like = kind.__name__, getattr(kind, "_fields", None)
    fits = lambda x: (type(x).__name__, getattr(x, "_fields", ())) == like
    ours_or_fits = lambda x: isinstance(x, kind) or fits(x)
    leaves = jax.tree.leaves(state, is_leaf=ours_or_fits)
    found = next(filter(ours_or_fits, leaves), None)
    return found if found is None or isinstance(found, kind) else kind(*found)
