"""`python -m benchmarks.minimise [--quick] [--json FILE]`: L-BFGS on small problems.

SciPy's L-BFGS-B, with a hand-written gradient in NumPy and with a compiled JAX
gradient; steepest's and Optax's `lbfgs` in a compiled loop; and steepest's in a Python
loop over `make_train_step`. All run in float64, with a memory of 10, until no entry of
the gradient is larger than the problem's tolerance.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

import steepest

from . import machine
from .rows import Bar, Record, Row
from .smooth import Problem, problems
from .timing import clock, race

MOST = 1000  # steps
BARS = [
    Bar("*", "lbfgs in a loop", "time", "scipy", 1.0),
    Bar("*", "lbfgs in a loop", "time", "optax", 1.0),
]
STARTS = 4  # each is run from all of them; one compilation must serve all
LEGEND = f"""\
steps, calls: of L-BFGS, and of the function, from the first start.
value: where it ends, less the lowest of the row's problem.
time: from the first start, compiled before; the best of several, in turns.
ratio: that time over steepest's in a compiled loop; above 1 steepest is ahead.
compile: trace, lower and compile. times: how often, over {STARTS} starts."""


class Found(NamedTuple):
    """Where a run ended, and how many steps and calls it took."""

    value: Any
    steps: Any
    calls: Any


class Contender(NamedTuple):
    """A way to minimise one problem."""

    run: Callable[[Any], Found]  # from a start
    compile: Callable[[Any], Any] | None  # for a start
    compilations: Callable[[], int]
    counted: Callable[[Any], Found] | None = None  # `run`, counting calls


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.minimise")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="raw numbers")
    args = parser.parse_args()
    where = machine.describe()
    jax.config.update("jax_enable_x64", True)

    print("\n".join(f"{name:9} {what}" for name, what in where.items()), end="\n\n")
    print(LEGEND, end="\n\n")
    print(_line("problem", "by", *COLUMNS))
    rows = []
    for problem in problems():
        # SciPy multiplies vectors of length ten: with two threads that is 100 times
        # slower.
        with threadpool_limits(1):
            found = measured(problem, repeats=3 if args.quick else 25)
        rows += found
        for row in found:
            print(_line(row["problem"], row["by"], *(f(row) for f in COLUMNS.values())))
    if args.json:
        record = Record(where, "python -m benchmarks.minimise", bars=BARS)
        record.quick = args.quick
        for problem in problems():
            size = ravel_pytree(problem.start(0))[0].size
            leaves = len(jax.tree.leaves(problem.start(0)))
            said = {"says": "a function", "leaves": leaves, "params": size}
            record.trees[problem.name] = said
            mine = {row["by"]: row for row in rows if row["problem"] == problem.name}
            record.rows += kept(problem.name, mine)
        record.save(args.json)


def kept(problem: str, found: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    """The rows to save: both variants of steepest, against the others."""
    scipy = {"scipy": "SciPy, NumPy", "scipy+jax": "SciPy, JAX"}
    ways = {
        "lbfgs in a loop": {"steepest": "steepest", "optax": "Optax", **scipy},
        "lbfgs step by step": {"steepest": "steepest, steps", **scipy},
    }
    for name, by in ways.items():
        times = {who: found[row]["times"] for who, row in by.items()}
        steps = ", ".join(f"{who} {found[row]['steps']}" for who, row in by.items())
        yield Row("minimise", problem, name, "time", "s", times, f"steps: {steps}")


def measured(problem: Problem, repeats: int) -> list[dict[str, Any]]:
    """One row for each contender."""
    starts = [problem.start(seed) for seed in range(STARTS)]
    contenders = {name: make(problem) for name, make in CONTENDERS.items()}
    compiling = {}
    for name, who in contenders.items():
        jax.clear_caches()
        compiling[name] = clock(who.compile, starts[0])[0] if who.compile else 0.0
    ends = {
        k: [(who.counted or who.run)(x) for x in starts]
        for k, who in contenders.items()
    }

    def turn(run: Callable[[Any], Found]) -> dict[str, float]:
        return {"time": clock(run, starts[0])[0]}

    turns = {k: partial(turn, who.run) for k, who in contenders.items()}
    times = race(turns, repeats)["time"]
    lowest = min(float(found[0].value) for found in ends.values())
    best = {k: min(x) for k, x in times.items()}
    return [
        {
            "problem": problem.name,
            "by": name,
            "steps": int(ends[name][0].steps),
            "calls": int(ends[name][0].calls),
            "value": float(ends[name][0].value) - lowest,
            "time": best[name],
            "times": times[name],
            "ratio": best[name] / best["steepest"],
            "compile": compiling[name],
            "compilations": who.compilations(),
        }
        for name, who in contenders.items()
    ]


def by_scipy(problem: Problem, *, numpy: bool) -> Contender:
    """SciPy's L-BFGS-B with its own line search, on a vector."""
    unravel = ravel_pytree(problem.start(0))[1]
    of_vector = jax.jit(jax.value_and_grad(lambda x: problem.value(unravel(x))))

    def by_jax(x: Any) -> tuple[float, Any]:
        value, grad = of_vector(x)
        return float(value), np.asarray(grad)

    # Only the gradient should end the run.
    options = {"maxcor": 10, "gtol": problem.tolerance, "ftol": 0.0, "maxiter": MOST}

    def run(start: Any) -> Found:
        x = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(start)])
        f = problem.by_hand if numpy else by_jax
        end = minimize(f, x, jac=True, method="L-BFGS-B", options=options)
        return Found(end.fun, end.nit, end.nfev)

    if numpy:
        return Contender(run, None, lambda: 0)
    compile = lambda start: of_vector.lower(ravel_pytree(start)[0]).compile()
    return Contender(run, compile, of_vector._cache_size)


