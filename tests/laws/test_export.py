"""Every step can be lowered for GPUs and TPUs on a machine that has neither."""

import jax
from jax.export import export

from ..zoo import distinct, few_params, Row

PLATFORMS = ("cuda", "tpu")


@distinct
def test_a_step_is_lowered_for_other_devices(row: Row):
    tx = row.make()
    p = jax.eval_shape(few_params)
    state = jax.eval_shape(tx.init, p)
    exported = export(jax.jit(tx.update), platforms=PLATFORMS)(p, state, p)
    assert exported.platforms == PLATFORMS
