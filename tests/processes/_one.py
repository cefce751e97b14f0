"""One of two processes: `python -m ... NUMBER PORT FOLDER KILLED NAMES`.

The first pair trains, saves, and trains on. Then both save again, and one of them is
killed. The next pair goes on from the last whole checkpoint.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import jax


def main(number: int, port: str, folder: Path, killed: int, names: list[str]) -> None:
    """Train, and write losses and hashes to `folder`."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, number)
    import orbax.checkpoint as ocp  # a test skips if there is none

    from ._cases import AFTER, alike, BEFORE, digest, mesh_of, Runs  # makes arrays

    runs, results, where = Runs(names, mesh_of(4)), {}, folder / "checkpoints"
    with ocp.CheckpointManager(where) as manager:
        last = results["last"] = manager.latest_step()
        if last is None:
            now = runs.begin()
            placed = runs.placed()
            results["placed"] = {k: alike(placed[k], x) for k, x in now.items()}
            results["losses"] = runs.train(now, 0, BEFORE)
            manager.save(BEFORE, args=ocp.args.StandardSave(now))
        else:
            now = manager.restore(last, args=ocp.args.StandardRestore(runs.target()))
        results["saved"] = {k: digest(x) for k, x in now.items()}
        results["next"] = runs.train(now, BEFORE, BEFORE + AFTER)
        results["end"] = {k: digest(x) for k, x in now.items()}
    new = folder / f"{number}.new"
    new.write_text(json.dumps(results))
    new.rename(folder / f"{number}.json")
    if last is None:
        barrier = ocp.multihost.get_barrier_sync_fn()
        barrier = _dying(barrier) if number == killed else barrier
        how = ocp.AsyncOptions(barrier_sync_fn=barrier)
        options = ocp.CheckpointManagerOptions(async_options=how)
        with ocp.CheckpointManager(where, options=options) as manager:
            manager.save(BEFORE + AFTER, args=ocp.args.StandardSave(now))


def _dying(barrier: Callable[..., None]) -> Callable[..., None]:
    """A barrier that a process does not live to reach when its shards are written."""

    def wait(key: str, timeout_ms: int) -> None:
        if "write_complete" in key:
            os.kill(os.getpid(), signal.SIGKILL)
        barrier(key=key, timeout_ms=timeout_ms)

    return wait


if __name__ == "__main__":
    number, port, folder, killed, *names = sys.argv[1:]
    main(int(number), port, Path(folder), int(killed), names)
