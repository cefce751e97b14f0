"""The benchmark of `offload` measures each case, and leaves out what fails."""

import shutil
import sys

import jax
import pytest

from benchmarks import offload
from benchmarks.trees import TINY

TREE = TINY["gpt2-xl"]


@pytest.mark.parametrize("who", ["steepest", "optax"])
def test_numbers_of_one_case(who, monkeypatch):
    monkeypatch.setattr(offload, "ROW", 1)
    tx = offload.CASES["offloaded adamw"][who]()
    with jax.numpy_dtype_promotion("standard"):  # for Optax
        numbers = offload.steps(who, tx, TREE) | offload.init(who, tx, TREE)
    assert numbers.keys() == offload.QUANTITIES.keys()
    assert len(numbers["step"]) == offload.ROUNDS
    assert min(numbers["peak"]) >= 4 * 4 * TREE.params  # params, gradients and state


def test_a_case_that_fails_is_left_out(monkeypatch, capsys):
    def measured(optimizer, who, mode, tree, quick):
        return {"step": [2.0, 1.0]} if (who, mode) == ("steepest", "steps") else {}

    monkeypatch.setattr(offload, "_measured", measured)
    rows = list(offload.of_host_memory(TREE, {}))
    assert [row.optimizer for row in rows] == list(offload.CASES)
    assert {row.quantity for row in rows} == {"step"}
    assert all(row.times == {"steepest": [2.0, 1.0]} for row in rows)
    assert "| plain adamw           | steepest | 1.00 s |" in capsys.readouterr().out


def test_a_process_that_fails_gives_nothing(monkeypatch, capsys):
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    assert offload._measured("plain adamw", "optax", "init", "gpt2", True) == {}
    assert capsys.readouterr().err.startswith("plain adamw, optax, init: Command ")
