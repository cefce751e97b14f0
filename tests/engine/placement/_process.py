"""One of two processes with two devices each: `python _process.py NUMBER PORT`."""

import sys

import jax

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{sys.argv[2]}", 2, int(sys.argv[1]))

import numpy as np  # noqa: E402  (JAX first: the processes must meet)
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402

import steepest  # noqa: E402

MESH = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))
HOST = {"w": np.ones((8, 4), np.float32), "b": np.ones(8, np.float32)}
CASES = [
    (steepest.adamw(0.1), P("data")),
    (steepest.zero(steepest.adamw(0.1)), P()),
    (steepest.noisy_sgd(0.1, key=0), P("data")),
]

for tx, spec in CASES:
    where = NamedSharding(MESH, spec)
    put = lambda x, where=where: jax.make_array_from_callback(
        x.shape, where, lambda at: x[at]
    )
    p, g = jax.tree.map(put, HOST), jax.tree.map(put, HOST)
    there = steepest.shardings(tx, p)
    step, results = steepest.make_step(tx), []
    # A state that is made here, and one that every process has read from a file.
    for state in (steepest.init(tx, p), steepest.place(tx.init(HOST), there)):
        new, state = step(jax.tree.map(put, HOST), state, g)
        rows = zip(jax.tree.leaves(state), jax.tree.leaves(there), strict=True)
        assert all(x.sharding.is_equivalent_to(its, x.ndim) for x, its in rows)
        assert new["w"].sharding.is_equivalent_to(where, 2)
        results.append([np.asarray(x.data) for x in new["w"].addressable_shards])
    np.testing.assert_array_equal(*results)
print("equal")
