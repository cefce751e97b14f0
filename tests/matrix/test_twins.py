"""Matrices of 4 x 12 and of 12 x 4 share a stack."""

from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.engine.run import _every, _stacks

G = {"up": jnp.ones((4, 12)), "down": jnp.ones((12, 4))}
# For each transformation, the number of stacks for two matrices of transposed shapes,
# in a step. The matrix formulas of NorMuon and SOAP have memory for rows or columns, so
# their matrices are not transposed.
STACKS = {
    "scale_by_polar": 1,
    "scale_by_normuon": 2,
    "scale_by_adamuon": 1,
    "scale_by_lmo": 1,
    "scale_by_soap": 2,
}


@pytest.mark.parametrize("name", STACKS)
def test_the_number_of_stacks(name):
    tx = getattr(steepest, name)()
    with mock.patch.object(_stacks, "stacking", wraps=_stacks.stacking) as stacking:
        jax.eval_shape(tx.update, G, jax.eval_shape(tx.init, G), G)
    assert stacking.call_count == STACKS[name]


def test_sides_of_equal_length_are_corrected_together():
    """The four sides of two matrices are two stacks of two."""
    tx = steepest.scale_by_soap(frequency=2)
    with mock.patch.object(_every, "_changing", wraps=_every._changing) as changing:
        jax.eval_shape(tx.update, G, jax.eval_shape(tx.init, G), G)
    assert [call.args[2] for call in changing.call_args_list] == [((0,), (1,))] * 2


def test_a_vector_is_no_matrix_of_one_row():
    p = {"a": jnp.ones(5), "b": jnp.ones((1, 5)), "c": jnp.ones((5, 1))}
    tx = steepest.scale_by_psgd()
    u, _ = tx.update(p, tx.init(p), p)
    for x in u.values():
        np.testing.assert_allclose(jnp.ravel(x), jnp.ravel(u["a"]), rtol=1e-6)
