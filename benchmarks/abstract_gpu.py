"""A GPU to lower kernels for, on a machine without one."""

from contextlib import AbstractContextManager

from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh


def abstract_gpu() -> AbstractContextManager[object]:
    """Inside, kernels are lowered for an H200, which JAX 0.11 wants to know."""
    device = AbstractDevice(device_kind="NVIDIA H200", num_cores=132, platform="gpu")
    return use_abstract_mesh(AbstractMesh((), (), abstract_device=device))
