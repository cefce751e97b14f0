"""Where and when the numbers were measured."""

import os
import platform
from datetime import datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import jax


def describe() -> dict[str, str]:
    """What a reader needs to compare these numbers with others."""
    device = jax.devices()[0]
    # Measured before our own work starts, so this is the load of other programs.
    load = os.getloadavg()[0]
    return {
        "cpu": f"{_cpu()}, {os.cpu_count()} cores, load {load:.1f} at the start",
        "device": _cpu() if device.platform == "cpu" else device.device_kind,
        "date": datetime.now().astimezone().isoformat(" ", "minutes"),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("jax", "jaxlib", "optax", "steepest")},
    }


def _version(name: str) -> str:
    """The version of a package that is installed, or merely on the path."""
    try:
        return version(name)
    except PackageNotFoundError:
        found = import_module(name) if find_spec(name) else None
        return getattr(found, "__version__", "not installed")


def _cpu() -> str:
    """The CPU model, if Linux reports it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1] for line in lines if line.startswith("model name")]
    return models[0].strip() if models else platform.processor()
