"""Race a model of ten million params on a GPU: `python -m benchmarks.racing`.

All learning rates and seeds of an optimizer are one program. Those that do not fit in
memory at once take turns. It prints how many run at once, what a step costs, and what
the race recommends; it needs only JAX and jaxtyping, for the last line also SciPy.

    python -m benchmarks.racing --optimizers adamw soap "lookahead(adamw)"
    python -m benchmarks.racing --at-once 5      # fewer runs in memory than fit
    python -m benchmarks.racing --tiny           # tries it on a CPU
    python -m benchmarks.racing --json benchmarks/results/racing.json
    python -m benchmarks.report                  # docs/race.md shows these results
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import steepest
from steepest.race import Outcome, Problem, Sweep, Watch
from steepest.race._memory import available, told
from steepest.race.problems import load

from . import machine
from .rows import OURS, Record, Row

_BEGAN = time.monotonic()
HALF = jnp.bfloat16
_OPTIMIZERS = ("adamw", "muon(stacked='^layers/')")


def problem_of(layers: int, width: int, heads: int, places: int, batch: int) -> Problem:
    """A byte-level transformer, as a user would write it: plain functions.

    Args:
        layers: number of layers, which `jax.lax.scan` runs over.
        width: width of the residual stream.
        heads: number of attention heads.
        places: length of the context, in bytes.
        batch: number of windows in a batch.
    """

    def init(key: Any) -> Any:
        size = lambda k, shape, fan: (
            jax.random.normal(jax.random.fold_in(key, k), shape) * fan**-0.5
        )
        return {
            "embed": size(0, (256, width), 4),
            "places": size(1, (places, width), 4),
            "layers": {
                "qkv": size(2, (layers, width, 3 * width), width),
                "mix": size(3, (layers, width, width), 2 * layers * width),
                "up": size(4, (layers, width, 4 * width), width),
                "down": size(5, (layers, 4 * width, width), 8 * layers * width),
            },
            "head": size(6, (width, 256), width),
        }

    def layer(x: Any, p: Any) -> tuple[Any, None]:
        shape = (*x.shape[:2], heads, width // heads)
        parts = jnp.split(norm(x) @ p["qkv"].astype(HALF), 3, axis=-1)
        attend: Any = jax.nn.dot_product_attention
        mixed = attend(*(part.reshape(shape) for part in parts), is_causal=True)
        x = x + (mixed.reshape(x.shape) @ p["mix"].astype(HALF)).astype(x.dtype)
        wide = jax.nn.relu(norm(x) @ p["up"].astype(HALF))
        return x + (wide @ p["down"].astype(HALF)).astype(x.dtype), None

    def norm(x: Any) -> Any:
        return (
            x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)
        ).astype(HALF)

    def loss(params: Any, text: Any) -> Any:
        inputs, targets = text[:, :-1].astype(int), text[:, 1:].astype(int)
        x = params["embed"][inputs] + params["places"][None]
        x, _ = jax.lax.scan(layer, x, params["layers"])
        logits = (norm(x) @ params["head"].astype(HALF)).astype(jnp.float32)
        some = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)
        return -jnp.mean(some) / jnp.log(2.0)

    def batches(key: Any, data: Any) -> Any:
        starts = jax.random.randint(key, (batch,), 0, len(data["train"]) - places)
        return data["train"][starts[:, None] + jnp.arange(places + 1)[None]]

    text: Any = load("bytes").data
    train, test = (np.asarray(text[name]).reshape(-1) for name in ("train", "test"))
    windows = np.linspace(0, len(test) - places - 1, batch).astype(int)
    held_out = test[windows[:, None] + np.arange(places + 1)]
    return Problem(
        init=init,
        loss=loss,
        batches=batches,
        metric=lambda params, data: loss(params, data["test"]),
        data={"train": train.astype(np.uint8), "test": held_out.astype(np.uint8)},
        name="ten_million",
        measure="bits per byte",
    )


class _Told(Watch):
    """Prints what happens."""

    def compiles(self, name: str) -> None:
        """An optimizer is about to be compiled."""
        _say(f"{name}: compiling; {told(available(jax.devices()[0]) or 0)} are free")

    def ends(self, sweep: Sweep) -> None:
        """An optimizer is done."""
        best = np.nanmin(sweep.metric[..., -1].mean(axis=1))
        _say(
            f"{sweep.name}: {sweep.parameters / 1e6:.2f} million params, "
            f"{sweep.runs} runs, {sweep.at_once or sweep.runs} at once; compiled in "
            f"{sweep.compiling:.1f} s; {sweep.planned} steps of all runs in "
            f"{sweep.seconds[-1]:.1f} s, {1e3 * sweep.step_seconds:.2f} ms per step of "
            f"one run; {sweep.bytes_per_param:.2f} bytes of state per param; best "
            f"{best:.3f} bits per byte"
        )

    def fails(self, name: str, why: str) -> None:
        """An optimizer cannot take part."""
        _say(f"{name}: {why}")


def rows_of(outcome: Outcome) -> Iterator[Row]:
    """What each optimizer cost, and how good its best learning rate was.

    Args:
        outcome: of the race.
    """
    for sweep in outcome.sweeps:
        best = float(np.nanmin(sweep.metric[..., -1].mean(axis=1)))
        numbers = {
            "params": (sweep.parameters, ""),
            "runs": (sweep.runs, ""),
            "at once": (sweep.at_once or sweep.runs, ""),
            "steps": (sweep.planned, ""),
            "compile": (sweep.compiling, "s"),
            "all runs": (float(sweep.seconds[-1]), "s"),
            "step of one run": (sweep.step_seconds, "s"),
            "state per param": (sweep.bytes_per_param, "bytes"),
            "best": (best, outcome.measure),
        }
        for quantity, (x, unit) in numbers.items():
            yield Row(
                "racing", outcome.problem, sweep.name, quantity, unit, {OURS: [x]}
            )


def _say(line: str) -> None:
    print(f"[{time.monotonic() - _BEGAN:6.1f}] {line}", flush=True)


def main(tokens: Sequence[str] | None = None) -> Outcome:
    """Race, and print what it cost.

    Args:
        tokens: the options; by default those of the command line.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.racing")
    parser.add_argument("--optimizers", nargs="+", default=_OPTIMIZERS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--at-once", type=int, help="at most this many runs at once")
    parser.add_argument("--time-budget", type=float, metavar="SECONDS")
    parser.add_argument("--tiny", action="store_true", help="a tiny model")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for results")
    args = parser.parse_args(tokens)
    record = Record(machine.describe(), "python -m benchmarks.racing", quick=args.tiny)
    shape = (2, 16, 2, 8, 4) if args.tiny else (8, 320, 5, 256, args.batch)
    outcome = steepest.race(
        problem_of(*shape),
        args.optimizers,
        learning_rates=[5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2],
        seeds=args.seeds,
        steps=args.steps,
        time_budget=args.time_budget,
        at_once=args.at_once,
        watch=_Told(),
    )
    if args.json:
        record.rows = [*rows_of(outcome)]
        record.save(args.json)
    stats = jax.devices()[0].memory_stats() or {}
    _say(f"{outcome.machine}; peak {told(stats.get('peak_bytes_in_use', 0))}")
    try:
        _say(str(outcome.recommendation()))
    except ImportError as error:
        _say(f"no recommendation: {error}")
    return outcome


if __name__ == "__main__":
    main()
