"""FSDP: params, optimizer state and batches sharded over all devices, with checkpoints.

The same program runs on one device or on many. With several processes, call
`jax.distributed.initialize()` first. A run can be resumed on other devices.
"""

from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

import steepest


def create(key: jax.Array) -> list[dict[str, jax.Array]]:
    """The params: three layers."""
    sizes = [8, 64, 64, 8]
    keys = jax.random.split(key, len(sizes) - 1)
    init = jax.nn.initializers.lecun_normal()
    layers = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [{"w": init(k, (m, n)), "b": jnp.zeros(n)} for k, m, n in layers]


def loss(params: list[dict[str, jax.Array]], x: jax.Array) -> jax.Array:
    """The mean squared error for the cumulative sum of `x`."""
    y = x
    for layer in params:
        y = jax.nn.tanh(y) @ layer["w"] + layer["b"]
    return jnp.mean((y - jnp.cumsum(x, axis=1)) ** 2)


def over_data(mesh: Mesh, x: jax.ShapeDtypeStruct) -> NamedSharding:
    """Over the first axis, if the number of devices divides it; else replicated."""
    return NamedSharding(mesh, P("data") if x.shape[0] % mesh.size == 0 else P())


def main(
    folder: str | Path, steps: int = 100, devices: Sequence[jax.Device] | None = None
) -> list[float]:
    """Train up to `steps`, from the last checkpoint in `folder`; return the losses."""
    devices = devices or jax.devices()
    auto = (AxisType.Auto,)
    mesh = jax.make_mesh((len(devices),), ("data",), axis_types=auto, devices=devices)

    # `jit` makes each param where it belongs: no device ever has the whole model.
    key = jax.random.key(0)
    shapes = jax.eval_shape(create, key)
    where = jax.tree.map(lambda x: over_data(mesh, x), shapes)
    params = jax.jit(create, out_shardings=where)(key)
    tx = steepest.adamw(steepest.cosine_decay_schedule(0.01, 100))
    run = {"params": params, "state": steepest.init(tx, params)}
    step = steepest.make_train_step(loss, tx)

    options = ocp.CheckpointManagerOptions(save_interval_steps=25, max_to_keep=2)
    losses = []
    with ocp.CheckpointManager(Path(folder).absolute(), options=options) as manager:
        last = manager.latest_step()
        if last is not None:  # restored to the shardings of `run`
            run = manager.restore(last, args=ocp.args.StandardRestore(run))
        for k in range(last or 0, steps):
            rows = jax.random.normal(jax.random.key(k), (64, 8))
            batch = jax.device_put(rows, NamedSharding(mesh, P("data")))
            params, state, value = step(run["params"], run["state"], batch)
            run = {"params": params, "state": state}
            losses.append(float(value))
            manager.save(k + 1, args=ocp.args.StandardSave(run))
    return losses


if __name__ == "__main__":
    print(main("checkpoints")[-1:])