def in_a_loop(problem: Problem, *, lib: ModuleType) -> Contender:
    """A library's `lbfgs`, in one compiled loop."""
    tx, f = lib.lbfgs(), problem.value
    value_and_grad = lib.value_and_grad_from_state(f)

    def go_on(carry: Any) -> Any:
        _, state, steps, _ = carry
        return (steps == 0) | (
            (_largest(state[-1].grad) > problem.tolerance) & (steps < MOST)
        )

    def step(carry: Any) -> Any:
        p, state, steps, calls = carry
        value, grad = value_and_grad(p, state=state)
        u, state = tx.update(grad, state, p, value=value, grad=grad, value_fn=f)
        calls += state[-1].info.num_linesearch_steps
        return lib.apply_updates(p, u), state, steps + 1, calls

    @jax.jit
    def run(p: Any) -> Found:
        p = jax.tree.map(jnp.asarray, p)
        # The function is also called once before the first step.
        first = p, tx.init(p), 0, 1
        _, state, steps, calls = jax.lax.while_loop(go_on, step, first)
        return Found(state[-1].value, steps, calls)

    return Contender(run, lambda p: run.lower(p).compile(), run._cache_size)


def step_by_step(problem: Problem) -> Contender:
    """`lbfgs` in a Python loop that checks the gradient after every step."""
    tx = steepest.lbfgs()
    step = steepest.make_train_step(problem.value, tx)
    init = jax.jit(lambda p: (jax.tree.map(jnp.asarray, p), tx.init(p)))

    def run(start: Any, *, counting: bool = False) -> Found:
        p, state = init(start)
        steps, calls, found = 0, 1, state[-1]
        while steps < MOST:
            p, state, _ = step(p, state)
            steps, found = steps + 1, state[-1]
            if counting:
                calls += int(found.info.num_linesearch_steps)
            grads = map(np.asarray, jax.tree.leaves(found.grad))
            if max(np.abs(g).max() for g in grads) <= problem.tolerance:
                break
        return Found(found.value, steps, calls)

    compile = lambda start: step.lower(*init(start)).compile()
    counted = partial(run, counting=True)
    return Contender(run, compile, step._cache_size, counted)


def _largest(grad: Any) -> Any:
    return jnp.max(jnp.stack([jnp.max(jnp.abs(g)) for g in jax.tree.leaves(grad)]))


CONTENDERS = {
    "SciPy, NumPy": partial(by_scipy, numpy=True),
    "SciPy, JAX": partial(by_scipy, numpy=False),
    "steepest": partial(in_a_loop, lib=steepest),
    "Optax": partial(in_a_loop, lib=optax),
    "steepest, steps": step_by_step,
}

COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "steps": lambda row: str(row["steps"]),
    "calls": lambda row: str(row["calls"]),
    "value": lambda row: f"{row['value']:.0e}",
    "time": lambda row: f"{row['time'] * 1e3:.2f} ms",
    "ratio": lambda row: f"{row['ratio']:.2f}",
    "compile": lambda row: f"{row['compile']:.2f} s" if row["compile"] else "",
    "times": lambda row: str(row["compilations"] or ""),
}


def _line(problem: str, by: str, *cells: str) -> str:
    return f"{problem:17} {by:16}" + "".join(f"{cell:>10}" for cell in cells)


if __name__ == "__main__":
    main()
