"""The benchmark of the time to a compiled step."""

import jax

from benchmarks import compile as benchmark
from benchmarks.trees import TINY


def test_it_measures_both_libraries():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        times, sizes = benchmark.measured(["muon"], TINY["matrices-96"], 1)
    assert list(sizes) == [benchmark.THEIRS, "muon"]
    head, _, theirs, ours = benchmark.table(times, sizes).splitlines()
    ratios = [k for k, name in enumerate(head.split("|")) if name.strip() == "ratio"]
    assert [theirs.split("|")[k].strip() for k in ratios] == ["1.00", "1.00"]
    assert all(float(ours.split("|")[k]) > 0 for k in ratios)
    assert all(min(size) > 0 for size in sizes.values())
