"""Every step can be lowered for GPUs and TPUs on a machine that has neither."""

import jax
import jax.numpy as jnp
import pytest
from jax.export import DisabledSafetyCheck, export

import steepest
from benchmarks.abstract_gpu import abstract_gpu
from steepest.engine import stepping
from steepest.engine.run import _formula

from ..zoo import distinct, few_params, Row

PLATFORMS = ("cuda", "tpu")
KERNEL = "__gpu$xla.gpu.triton"


@distinct
def test_a_step_is_lowered_for_other_devices(row: Row):
    tx = row.make()
    p = jax.eval_shape(few_params)
    state = jax.eval_shape(tx.init, p)
    exported = export(jax.jit(tx.update), platforms=PLATFORMS)(p, state, p)
    assert exported.platforms == PLATFORMS


WITH_KERNELS = {
    "adamw int8": (lambda: steepest.adamw(1e-2, memory_dtype="int8"), (64, 256)),
    "24-bit weights": (
        lambda: steepest.compensated(steepest.adamw(1e-2, memory_dtype="int8"), bits=8),
        (64, 256),
    ),
    "stochastic rounding": (
        lambda: steepest.stochastic_rounding(
            steepest.adamw(1e-2, memory_dtype="int8"), key=0
        ),
        (64, 256),
    ),
    "muon": (lambda: steepest.muon(1e-2), (1024, 1024)),
    "soap": (lambda: steepest.soap(1e-2, frequency=1), (256, 256)),
    "soap in turns": (lambda: steepest.soap(1e-2, frequency=3), (1024, 512)),
}
# The kernels of SOAP: to invert a factor, to replace bases, and to add up factors.
SOAP = ("small_inverse_cholesky", "replaced", "in_triangle")
HALF = ("24-bit weights", "stochastic rounding")


@pytest.fixture
def one_gpu(monkeypatch):
    """Programs are traced as on a machine with one GPU."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "device_count", lambda: 1)
    caches = jax.clear_caches, _formula.joined.cache_clear
    for clear in caches:
        clear()
    yield
    for clear in caches:
        clear()


@pytest.mark.usefixtures("one_gpu")
def test_so_are_steps_with_kernels():
    """One test for all, since it forgets what other tests have traced."""
    allowed = [DisabledSafetyCheck.custom_call(KERNEL)]
    for name, (make, shape) in WITH_KERNELS.items():
        tx = make()
        dtype = jnp.bfloat16 if name in HALF else jnp.float32
        p = {"w": jax.ShapeDtypeStruct(shape, dtype)}
        state = jax.eval_shape(tx.init, p)
        step = jax.jit(stepping(tx))
        exported = export(step, platforms=["cuda"], disabled_checks=allowed)
        with abstract_gpu():
            module = exported(p, state, p).mlir_module()
        assert KERNEL in module, name
        if name == "soap in turns":
            assert all(kernel in module for kernel in SOAP)
