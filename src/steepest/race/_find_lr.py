"""Find a learning rate in one short run.

Smith, Cyclical learning rates for training neural networks, 2015, arXiv:1506.01186

The learning rate grows exponentially from step to step. At first the loss hardly
changes; then it falls; in the end it diverges.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ._arguments import names_its_arguments
from ._calls import batch_of, initial
from ._check import checked
from ._model import Model, Run
from ._problem import Data, Params, Problem
from ._purity import randomness
from ._settings import settings_of
from .entrants import entrant
from .problems import load

_STEPS = 1000  # at most, unless told otherwise
_FEWEST = 10  # a curve of fewer points has no slope
_WINDOW = 0.05  # of all steps: the width of the smoothing window
_LOST = 0.5  # of the improvement: a loss that has risen by this much diverges
_RISEN = 0.05  # of that rise: up to here the loss counts as flat
_NOISE = 8.0  # standard deviations of a median: smaller changes are noise
_PERTURBED = 1e-3  # of the initial params: the noise added where there is none
_ROUNDING = 1e-5  # of the loss: smaller changes are rounding errors


@dataclass(frozen=True)
class RangeTest:
    """The result of a learning-rate range test.

    Attributes:
        problem: its name.
        optimizer: as written by the user.
        rates: (steps,), the learning rate of every step.
        losses: (seeds, steps), the loss before every step; NaN or infinite where a run
            broke down.
        smooth: (steps,), the smoothed mean over the seeds; NaN after it has diverged.
        suggested: the rate where the smoothed loss falls fastest per factor of the
            learning rate; `None` if it does not fall, or not clearly.
        diverges: the rate where the loss begins to rise for good; `None` if it does not
            rise in this range.
    """

    problem: str
    optimizer: str
    rates: np.ndarray
    losses: np.ndarray
    smooth: np.ndarray
    suggested: float | None
    diverges: float | None

    @property
    def fall(self) -> float:
        """How far the smoothed loss falls; 0 if that may be a rounding error."""
        fall = float(self.smooth[0] - np.nanmin(self.smooth))
        return fall if fall > _ROUNDING * abs(self.smooth[0]) else 0.0


@names_its_arguments
def find_lr(
    problem: Problem | str,
    optimizer: str = "adamw",
    *,
    lowest: float = 1e-6,
    highest: float = 10.0,
    steps: int | None = None,
    seeds: int | Sequence[int] | None = None,
) -> RangeTest:
    """Find a learning rate in one short run: a learning-rate range test.

    The learning rate grows exponentially from `lowest` to `highest`. All seeds run at
    once, in one compiled program.

    The test is cheap and rough. `race` compares learning rates by whole runs.

    Args:
        problem: a `Problem`, or the name of one: `digits`, `my_module:problem`.
        optimizer: an optimizer without a learning rate, such as `adamw`,
            `sgd(momentum=0.9)` or `chain(clip_by_global_norm(1.0), adamw)`.
        lowest: the learning rate of the first step.
        highest: the learning rate of the last step.
        steps: number of steps; by default the problem's, but at most 1000. The more
            steps, the more exact the rate where the loss diverges.
        seeds: the number of seeds, or a list of them; by default the problem's.
    """
    known = checked(load(problem) if isinstance(problem, str) else problem)
    arguments = {
        "optimizers": [optimizer],
        "learning_rates": [lowest, highest],
        "seeds": seeds,
        "steps": min(known.steps, _STEPS) if steps is None else steps,
    }
    random = randomness(known)
    settings = settings_of(known.name, known, arguments, {}, random.seeds_differ)
    if lowest > highest:
        raise ValueError(
            f"find_lr: lowest is {lowest} and highest is {highest}, expected a lowest "
            "learning rate below the highest."
        )
    if settings.steps < _FEWEST:
        raise ValueError(
            f"find_lr: steps is {settings.steps}, expected at least {_FEWEST}."
        )
    ((name, meaning),) = settings.entrants.items()
    one = entrant(meaning, steps=settings.steps, name=name)
    if not one.swept:
        raise ValueError(
            f"find_lr: {one.name} has a learning rate already, expected an optimizer "
            "without one, such as `adamw`."
        )
    rates = np.geomspace(lowest, highest, settings.steps)
    noisy = known if random.steps_differ else _perturbed(known)
    losses = _losses(Model(noisy, one), rates, settings.seeds)
    return _found(known.name, one.name, rates, losses)


def _perturbed(problem: Problem) -> Problem:
    """The problem with a loss at slightly perturbed params, at random in every step.

    Without noise a run may converge exactly before its learning rate is too large. Its
    gradient is then zero, and it never diverges.
    """
    init, _ = initial(problem, jax.random.key(0))
    sizes = jax.tree.map(lambda p: jnp.sqrt(jnp.mean(jnp.abs(p) ** 2)), init)
    most = max(map(float, jax.tree.leaves(sizes))) or 1.0
    sizes = jax.tree.map(lambda size: float(size) or most, sizes)

    def moved(params: Params, key: Array) -> Params:
        def move(p: Array, size: float, key: Array) -> Array:
            noise = jax.random.normal(key, jnp.shape(p), jnp.result_type(p))
            return p + jnp.asarray(_PERTURBED * size, noise.dtype) * noise

        treedef = jax.tree.structure(params)
        keys = treedef.unflatten(jax.random.split(key, treedef.num_leaves))
        return jax.tree.map(move, params, sizes, keys)

    adjust = problem.adjust

    def loss(params: Params, *rest: PyTree) -> PyTree:
        *state, (batch, noise) = rest[:2] if problem.stateful else rest
        return problem.loss(moved(params, noise), *state, batch, *rest[2:])

    return replace(
        problem,
        batches=lambda key, data: (batch_of(problem, key, data, 0), key),
        loss=loss,
        adjust=adjust and (lambda p, both: adjust(moved(p, both[1]), both[0])),
    )


def _losses(model: Model, rates: np.ndarray, seeds: tuple[int, ...]) -> np.ndarray:
    """(seeds, steps), the loss before every step."""
    counts = jnp.arange(len(rates), dtype=jnp.int32)
    growing = jnp.asarray(rates, jnp.float32)

    def run(seed: Array, data: Data) -> Array:
        def step(run: Run, now: tuple[Array, Array]) -> tuple[Run, Array]:
            t, rate = now
            return model.step(rate, seed, t, run, data)

        start = model.start(growing[0], seed)
        return jax.lax.scan(step, start, (counts, growing))[1]

    problem, name = model.problem, model.entrant.name
    runs = jax.jit(jax.vmap(run, (0, None)))
    try:
        losses = runs(np.array(seeds, np.uint32), problem.data)
    except Exception as error:  # an optimizer may not support these params
        why = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        raise ValueError(
            f"find_lr: {name} cannot train the problem {problem.name!r}. {why}"
        ) from error
    losses = np.asarray(losses, np.float64)
    if not np.isfinite(losses[:, 0]).any():
        value = "NaN" if np.isnan(losses[:, 0]).any() else "infinite"
        raise ValueError(
            f"find_lr: the loss of the problem {problem.name!r} is {value} at the "
            "initial params, for every seed. Check `loss`, `init` and `data`."
        )
    return losses


def _found(
    problem: str, optimizer: str, rates: np.ndarray, losses: np.ndarray
) -> RangeTest:
    """Read the two learning rates from the curve."""
    begun = losses[np.isfinite(losses[:, 0])]
    # A run that breaks down counts as infinite from there on, and so does the mean.
    broken = np.logical_or.accumulate(~np.isfinite(begun), axis=1)
    half = max(1, round(_WINDOW * len(rates) / 2))
    with np.errstate(over="ignore", invalid="ignore"):
        curve = np.where(broken, np.inf, begun).mean(axis=0)
        # Medians first: a short burst must not change the whole window.
        median = _over_windows(np.median, curve, half)
        noise = _noise(curve, half)
        flat, end = _divergence(curve, median, noise)
        smooth = np.full(len(rates), np.nan)
        # The median is infinite where most of the window comes after a breakdown.
        known = np.where(np.isfinite(median), median, curve)[:end]
        smooth[:end] = _over_windows(np.mean, known, half)
        slope = np.gradient(smooth, np.log(rates))
        falls = smooth[0] - np.nanmin(smooth) > noise
    return RangeTest(
        problem=problem,
        optimizer=optimizer,
        rates=rates,
        losses=losses,
        smooth=smooth,
        suggested=float(rates[np.nanargmin(slope)]) if falls else None,
        diverges=None if flat is None else float(rates[flat]),
    )


def _divergence(
    curve: np.ndarray, median: np.ndarray, noise: float
) -> tuple[int | None, int]:
    """The last step before the loss rises for good, and the number of steps to show.

    The loss has diverged when it has lost half of its improvement again, and stays
    there. From there we go back to where the rise began. Without a divergence: `None`,
    and all steps.
    """
    best = np.minimum.accumulate(median)
    rise = np.maximum(_LOST * (median[0] - best), noise)
    lost = (median - best > rise) | ~np.isfinite(curve)
    k = int(np.flatnonzero(~lost)[-1]) + 1
    if k == len(curve):
        return None, k
    (flat,) = np.nonzero(median[:k] <= best[k] + _RISEN * rise[k])
    start = k - 1  # momentum may oscillate: go back no further than the last minimum
    while start > 0 and median[start - 1] < median[start]:
        start -= 1
    return max([start, *flat.tolist()]), k


def _noise(curve: np.ndarray, half: int) -> float:
    """Changes of the smoothed loss up to this size mean nothing."""
    # At the first rates the params hardly move: what varies there is noise.
    first = curve[: max(len(curve) // 5, 3)]
    changes = np.diff(first[np.isfinite(first)])
    spread = np.sqrt(np.mean(changes**2) / 2) if len(changes) else 0.0
    return float(_NOISE * spread / np.sqrt(2 * half + 1) + _ROUNDING * abs(curve[0]))


def _over_windows(
    f: Callable[[np.ndarray], np.ndarray], curve: np.ndarray, half: int
) -> np.ndarray:
    """`f` of the window around every point, which is shorter at both ends."""
    ends = range(half + 1, len(curve) + half + 1)
    return np.array([f(curve[max(0, k - 2 * half - 1) : k]) for k in ends])
