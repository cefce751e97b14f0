"""Strict by configuration; eight devices, so that sharding can be seen."""

import os
from pathlib import Path

# Arrays are tiny here, and thousands of programs compiled: LLVM need not optimize.
flags = ["--xla_force_host_platform_device_count=8"]
flags += ["--xla_backend_optimization_level=0", os.environ.get("XLA_FLAGS", "")]
os.environ["XLA_FLAGS"] = " ".join(flags)

import jax  # noqa: E402  (the flags must be set before)
import jaxtyping  # noqa: E402
import pytest  # noqa: E402

from steepest.engine import _formula  # noqa: E402

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Compiling is most of the time. What one worker or an earlier run has compiled is kept.
_KEPT = Path(__file__).parent.parent / ".pytest_cache" / "xla"
jax.config.update("jax_compilation_cache_dir", str(_KEPT))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

_fingerprint = _formula.fingerprint


def _of_what_is_checked(f, *inside):
    """Look through jaxtyping, which wraps a function anew each time it is defined.

    Without this no formula would be shared while types are checked.
    """
    return _fingerprint(getattr(f, "__wrapped__", f), *inside)


_formula.fingerprint = _of_what_is_checked


@pytest.fixture
def as_users_do():
    """Types are not checked on every call: what is said is what steepest says."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
