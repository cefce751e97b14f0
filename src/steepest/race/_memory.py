"""The number of runs that fit in memory at once."""

import os
from pathlib import Path
from typing import Any

from ._hoist import size

_SHARE = 0.8  # of the free memory: the estimate is rough, and others need some
_CGROUP = Path("/sys/fs/cgroup")  # has the memory limit of a container


class OutOfMemory(MemoryError):
    """Not even one run fits."""


def runs_that_fit(program: Any) -> int:
    """How many runs of a program fit in memory at once; at most as many as now.

    XLA reports what the compiled program needs. Waiting runs keep their params and
    state in host memory.

    Args:
        program: a `Program`.
    """
    shared = program.devices[0].platform == "cpu"  # all devices use one memory
    free = available(program.devices[0])
    needs = program.compiled.memory_analysis()
    if free is None or needs is None:
        return program.at_once
    budget = _SHARE * free
    placed = sum(map(size, program.traced.arrays))  # already allocated
    need = needs.argument_size_in_bytes + needs.output_size_in_bytes
    need += needs.temp_size_in_bytes - needs.alias_size_in_bytes - placed
    need *= len(program.devices) if shared else 1
    plan, one = program.plan, program.traced.bytes_per_run
    waiting = len(plan.rates) * len(plan.seeds) * one
    if not program.split and need <= budget:
        return program.at_once
    host = _SHARE * (free if shared else _host_memory() or float("inf"))
    if waiting > host:
        raise OutOfMemory(
            f"its {len(plan.rates) * len(plan.seeds)} runs keep {told(waiting)} of "
            f"params and state, but only {told(host)} are free. Use fewer learning "
            "rates or seeds, or a smaller model."
        )
    room = budget - waiting if shared else budget
    if need <= room:
        return program.at_once
    fitting = int(program.at_once * room / need)
    if fitting < 1 and program.at_once == 1:
        raise OutOfMemory(
            f"one run needs about {told(need)}, but only {told(room)} are free. Use a "
            "smaller model or batch; `at_once=1` (--at-once 1) tries it anyway."
        )
    return max(1, min(fitting, program.at_once - 1))


def ran_out(error: BaseException) -> bool:
    """Whether an error of JAX, NumPy or Python means that memory ran out.

    Args:
        error: any error.
    """
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


def available(device: Any) -> int | None:
    """The free memory of a device in bytes; `None` if unknown.

    Args:
        device: a JAX device.
    """
    if device.platform == "cpu":
        return _host_memory()
    stats = device.memory_stats() or {}
    if "bytes_limit" not in stats:
        return None
    return stats["bytes_limit"] - stats.get("bytes_in_use", 0)


def told(number: int | float) -> str:
    """Format a number of bytes in a suitable unit.

    Args:
        number: of bytes.

    >>> told(1.5e9), told(12e6)
    ('1.5 GB', '12 MB')
    """
    if number >= 1e9:
        return f"{number / 1e9:.1f} GB"
    if number >= 1e6:
        return f"{number / 1e6:.0f} MB"
    return f"{max(number, 0) / 1e3:.0f} kB"


def _host_memory() -> int | None:
    """The free memory of the machine or the container, whichever is less."""
    free = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError):
        pass
    try:
        most = (_CGROUP / "memory.max").read_text().strip()
        if most != "max":
            used = int((_CGROUP / "memory.current").read_text())
            for line in (_CGROUP / "memory.stat").read_text().splitlines():
                if line.startswith("inactive_file "):  # reclaimable cache
                    used -= int(line.split()[1])
            free.append(max(0, int(most) - used))
    except (OSError, ValueError):
        pass
    if not free:
        try:
            free.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, OSError, ValueError):
            return None
    return min(free)
