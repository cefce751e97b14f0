"""Two processes with two devices each, on one machine."""

import os
import socket
import subprocess
import sys
from pathlib import Path

_ONE = Path(__file__).parent / "_process.py"


def test_two_processes():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    env = {k: x for k, x in os.environ.items() if k != "XLA_FLAGS"}
    both = [
        subprocess.Popen(
            [sys.executable, str(_ONE), str(k), port],
            env={**env, "JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for k in range(2)
    ]
    try:
        outputs = [one.communicate(timeout=120)[0] for one in both]
    finally:
        for one in both:
            one.kill()
    assert all("equal" in x.splitlines() for x in outputs), outputs[0][-2000:]
