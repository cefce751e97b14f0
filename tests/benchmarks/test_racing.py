"""The race of ten million params runs, at a tiny size, and splits its runs."""

import jax

from benchmarks import racing


def test_runs_that_do_not_fit_take_turns(capsys):
    options = ["--tiny", "--steps", "3", "--seeds", "2", "--at-once", "4"]
    with jax.numpy_dtype_promotion("standard"):  # as users have it
        outcome = racing.main(options)
    names = ["adamw", "muon(stacked='^layers/')"]
    assert [sweep.name for sweep in outcome.sweeps] == names
    assert {(sweep.runs, sweep.at_once) for sweep in outcome.sweeps} == {(12, 4)}
    adamw, muon = outcome.sweeps
    assert muon.bytes_per_param < 7 < adamw.bytes_per_param  # most are matrices
    out = capsys.readouterr().out
    assert "12 runs, 4 at once" in out and "Use " in out
