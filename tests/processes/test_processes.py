"""Two processes with two devices each, on one machine.

These are representative. `python -m tests.processes` does the same for every optimizer.
"""

import pytest

from ._run import compare

FEW = ["adamw", "adafactor_factored", "muon", "soap", "noisy_sgd", "int8", "zero"]


@pytest.mark.filterwarnings("ignore")
def test_a_run_goes_on_elsewhere(tmp_path):
    """Also after one of the processes is killed while they save."""
    pytest.importorskip("orbax.checkpoint")
    results = compare(tmp_path, FEW)
    assert not {x.name: x.wrong for x in results if x.wrong}
    assert all(x.losses[1] < x.losses[0] for x in results)
