"""Measurements in processes of their own: a process cannot reset its peak memory."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import jax

Numbers = dict[str, list[float]]  # quantity -> one number per round


def measured(module: str, case: Sequence[str], *options: str, longest: int) -> Numbers:
    """What a module prints about one case in its last line, as JSON.

    A process that fails or takes too long gives nothing, and its error is printed.

    Args:
        module: the name of the module.
        case: its first arguments, which also name the case in what is printed.
        options: its other arguments.
        longest: the limit in seconds.
    """
    command = [sys.executable, "-m", module, *case, *options]
    name = ", ".join(case)
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=longest, check=True
        )
        numbers = json.loads(run.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, ValueError, IndexError) as error:
        text = getattr(error, "stderr", None) or str(error)
        text = text.decode(errors="replace") if isinstance(text, bytes) else text
        print(f"{name}: {text[-2000:]}", file=sys.stderr, flush=True)
        return {}
    print(run.stderr[-1000:], end="", file=sys.stderr)  # what it warned of
    print(f"{name}: {numbers}", file=sys.stderr, flush=True)
    return numbers


def memory(peak: int, rest: int) -> tuple[int, int]:
    """The peak of the device's memory, and what is in use now.

    Args:
        peak: the peak where JAX does not count: on a CPU.
        rest: the bytes in use there.
    """
    stats = jax.devices()[0].memory_stats() or {}
    return stats.get("peak_bytes_in_use", peak), stats.get("bytes_in_use", rest)


def planned(compiled: Any) -> int:
    """The peak that XLA plans for a compiled function, with its arguments.

    Args:
        compiled: what `lower(...).compile()` returns.
    """
    plan = compiled.memory_analysis()
    kept = plan.argument_size_in_bytes + plan.output_size_in_bytes
    return kept - plan.alias_size_in_bytes + plan.temp_size_in_bytes


def nbytes(tree: Any) -> int:
    """The bytes of all arrays in a tree.

    Args:
        tree: a pytree of arrays or shapes.
    """
    leaves = jax.tree.leaves(tree)
    return sum(x.size * x.dtype.itemsize for x in leaves)
