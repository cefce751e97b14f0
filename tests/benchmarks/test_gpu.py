"""Options of the benchmark on a GPU."""

import argparse

import pytest

from benchmarks import gpu


def test_names_may_contain_a_comma():
    assert gpu._names("muon,soap, every step") == ["muon", "soap, every step"]


def test_an_unknown_name():
    with pytest.raises(argparse.ArgumentTypeError, match="unknown: mu"):
        gpu._names("mu,soap")
