"""What devices send in a step: `python -m benchmarks.collectives [NAME ...]`.

Each optimizer updates eight matrices, an embedding and a bias on eight devices. The
compiled step shows the collective operations; a loop counts them as often as it runs.
Bytes are those that one device receives. Operations of 1 KB or less, such as the sum of
a norm, are left out. Without names, all optimizers are measured and stored.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import optax
import optax.contrib
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import steepest

from .finite import maker, NAMES

DEVICES = 8
FILE = Path(__file__).parent / "results" / "collectives.json"
OURS = (
    "muon",
    "normuon",
    "adamuon",
    "scion",
    "dion2",
    "soap",
    "shampoo",
    "psgd",
    "soap_muon",
    "splus",
    "adam_mini",
)
RESHARDED = OURS[:5]
SHAPES = {f"layer{k}": (64, 256) for k in range(8)} | {"embed": (512, 64), "b": (256,)}
# Mesh and, for each number of axes, how an array is sharded.
LAYOUTS = {
    "rows": ((8,), {2: ("data",), 1: ()}),
    "columns": ((8,), {2: (None, "data"), 1: ()}),
    "both": ((4, 2), {2: ("data", "model"), 1: ("model",)}),
}
AXES = ("data", "model")
SMALLEST = 1024  # bytes
OPERATIONS = (
    "all-gather",
    "all-to-all",
    "all-reduce",
    "collective-permute",
    "reduce-scatter",
)
_SIZES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s64": 8, "f64": 8}
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\]")
_HEAD = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_OPERATION = re.compile(rf"= (.*?) ({'|'.join(OPERATIONS)})(?:-start)?\(")
_CALLS = re.compile(r"(body|to_apply|calls|branch_computations|\w+_computation)=")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')


def collectives(program: str) -> dict[str, tuple[int, int]]:
    """For each operation, how often it runs in a step, and its bytes.

    Args:
        program: the text of a compiled program.
    """
    bodies: dict[str, list[str]] = {}
    entry, lines = "", []
    for line in program.splitlines():
        head = _HEAD.match(line)
        if head:
            lines = bodies.setdefault(head.group(1), [])
            entry = head.group(1) if line.startswith("ENTRY") else entry
        else:
            lines.append(line)
    counts, sizes = Counter(), Counter()
    for operation, size, times in _operations(bodies, entry, 1):
        if size > SMALLEST:
            counts[operation] += times
            sizes[operation] += size * times
    return {name: (counts[name], sizes[name]) for name in sorted(counts)}


def _operations(
    bodies: dict[str, list[str]], name: str, times: int
) -> Iterator[tuple[str, int, int]]:
    """(operation, bytes, how often it runs) of a computation and all that it calls."""
    for line in bodies[name]:
        found = _OPERATION.search(line)
        if found:
            yield found.group(2), _bytes(found.group(1)), times
            continue
        trips = _TRIPS.search(line)
        each = times * int(trips.group(1)) if trips else times
        for called in set(re.findall(r"%([\w.\-]+)", _calls(line))) & set(bodies):
            yield from _operations(bodies, called, each)


def _calls(line: str) -> str:
    """The part of a line that names other computations."""
    found = _CALLS.search(line)
    return line[found.start() :] if found else ""


def _bytes(shape: str) -> int:
    """The bytes of one array, or of several."""
    total = 0
    for dtype, sides in _ARRAY.findall(shape):
        size = _SIZES.get(dtype, 4)
        for side in filter(None, sides.split(",")):
            size *= int(side)
        total += size
    return total


def measured(lib: ModuleType, tx: Any, layout: str) -> dict[str, tuple[int, int]]:
    """The collectives of a step on one layout.

    Args:
        lib: the library that applies the updates.
        tx: the optimizer.
        layout: one of `LAYOUTS`.
    """
    sides, specs = LAYOUTS[layout]
    mesh = jax.make_mesh(
        sides, AXES[: len(sides)], axis_types=(AxisType.Auto,) * len(sides)
    )
    key = jax.random.key(0)
    params = {
        name: jax.device_put(
            jax.random.normal(key, shape),
            NamedSharding(mesh, PartitionSpec(*specs[len(shape)])),
        )
        for name, shape in SHAPES.items()
    }

    def step(params: Any, state: Any, grads: Any) -> tuple[Any, Any]:
        updates, state = tx.update(grads, state, params, value=jnp.float32(1))
        return lib.apply_updates(params, updates), state

    tx = lib.with_extra_args_support(tx)
    where = jax.tree.map(lambda x: x.sharding, params)
    with jax.set_mesh(mesh):
        state = tx.init(params)
        kept = jax.tree.map(lambda x: x.sharding, state)
        compiled = jax.jit(step, out_shardings=(where, kept))
        return collectives(compiled.lower(params, state, params).compile().as_text())


def optimizers(name: str, layout: str) -> dict[str, tuple[ModuleType, Any]]:
    """What is measured under a name: ours, resharded over all devices, and Optax's."""
    found: dict[str, tuple[ModuleType, Any]] = {}
    if name in OURS:
        tx = getattr(steepest, name)(1e-3)
        found["steepest"] = steepest, tx
        if name in RESHARDED:
            axes = AXES[: len(LAYOUTS[layout][0])]
            found["reshard"] = steepest, steepest.keeping(tx, reshard=axes)
        return found
    for lib in (steepest, optax):
        found[lib.__name__] = lib, maker(lib, name)()
    return found


def table(names: list[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """name -> layout -> who -> collectives; printed as it is measured."""
    results: dict[str, dict[str, dict[str, Any]]] = {}
    for name in names:
        for layout in LAYOUTS:
            row = {
                who: measured(lib, tx, layout)
                for who, (lib, tx) in optimizers(name, layout).items()
            }
            results.setdefault(name, {})[layout] = row
            text = "; ".join(f"{who}: {_text(found)}" for who, found in row.items())
            print(f"{name}, {layout}: {text}", flush=True)
    return results


def _text(found: dict[str, tuple[int, int]]) -> str:
    parts = [f"{n} {name} {size / 1024:.0f} KB" for name, (n, size) in found.items()]
    return ", ".join(parts) or "nothing"


def main(names: list[str]) -> None:
    """Measure, and store the results if no names are given."""
    jax.config.update("jax_num_cpu_devices", DEVICES)
    results = table(names or [*OURS, *NAMES])
    if not names:
        FILE.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
