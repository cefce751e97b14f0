"""State per device and what `zero` sends: `python -m benchmarks.zero [NAME ...]`.

For a GPT of one layer on eight devices that share nothing but the data: the bytes of
state on one device with replicated params, with and without `zero`, and the collective
operations above 1 KB of a step of `zero`. Nothing is run: the compiled step shows it.
"""

import sys
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import steepest

from .collectives import collectives
from .table import amount, markdown
from .trees import Tree, TREES

DEVICES, RATE = 8, 1e-3
CASES = {
    "adamw": lambda: steepest.adamw(RATE),
    "adamw, int8": lambda: steepest.adamw(RATE, memory_dtype="int8"),
    "lion": lambda: steepest.lion(RATE),
    "adafactor": lambda: steepest.adafactor(RATE),
    "muon": lambda: steepest.muon(RATE),
    "soap": lambda: steepest.soap(RATE),
    "shampoo": lambda: steepest.shampoo(RATE),
}


def per_device(tx: Any, params: Any) -> int:
    """The bytes of the state of `tx` on one device."""
    shapes = jax.tree.leaves(jax.eval_shape(tx.init, params))
    where = jax.tree.leaves(steepest.shardings(tx, params))
    return sum(
        prod(its.shard_shape(x.shape)) * jnp.dtype(x.dtype).itemsize
        for x, its in zip(shapes, where, strict=True)
    )


def measured(name: str, tree: Tree) -> list[str]:
    """A line of the table.

    Args:
        name: one of the cases.
        tree: the params.
    """
    mesh = jax.make_mesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
    everywhere = NamedSharding(mesh, PartitionSpec())
    struct = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=everywhere)
    params = jax.tree.map(struct, tree.shapes)
    plain = CASES[name]()
    tx = steepest.zero(plain)
    state = jax.tree.map(
        lambda x, its: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=its),
        jax.eval_shape(plain.init, params),
        steepest.shardings(tx, params).inner_state,
    )
    whole = steepest.shardings(tx, params)._replace(inner_state=state)
    program = steepest.make_step(tx).lower(params, whole, params).compile()
    found = collectives(program.as_text())
    sent = [f"{n} {kind}s, {amount(size, 'B')}" for kind, (n, size) in found.items()]
    bytes_ = [amount(per_device(x, params), "B") for x in (plain, tx)]
    return [name, *bytes_, "; ".join(sent)]


def main() -> None:
    """Print the table."""
    tree = TREES["middle"]
    print(f"{tree.says}: {tree.leaves} leaves, {amount(4 * tree.params, 'B')}")
    lines = [measured(name, tree) for name in sys.argv[1:] or CASES]
    print(markdown(["optimizer", "replicated", "zero", "notes"], lines))


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
