"""Which devices a race runs on."""

import os
from typing import Any

import jax

_FLAG = "xla_force_host_platform_device_count"  # somebody else has decided


def use_all_cores() -> None:
    """Make each core of the CPU a device of its own.

    XLA computes most of a small model on one core, whatever there is beside it. A race
    shares its learning rates out over the devices. This has to be said before JAX
    begins to compute, and changes nothing afterwards, or where there is a GPU.
    """
    if _FLAG in os.environ.get("XLA_FLAGS", ""):
        return
    can = getattr(os, "sched_getaffinity", None)
    cores = len(can(0)) if can else os.cpu_count() or 1
    try:
        jax.config.update("jax_num_cpu_devices", cores)
    except RuntimeError:  # it has begun
        return


def devices_for(many: int) -> list[Any]:
    """Those to share out so many learning rates over.

    Args:
        many: how many there are.
    """
    return jax.local_devices()[:many]
