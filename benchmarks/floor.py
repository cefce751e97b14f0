"""Why the clip+AdamW step takes as long as it does on the CPU.

    python -m benchmarks.floor

A stream is one pass over an array with as many elements as all params. XLA's CPU
compiler makes one loop for each output array, so a leaf of clip+AdamW is

    norm    reads g                    1 stream
    mu      reads g, mu; writes mu     3
    nu      reads g, nu; writes nu     3
    p       reads p, mu, nu; writes p  4

11 in all. A single loop with three outputs would need 8, including the norm. Here each
loop runs alone, in turns with the whole step and a plain `a + b` into `a` (3 streams).
`copy` is always the time that the plain `a + b` would need for the same number of
streams: a loop that runs at memory bandwidth has the ratio 1 to it.

Two workarounds are also measured. One runs a `fori_loop` over blocks small enough for
the cache; XLA copies whole arrays for each block. The other uses XLA's flag for loops
with several outputs. It runs in a separate process, because the flag affects all
programs of a process, and takes turns with its own `a + b`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from .measure import plain_copy, stepping
from .optimizers import donated, LIBRARIES, RATE, RECIPES
from .rows import COPY, OURS, Row
from .timing import race
from .trees import TINY, Tree, TREES

LABEL = "profile wide clip+adamw: time"
FLAG = "--xla_backend_extra_options=xla_cpu_use_multi_output_fusion=true"
B1, B2, EPS, DECAY = 0.9, 0.999, 1e-8, 1e-4
STREAMS = {"norm": 1, "mu": 3, "nu": 3, "p": 4}
BLOCK = 1 << 20  # numbers: four arrays of this size are 16 MB and fit in a large cache

_ADAMW = {
    "mu": lambda c, mu, g: B1 * mu + (1 - B1) * (c * g),
    "nu": lambda c, nu, g: B2 * nu + (1 - B2) * (c * g) ** 2,
    "p": lambda c, p, mu, nu: p - RATE * (mu / (jnp.sqrt(nu) + EPS) + DECAY * p),
}


def rows(tree: Tree, rounds: int) -> list[Row]:
    """The profile, as rows of section `profile`."""
    turns: dict[str, Any] = {
        **_loops(tree),
        "clip+adamw": _whole(tree, "clip+adamw", OURS),
        "optax": _whole(tree, "clip+adamw", "optax"),
        COPY: plain_copy(tree.params),
    }
    times = race(turns, rounds)["step"]
    slow = race({"blocks": _blocks(tree), COPY: turns[COPY]}, rounds // 5 + 1)["step"]
    alone = [times[name] for name in STREAMS]
    times["sum"] = [sum(parts) for parts in zip(*alone, strict=True)]
    row = partial(_row, tree)
    everything = sum(STREAMS.values())
    return [
        *(row(f"{k}, alone", n, times, k) for k, n in STREAMS.items()),
        row("the four in sum", everything, times, "sum"),
        row("the whole step", everything, times, "clip+adamw", theirs="optax"),
        row("AdamW in blocks by fori_loop", 7, slow, "blocks"),
        *_with_flag(row, tree, rounds),
    ]


def _row(
    tree: Tree,
    name: str,
    streams: int,
    times: dict[str, list[float]],
    ours: str,
    theirs: str = "",
) -> Row:
    """One row; `copy` is the copy's time for the same number of streams."""
    found = {OURS: times[ours]}
    if theirs:
        found[theirs] = times[theirs]
    found[COPY] = [streams / 3 * spent for spent in times[COPY]]
    note = f"{streams} stream{'s' * (streams > 1)}"
    return Row("profile", tree.name, name, "time", "s", found, note)


def _loops(tree: Tree) -> dict[str, Any]:
    """One turn for each loop, over all leaves, as in the step."""
    c, g = jnp.float32(0.5), tree.fill(1, 0.001)
    norm = jax.jit(lambda g: sum(jnp.sum(x * x) for x in jax.tree.leaves(g)))
    turns = {"norm": stepping(lambda total: (norm(g),), 0.0)}
    for name, others in (("mu", 1), ("nu", 1), ("p", 2)):
        read = [jax.tree.map(jnp.abs, g) for _ in range(others)]
        f = partial(jax.tree.map, partial(_ADAMW[name], c))
        turns[name] = stepping(
            partial(_into_first, jax.jit(f, donate_argnums=0), read),
            tree.fill(0, 0.02),
        )
    return turns


def _into_first(loop: Callable[..., Any], read: list[Any], x: Any) -> tuple[Any]:
    return (loop(x, *read),)


def _whole(tree: Tree, optimizer: str, who: str) -> Any:
    """One turn: the step itself."""
    params, grads = tree.fill(0, 0.02), tree.fill(1, 0.001)
    tx = RECIPES[optimizer].make(LIBRARIES[who], RATE)
    step = donated(who, tx)
    return stepping(lambda p, s: step(p, s, grads), params, tx.init(params))


def _blocks(tree: Tree) -> Any:
    """One turn: AdamW on all params in one array, block by block."""
    size = tree.params // BLOCK * BLOCK or tree.params
    block = min(BLOCK, size)
    g, c = jnp.full(size, 0.001), jnp.float32(0.5)

    def body(k: Any, kept: tuple[Any, ...]) -> tuple[Any, ...]:
        cut = lambda x: jax.lax.dynamic_slice(x, (k * block,), (block,))
        put = lambda x, y: jax.lax.dynamic_update_slice(x, y, (k * block,))
        p, mu, nu = map(cut, kept)
        mu, nu = _ADAMW["mu"](c, mu, cut(g)), _ADAMW["nu"](c, nu, cut(g))
        return tuple(map(put, kept, (_ADAMW["p"](c, p, mu, nu), mu, nu)))

    @partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(p: Any, mu: Any, nu: Any) -> tuple[Any, ...]:
        return jax.lax.fori_loop(0, size // block, body, (p, mu, nu))

    return stepping(step, *(jnp.zeros(size) for _ in range(3)))


def _with_flag(row: Callable[..., Row], tree: Tree, rounds: int) -> Iterator[Row]:
    """Whole steps in a process with the flag, if this XLA has it."""
    size = "tiny" if tree is TINY[tree.name] else "full"
    flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}"
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.floor", "--steps", str(rounds), size],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode:
        print("benchmarks: this XLA does not have", FLAG, file=sys.stderr)
        return
    times = json.loads(child.stdout.splitlines()[-1])
    for name, streams in (("clip+adamw", 8), ("adamw", 7)):
        yield row(f"{name}, XLA's flag for one loop", streams, times, name)


def main() -> None:
    """The whole profile; with `--steps`, the steps in this process, as JSON."""
    if sys.argv[1:2] != ["--steps"]:
        for found in rows(TREES["wide"], rounds=15):
            spent = 1e3 * found.best(OURS)
            share = found.ratio(COPY)
            print(
                f"{found.optimizer:40} {spent:6.1f} ms  {share:4.0%} of a copy's speed"
            )
        return
    rounds, size = sys.argv[2:]
    tree = {"tiny": TINY, "full": TREES}[size]["wide"]
    turns = {name: _whole(tree, name, OURS) for name in ("clip+adamw", "adamw")}
    turns[COPY] = plain_copy(tree.params)
    print(json.dumps(race(turns, int(rounds))["step"]))


if __name__ == "__main__":
    main()
