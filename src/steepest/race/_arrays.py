"""Arrays that all runs read, placed on the devices once per race."""

import hashlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


class Shelf:
    """A cache of arrays on the devices, so that they are transferred only once.

    Arrays with equal digests are shared by all optimizers.
    """

    def __init__(self) -> None:
        self._placed: dict[Any, Any] = {}
        self._digests: dict[int, tuple[Any, str]] = {}  # by `id`; the array stays alive

    def place(self, arrays: Sequence[Any], mesh: Mesh) -> list[Any]:
        """Replicate arrays on all devices.

        Args:
            arrays: NumPy or JAX arrays, or Python numbers.
            mesh: the devices.
        """
        everywhere = NamedSharding(mesh, PartitionSpec())
        devices = tuple(device.id for device in mesh.devices.flat)
        placed = []
        for x in arrays:
            key = self._digest(x), devices
            if key not in self._placed:
                self._placed[key] = jax.device_put(x, everywhere)
            placed.append(self._placed[key])
        return placed

    def _digest(self, x: Any) -> str:
        """The digest, computed once per array: arrays may have gigabytes."""
        if id(x) not in self._digests:
            self._digests[id(x)] = x, digest(x)
        return self._digests[id(x)][1]


def digest(x: Any) -> str:
    """A digest of the values, the shape and the dtype.

    Args:
        x: a NumPy or JAX array, which may hold keys, or a Python number.
    """
    kind = jax.typeof(x)
    if jnp.issubdtype(kind.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    values = np.ascontiguousarray(x)
    head = f"{kind.str_short()} {getattr(kind, 'weak_type', False)} {values.dtype}"
    sha = hashlib.sha256(head.encode())
    sha.update(memoryview(values.reshape(-1).view(np.uint8)))  # pyright: ignore
    return sha.hexdigest()
