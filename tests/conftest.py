"""Strict settings, and eight devices to test sharding."""

import contextlib
import functools
import gc
import itertools
import os
from importlib.metadata import version
from pathlib import Path

import threadpoolctl

# Arrays are tiny here and thousands of programs are compiled, so LLVM need not
# optimize. XLA's older emitters compile in half the time, and a program in one piece,
# for one thread, in 0.6 of that (JAX 0.10.2). JAX 0.12 does not have the older
# emitters, and an unknown flag ends the process.
flags = ["--xla_force_host_platform_device_count=8"]
flags += ["--xla_backend_optimization_level=0"]
if version("jaxlib").startswith("0.10."):
    flags += ["--xla_cpu_use_fusion_emitters=false"]
    flags += ["--xla_cpu_parallel_codegen_split_count=1"]
os.environ["XLA_FLAGS"] = " ".join([*flags, os.environ.get("XLA_FLAGS", "")])
# On two busy cores, a script with 8 fake devices died in a rendezvous: SOAP with
# `reshard`, for 9 matrices of 64 x 128 (JAX 0.10.2). It passed with NPROC=32. How XLA
# uses its threads was not traced.
os.environ.setdefault("NPROC", "32")

# JAX calls LAPACK in SciPy's OpenBLAS, whose threads wait for each other in a loop. On
# two busy cores, tests with matrices of 384 x 384 took 7 times as long (SciPy 1.17).
# NumPy's OpenBLAS is already loaded, by a plugin of pytest.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
threadpoolctl.threadpool_limits(int(os.environ["OPENBLAS_NUM_THREADS"]))

# Programs are many objects that live long: looking for garbage among them takes time.
gc.set_threshold(50_000, 20, 50)

import hypothesis  # noqa: E402
import jax  # noqa: E402  (the flags must be set before)
import jaxtyping  # noqa: E402
import pytest  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402

from . import jaxtyped  # noqa: E402

# The same checks in a third of the time (jaxtyping 0.3.11).
jaxtyping.jaxtyped = jaxtyping._decorator.jaxtyped = jaxtyped

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Most of the time is compilation. Programs are cached for other workers and later runs.
_KEPT = Path(__file__).parent.parent / ".pytest_cache" / "xla"
jax.config.update("jax_compilation_cache_dir", str(_KEPT))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

# JAX makes a context of MLIR for every program, with all dialects: 3 ms, and longer the
# more contexts are alive. All programs can share one (JAX 0.10.2).
mlir.make_ir_context = functools.cache(mlir.make_ir_context)

# The same examples in every run, however slow or busy the machine is.
# `python -m tests.fuzz` tries others.
hypothesis.settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("repeatable")

# Linux lets a process map 65530 pieces of memory, and a program of XLA takes several.
# At the limit, XLA's compiler crashes (JAX 0.10.2).
_MAPS, _MANY, _OFTEN = Path("/proc/self/maps"), 40_000, 50
_ended = itertools.count(1)


def pytest_addoption(parser):
    """`--all-layouts`: every optimizer in every layout, on devices and in few bits."""
    text = "test every optimizer in every placement and storage, in 10 minutes"
    parser.addoption("--all-layouts", action="store_true", help=text)


def pytest_collection_modifyitems(items):
    """The laws of one row of the zoo run one after the other, and share its programs.

    The engine caches 128 formulas, fewer than the zoo has.
    """
    row = lambda item: (
        getattr(item, "callspec", None) and item.callspec.params.get("row")
    )
    order: dict[int, int] = {}
    for item in items:
        order.setdefault(id(row(item)), len(order))
    items.sort(key=lambda item: order[id(row(item))])


def pytest_runtest_teardown():
    """Drop all programs if there are many."""
    if next(_ended) % _OFTEN == 0 and _MAPS.exists():
        if _MAPS.read_bytes().count(b"\n") > _MANY:
            jax.clear_caches()
            gc.collect()


@pytest.fixture
def compiles():
    """`with compiles(n):` checks that XLA compiles `n` programs, cached or not."""
    event, seen = "/jax/core/compile/backend_compile_duration", []
    listen = lambda name, *_, **__: seen.append(name) if name == event else None
    jax.monitoring.register_event_duration_secs_listener(listen)

    @contextlib.contextmanager
    def exactly(n):
        before = len(seen)
        yield
        assert len(seen) - before == n

    yield exactly
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.fixture
def as_users_do():
    """Turn off runtime type checks, so that errors come from steepest itself."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
