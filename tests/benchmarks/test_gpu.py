"""Options of the benchmark on a GPU."""

import argparse

import pytest

from benchmarks import gpu


def test_names_may_contain_a_comma():
    assert gpu._names("muon,soap, every step") == ["muon", "soap, every step"]


def test_an_unknown_name():
    with pytest.raises(argparse.ArgumentTypeError, match="unknown: mu"):
        gpu._names("mu,soap")


def test_cases_of_memory_can_be_chosen():
    names = gpu._names("adamw, int8, 24-bit weights,muon, int8")
    assert names == ["adamw, int8, 24-bit weights", "muon, int8"]
    tree = gpu.TINY["billion"]
    assert {x.optimizer for x in gpu.memory.of_few_bits(tree, {}, names)} == {names[0]}
    assert {x.optimizer for x in gpu.memory.of_muon(tree, {}, names)} == {names[1]}
