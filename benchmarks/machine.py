"""Where and when the numbers were taken."""

import os
import platform
from datetime import datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import jax


def describe() -> dict[str, str]:
    """What a reader must know to compare these numbers with others."""
    device = jax.devices()[0]
    # Other programs on the machine show here, before ours has begun.
    load = os.getloadavg()[0]
    return {
        "cpu": f"{_cpu()}, {os.cpu_count()} cores, load {load:.1f} at the start",
        "device": _cpu() if device.platform == "cpu" else device.device_kind,
        "date": datetime.now().astimezone().isoformat(" ", "minutes"),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("jax", "jaxlib", "optax", "steepest")},
    }


def _version(name: str) -> str:
    """Of an installed package, or of one that merely lies on the path."""
    try:
        return version(name)
    except PackageNotFoundError:
        return getattr(import_module(name), "__version__", "not installed")


def _cpu() -> str:
    """The model, where Linux says it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1] for line in lines if line.startswith("model name")]
    return models[0].strip() if models else platform.processor()
