"""The devices of a race."""

import os
from collections.abc import Sequence
from typing import Any

import jax

_FLAG = "xla_force_host_platform_device_count"  # set by the user


def use_all_cores() -> None:
    """Make each CPU core a JAX device.

    XLA runs most of a small model on one core, even if others are idle. A race
    distributes its learning rates over the devices. Call this before JAX computes
    anything; later, or with a GPU, it has no effect.
    """
    if _FLAG in os.environ.get("XLA_FLAGS", ""):
        return
    can = getattr(os, "sched_getaffinity", None)
    cores = len(can(0)) if can else os.cpu_count() or 1
    try:
        jax.config.update("jax_num_cpu_devices", cores)
    except RuntimeError:  # JAX is already initialised
        return


def devices_for(many: int) -> list[Any]:
    """The devices for some learning rates: at most one per rate.

    Args:
        many: number of learning rates.
    """
    return jax.local_devices()[:many]


def group_size(devices: Sequence[Any], rates: int) -> int:
    """How many learning rates run together if some of them will be stopped.

    The others take turns with the same program, so that it is not compiled again for
    fewer: on two CPU cores, that would cost as much as 130 steps of all 30 runs of
    `small_bytes`. There, a step of one run takes equally long in groups of 2, 4 and 6
    learning rates. On an accelerator, larger groups are faster.

    Args:
        devices: each gets equally many learning rates.
        rates: number of learning rates.
    """
    many = len(devices)
    least = many if devices[0].platform == "cpu" else -(-rates // 2)
    return -(-least // many) * many
