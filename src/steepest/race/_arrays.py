"""Arrays that all runs read: checked, and placed on the devices once per race."""

import hashlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.typing import ArrayLike
from jaxtyping import Array


class Shelf:
    """A cache of arrays on the devices, so that they are transferred only once.

    Arrays with equal digests are shared by all optimizers.
    """

    def __init__(self) -> None:
        self._placed: dict[tuple[str, tuple[int, ...]], Array] = {}
        self._digests: dict[
            int, tuple[ArrayLike, str]
        ] = {}  # by `id`; the array stays alive

    def place(self, arrays: Sequence[ArrayLike], mesh: Mesh) -> list[Array]:
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

    def _digest(self, x: ArrayLike) -> str:
        """The digest, computed once per array: arrays may have gigabytes."""
        if id(x) not in self._digests:
            self._digests[id(x)] = x, digest(x)
        return self._digests[id(x)][1]


def narrowed(name: str, x: np.ndarray) -> np.ndarray:
    """An array in the dtype that it has on the devices. Integers must fit into it.

    Args:
        name: of the array, for errors.
        x: a NumPy array.
    """
    dtype = jax.dtypes.canonicalize_dtype(x.dtype)
    if x.size and dtype != x.dtype and np.issubdtype(dtype, np.integer):
        limits, ends = np.iinfo(dtype), (int(x.min()), int(x.max()))
        for end in ends:
            if not limits.min <= end <= limits.max:
                raise ValueError(
                    f"{name} has the integer {end}, which does not fit into "
                    f"{dtype.name}, and JAX has {x.dtype.name} turned off. Remove this "
                    "array, number its values anew (`numpy.unique(x, "
                    "return_inverse=True)[1]`), or turn it on: "
                    '`jax.config.update("jax_enable_x64", True)`.'
                )
    return x.astype(dtype, copy=False)


def digest(x: ArrayLike) -> str:
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
