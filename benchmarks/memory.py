"""Memory in few bits: `python -m benchmarks.gpu memory memory-muon [--quick]`.

A step of AdamW, Lion and Muon on matrices with 1.07 billion params in all: 16 of 8192 x
8192, and for Muon, whose products would take long on those, 64 of 2048 x 8192. The
memory is in float32 or in few bits, and the weights are float32, or bfloat16 with
corrections or stochastic rounding. The columns:

step: the time of one of several steps in a row.
device: the time of the kernels in one step, from JAX's profiler; only on a GPU.
bandwidth: the bytes that a step must move, divided by `step`. It reads weights,
    gradients and state once, and writes weights and state once. Gradients have the
    dtype of the weights. A plain `a + b` into `a` of as many float32 numbers is
    measured in the same rounds.
weights, state: their bytes. Corrections of bfloat16 weights are part of the state.
temporary: what XLA plans to allocate in a step.

Optax's AdamW and torch's fused AdamW take part in float32.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

import steepest

from . import peers
from .device import device_steps
from .measure import plain_copy, rates, stepping
from .optimizers import donated, RATE
from .processes import nbytes
from .rows import COPY, OURS, Row
from .table import amount
from .timing import clock, race
from .trees import Tree

ROUNDS, ROW = 5, 20  # rounds of twenty steps in a row
QUANTITIES = {
    "compile": "s",
    "device": "s",
    "weights": "B",
    "state": "B",
    "temporary": "B",
}

Case = tuple[str, Callable[[], Any]]  # dtype of weights and gradients; the optimizer


def _cases(name: str, make: Callable[..., Any]) -> dict[str, Case]:
    """What every optimizer is measured with."""
    int8 = partial(make, RATE, memory_dtype="int8")
    return {
        f"{name}, float32": ("float32", partial(make, RATE)),
        f"{name}, int8": ("float32", int8),
        f"{name}, int8, 24-bit weights": (
            "bfloat16",
            lambda: steepest.compensated(int8(), bits=8),
        ),
    }


def _more(kind: str) -> Any:
    return steepest.adamw(RATE, memory_dtype=kind)


ELEMENTWISE: dict[str, Case] = {
    **_cases("adamw", steepest.adamw),
    **_cases("lion", steepest.lion),
    "adamw, float8": ("float32", partial(_more, "float8")),
    "adamw, int4": ("float32", partial(_more, "int4")),
    "adamw, int8, 32-bit weights": (
        "bfloat16",
        lambda: steepest.compensated(_more("int8")),
    ),
    "adamw, int8, stochastic rounding": (
        "bfloat16",
        lambda: steepest.stochastic_rounding(_more("int8"), 0),
    ),
}
MUON = _cases("muon", steepest.muon)


def of_few_bits(
    tree: Tree, torch: dict[str, Any], only: Sequence[str] = ()
) -> Iterator[Row]:
    """AdamW and Lion.

    Args:
        tree: the params.
        torch: torch's AdamW, if it is installed.
        only: the names of the cases to measure; all if it is empty.
    """
    for name, case in ELEMENTWISE.items():
        if only and name not in only:
            continue
        peer: Case = ("float32", lambda: optax.adamw(RATE))
        more = {"optax": partial(_turn, "optax", peer), **torch}
        yield from _attempt(tree, name, case, more if name == "adamw, float32" else {})


def of_muon(
    tree: Tree, torch: dict[str, Any], only: Sequence[str] = ()
) -> Iterator[Row]:
    """Muon; `python -m benchmarks.gpu muon` compares it with others.

    Args:
        tree: the params.
        torch: not used.
        only: the names of the cases to measure; all if it is empty.
    """
    del torch
    for name, case in MUON.items():
        if not only or name in only:
            yield from _attempt(tree, name, case, {})


def contest(
    tree: Tree, name: str, case: Case, peers_: dict[str, Callable[[Tree], Any]]
) -> Iterator[Row]:
    """The rows of one optimizer, raced against its peers and a plain copy.

    Args:
        tree: the params.
        name: the name of the optimizer in the rows.
        case: the dtype of its weights, and how to make it.
        peers_: for each peer, a function that makes its turn.
    """
    turns: dict[str, Any] = {COPY: plain_copy(tree.params, times=ROW)}
    moved = {COPY: 12 * tree.params}
    told: dict[str, dict[str, list[float]]] = {}
    for who, make in {OURS: partial(_turn, OURS, case), **peers_}.items():
        turns[who], says = make(tree)
        # torch's AdamW keeps the same arrays as Optax's.
        moved[who] = says.pop("moved", moved.get("optax", 0))
        for quantity, number in says.items():
            told.setdefault(quantity, {})[who] = [number]
    times = race(turns, ROUNDS, warmups=1)["step"]
    row = partial(Row, "memory", tree.name, name)
    found = [row("bandwidth", "B/s", rates(moved, times))]
    del times[COPY]
    found = [row("step", "s", times), *found]
    found += [row(k, unit, told[k]) for k, unit in QUANTITIES.items() if k in told]
    for one in found:
        best = {who: amount(one.best(who), one.unit) for who in one.times}
        print(tree.name, name, one.quantity, best, file=sys.stderr, flush=True)
    yield from found


def _attempt(
    tree: Tree, name: str, case: Case, peers_: dict[str, Callable[[Tree], Any]]
) -> Iterator[Row]:
    """`contest`; a case that fails, say for lack of memory, is left out."""
    try:
        yield from contest(tree, name, case, peers_)
    except Exception as error:  # whatever a compiler or a device may raise
        print(f"{tree.name} {name}: {str(error)[-2000:]}", file=sys.stderr, flush=True)
    peers.clear()


def _turn(who: str, case: Case, tree: Tree) -> tuple[Any, dict[str, float]]:
    """One turn of a JAX library, and its other quantities."""
    dtype, make = case
    tx = make()
    params, grads = (_filled(tree, seed, dtype) for seed in (0, 1))
    state = jax.jit(tx.init)(params)
    weights, kept = nbytes(params), nbytes(state)
    seconds, compiled = clock(donated(who, tx).lower(params, state, grads).compile)
    go_on = lambda params, state: compiled(params, state, grads)
    turn = stepping(go_on, params, state, times=ROW)
    del params, state  # donated
    turn()
    says: dict[str, float] = {
        "moved": 2 * (weights + kept) + nbytes(grads),
        "compile": seconds,
        "weights": weights,
        "state": kept,
        "temporary": compiled.memory_analysis().temp_size_in_bytes,
    }
    device = device_steps(turn, 1)
    return turn, says if device is None else says | {"device": device[0] / ROW}


def _filled(tree: Tree, seed: int, dtype: str) -> Any:
    """Normally distributed numbers, with little memory besides the result."""
    return tree.draw(seed, lambda key, shape: _normal(key, shape, dtype))


@partial(jax.jit, static_argnums=(1, 2))
def _normal(key: Any, shape: tuple[int, ...], dtype: str) -> Any:
    return (0.01 * jax.random.normal(key, shape, jnp.float32)).astype(dtype)
