"""Start two processes, and go on in one process where they stopped."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from ._cases import AFTER, BEFORE, CASES, mesh_of, Runs

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Result:
    """How the runs of one optimizer differ."""

    name: str
    losses: tuple[float, float]  # the first, and the last before the checkpoint
    drift: dict[int, float]  # devices -> relative difference of the next losses
    wrong: list[str]  # what is not as it should be


def compare(folder: Path, names: list[str], **how: Any) -> list[Result]:
    """Train in two processes, and go on in two, and in one on 8, 2 and 1 devices."""
    first = two_processes(folder, names, **how)
    left = {x.name for x in (folder / "checkpoints").iterdir()}
    # Process 1 or 0 was killed while they saved for the second time.
    assert left == {f"{BEFORE}", f"{BEFORE + AFTER}.orbax-checkpoint-tmp"}, left
    again = two_processes(folder, names, **how)
    assert [x["last"] for x in again] == [BEFORE, BEFORE]
    one = {n: one_process(folder, names, n) for n in (8, 2, 1)}
    return [_compared(name, first, again, one) for name in names]


def _compared(name: str, first: list[Any], again: list[Any], one: Any) -> Result:
    """The result for one optimizer."""
    of = lambda runs, *keys: [[run[key][name] for key in keys] for run in runs]
    (losses, following), other = of(first, "losses", "next")
    pairs = {n: zip(x[name], following, strict=True) for n, x in one.items()}
    drift = {n: max(abs(a / b - 1) for a, b in x) for n, x in pairs.items()}
    same = "saved", "next", "end"
    checks = {
        "two processes have other losses": [losses, following] == other,
        "`place` differs from `init`": of(first, "placed") == [[True], [True]],
        "two processes go on differently": of(first, *same) == of(again, *same),
        "one process goes on differently": max(drift.values()) < CASES[name].near,
    }
    wrong = [text for text, right in checks.items() if not right]
    return Result(name, (losses[0], losses[-1]), drift, wrong)


def two_processes(
    folder: Path, names: list[str], killed: int = 1, timeout: float = 300
) -> list[Any]:
    """Run two processes with two devices each, and return the results of both.

    Args:
        folder: where they save, and go on from the last checkpoint.
        names: of the optimizers.
        killed: the process that is killed in the second save.
        timeout: in seconds.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", f"{__package__}._one"]
    results, both = [folder / f"{k}.json" for k in range(2)], []
    for k, path in enumerate(results):
        path.unlink(missing_ok=True)
        rest = [str(k), port, str(folder), str(killed), *names]
        with path.with_suffix(".log").open("w") as log:
            how = {**_around(), "stdout": log, "stderr": log}
            both.append(subprocess.Popen([*command, *rest], **how))
    end = time.monotonic() + timeout
    try:
        # If one of them is killed, the other waits for it, and has to be killed, too.
        while time.monotonic() < end:
            codes = [one.poll() for one in both]
            if any(codes) or None not in codes:
                break
            time.sleep(0.1)
    finally:
        for one in both:
            one.kill()
            one.wait()
    for path in results:
        if not path.exists():
            log = path.with_suffix(".log").read_text()
            raise RuntimeError(f"A process failed, or took too long.\n{log[-3000:]}")
    return [json.loads(path.read_text()) for path in results]


def one_process(folder: Path, names: list[str], devices: int) -> dict[str, list[float]]:
    """The next losses from the last checkpoint, on some devices of this process."""
    import orbax.checkpoint as ocp

    runs = Runs(names, mesh_of(devices))
    with ocp.CheckpointManager(folder / "checkpoints") as manager:
        target = ocp.args.StandardRestore(runs.target())
        now = manager.restore(manager.latest_step(), args=target)
    return runs.train(now, BEFORE, BEFORE + AFTER)


def _around() -> dict[str, Any]:
    """The folder and the environment of a process: two devices, and the same cache."""
    flags = re.sub(r"(device_count)=\d+", r"\1=2", os.environ["XLA_FLAGS"])
    same = "compilation_cache_dir persistent_cache_min_compile_time_secs"
    same += " persistent_cache_min_entry_size_bytes"
    value = lambda name: str(getattr(jax.config, f"jax_{name}"))
    env = {f"JAX_{name.upper()}": value(name) for name in same.split()}
    env |= {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    return {"cwd": ROOT, "env": {**os.environ, **env}}
