"""Save with Orbax and go on, as one would on one device."""

import pytest

import steepest

from ._layouts import mesh, params


@pytest.mark.filterwarnings("ignore")
def test_the_obvious_resume_on_a_mesh(tmp_path):
    """Orbax restores to where the arrays of the target are.

    The count of `tx.init` is on one device: a step names it, and says what to do.
    """
    ocp = pytest.importorskip("orbax.checkpoint")
    tx, p, g = steepest.adamw(0.1), params(mesh()), params(mesh())
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "state", steepest.init(tx, p))
        checkpointer.wait_until_finished()
        first = checkpointer.restore(tmp_path / "state", tx.init(p))
        second = checkpointer.restore(tmp_path / "state", steepest.init(tx, p))
    with pytest.raises(
        ValueError, match=r"state\[0\]\.count is on one device .* `steepest\.place\("
    ):
        steepest.make_step(tx)(p, first, g)
    for state in (second, steepest.place(first, steepest.shardings(tx, p))):
        _, state = steepest.make_step(tx)(params(mesh()), state, g)
        assert int(state[0].count) == 1
