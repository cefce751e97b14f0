"""One run: a problem and an optimizer, as functions of a learning rate and a seed."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

import steepest
from steepest import contrib, decoupled

from ._problem import Problem
from .entrants import Entrant

_EVALUATION = 1 << 30  # no run has as many steps: this batch is not trained on


class Run(NamedTuple):
    """What a run goes on with."""

    params: Any
    state: Any


class Model:
    """The runs of one optimizer on one problem.

    Args:
        problem: what to train.
        entrant: what to train it with.
    """

    def __init__(self, problem: Problem, entrant: Entrant) -> None:
        self.problem, self.entrant = problem, entrant

    def start(self, rate: ArrayLike, seed: ArrayLike) -> Run:
        """The first step's params, and the optimizer's state.

        Args:
            rate: the learning rate.
            seed: what the params are drawn from.
        """
        params = self.problem.init(_keys(seed)[0])
        tx = self.entrant.make(rate)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # lookahead's, of params that are alone
            state = tx.init(params)
        if _find(state, steepest.LookaheadState) is None:
            return Run(params, state)
        params = steepest.LookaheadParams.init_synced(params)
        return Run(params, tx.init(params))

    def step(
        self, rate: ArrayLike, seed: ArrayLike, t: ArrayLike, run: Run, data: Any
    ) -> tuple[Run, Any]:
        """One step, and the loss before it.

        Args:
            rate: the learning rate.
            seed: what the batches are drawn from.
            t: how many steps were taken before.
            run: what they left.
            data: the problem's.
        """
        batch = self._batch(seed, t, data)
        tx, problem = self.entrant.make(rate), self.problem
        if problem.adjust is None:
            again = problem.steady or None  # what a line search knows, it keeps
            train = steepest.make_train_step(problem.loss, tx, same_loss=again)
            params, state, value = train(*run, batch)
        else:
            params, state = run
            at = steepest.LookaheadParams.fast_of(params)
            value, adjustments = problem.loss(at, batch), problem.adjust(at, batch)
            state, params = decoupled.of(tx).step(state, params, adjustments)
        return Run(params, state), _number(value)

    def metric(self, seed: ArrayLike, run: Run, data: Any) -> Any:
        """What the race is decided by, where the optimizer says it is to be measured.

        Args:
            seed: what the run's batches are drawn from.
            run: what the steps left.
            data: the problem's.
        """
        params = _evaluated(run)
        if self.problem.metric is not None:
            return _number(self.problem.metric(params, data))
        return _number(self.problem.loss(params, self._batch(seed, _EVALUATION, data)))

    def _batch(self, seed: ArrayLike, t: ArrayLike, data: Any) -> Any:
        return self.problem.batches(jax.random.fold_in(_keys(seed)[1], t), data)


def _keys(seed: ArrayLike) -> Any:
    """One key for the params, and one for the batches."""
    return jax.random.split(jax.random.key(seed))


def _number(x: Any) -> Any:
    """One number, in the widest dtype that is switched on."""
    return jnp.asarray(x).astype(jnp.result_type(float))


def _evaluated(run: Run) -> Any:
    """The slow params of lookahead, the averaged ones of a schedule-free optimizer."""
    params, state = run
    if isinstance(params, steepest.LookaheadParams):
        return params.slow
    free = _find(state, contrib.ScheduleFreeState)
    return params if free is None else contrib.schedule_free_eval_params(free, params)


def _find(state: Any, kind: type) -> Any:
    """The first state of a kind in a tree of states, or `None`."""
    is_kind: Callable[[Any], bool] = lambda x: isinstance(x, kind)
    leaves = jax.tree.leaves(state, is_leaf=is_kind)
    return next(filter(is_kind, leaves), None)
