"""Every optimizer of the zoo on a small model, on any mesh and in any process."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

import steepest

from ..zoo import ZOO

BEFORE, AFTER = 10, 3  # steps before and after the checkpoint
# Two layers. The bias of the second can be sharded over 4 devices, but not over 8.
SHAPES = {
    "one": {"w": (8, 16), "b": (16,)},
    "two": {"w": (16, 4), "b": (4,)},
    "s": (),
}


@dataclass(frozen=True)
class Case:
    """An optimizer, and how the params are sharded."""

    tx: steepest.GradientTransformation
    fsdp: bool = True  # over the axis `data`; otherwise they are replicated
    wide: bool = False  # with a matrix that is large enough for memory in 8 bits
    near: float = 1e-6  # relative error of the next losses on another mesh


# These amplify rounding errors. In float64, the first three agree to 1e-14.
NEAR = dict.fromkeys(["adamuon", "normuon", "normuon_rows"], 1e-5)
NEAR |= {"muon_float16": 5e-3}
# The rows as users make them, with typed random keys.
CASES = {
    row.name: Case(
        row.maker(**row.hyper, **row.options), near=NEAR.get(row.name, Case.near)
    )
    for row in ZOO
}
CASES |= {
    "zero": Case(steepest.zero(steepest.adamw(0.1)), fsdp=False),
    "offload": Case(steepest.offload(steepest.adam(0.1))),
    "packed": Case(steepest.packed(steepest.adam(0.1), below=64), fsdp=False),
    "int8": Case(steepest.adam(0.1, memory_dtype="int8"), wide=True),
    "int8 in zero": Case(
        steepest.zero(steepest.lion(0.01, memory_dtype="int8")), fsdp=False, wide=True
    ),
}


def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    """The mean squared error of a network with two layers."""
    one, two = params["one"], params["two"]
    hidden = jnp.tanh(x @ one["w"] + one["b"][None])
    found = params["s"] * (hidden @ two["w"] + two["b"][None])
    more = jnp.mean(params["wide"] ** 2) if "wide" in params else 0.0
    return jnp.mean((found - y) ** 2) + more


def mesh_of(devices: int) -> Mesh:
    """A mesh of the first devices, of all processes together."""
    kind, which = (AxisType.Auto,), jax.devices()[:devices]
    return jax.make_mesh((devices,), ("data",), axis_types=kind, devices=which)


class Runs:
    """Several optimizers that train on one mesh."""

    def __init__(self, names: list[str], mesh: Mesh) -> None:
        self.cases, self.mesh = {k: CASES[k] for k in names}, mesh
        self.steps = {
            k: steepest.make_train_step(loss, case.tx) for k, case in self.cases.items()
        }

    def begin(self) -> dict[str, Any]:
        """New params, and states that are made from them."""
        return self._made(lambda tx, host, params: steepest.init(tx, params))

    def placed(self) -> dict[str, Any]:
        """The same, from states of which every process has the whole."""
        return self._made(
            lambda tx, host, params: steepest.place(
                tx.init(host), steepest.shardings(tx, params)
            )
        )

    def target(self) -> dict[str, Any]:
        """Shapes and shardings for a restore."""
        struct = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)
        return jax.tree.map(struct, self.begin())

    def train(self, runs: dict[str, Any], start: int, stop: int) -> dict[str, Any]:
        """Train from step to step, and return the losses of each optimizer."""
        losses = {}
        for name, run in runs.items():
            params, state, values = run["params"], run["state"], []
            for t in range(start, stop):
                x, y = (_put(x, self.mesh) for x in _batch(t))
                params, state, value = self.steps[name](params, state, x, y)
                values.append(float(value))
            runs[name], losses[name] = {"params": params, "state": state}, values
        return losses

    def _made(self, init: Callable[..., Any]) -> dict[str, Any]:
        runs = {}
        for name, case in self.cases.items():
            host = _params(case)
            put = lambda x, case=case: _put(x, self.mesh, case.fsdp)
            params = jax.tree.map(put, host)
            runs[name] = {"params": params, "state": init(case.tx, host, params)}
        return runs


def digest(run: Any) -> str:
    """A hash of the shards of a run in this process."""
    known = hashlib.sha256()
    for x in _shards(run):
        known.update(x.tobytes())
    return known.hexdigest()


def alike(one: Any, other: Any) -> bool:
    """Whether two runs are on the same devices, and nearly equal."""
    there = lambda x, y: x.sharding.is_equivalent_to(y.sharding, x.ndim)
    near = lambda x, y: np.allclose(x, y, 1e-6)  # norms are summed in another order
    return all(map(there, jax.tree.leaves(one), jax.tree.leaves(other))) and all(
        map(near, _shards(one), _shards(other))
    )


def _shards(run: Any) -> Iterator[np.ndarray]:
    """The shards of all arrays in this process."""
    for x in jax.tree.leaves(run):
        is_key = jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
        for shard in (jax.random.key_data(x) if is_key else x).addressable_shards:
            yield np.asarray(shard.data)


def _params(case: Case) -> dict[str, Any]:
    """The same numbers in every process."""
    rng = np.random.default_rng(0)
    is_shape = lambda x: isinstance(x, tuple)
    # The scalar is a factor, and begins near one.
    made = lambda shape: rng.normal(size=shape) / 4 + (shape == ())
    shapes = {**SHAPES, "wide": (64, 64)} if case.wide else SHAPES
    as_float = lambda shape: np.asarray(made(shape), np.float32)
    return jax.tree.map(as_float, shapes, is_leaf=is_shape)


def _batch(t: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1000 + t)
    x = rng.normal(size=(8, 8)).astype(np.float32)
    return x, np.tanh(np.cumsum(x, axis=1)[:, :4])


def _put(x: np.ndarray, mesh: Mesh, sharded: bool = True) -> jax.Array:
    """An array of which every process has the whole, on the mesh."""
    fits = sharded and x.ndim and x.shape[0] % mesh.size == 0
    where = NamedSharding(mesh, P("data") if fits else P())
    return jax.make_array_from_callback(x.shape, where, lambda at: x[at])
