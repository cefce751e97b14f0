"""torch's peers are compiled where that helps, and only there."""

from types import SimpleNamespace

from benchmarks import peers


def _torch(compile_):
    return SimpleNamespace(compile=compile_)


def _slow():
    for _ in range(20_000):
        pass


def _quick():
    return None


def test_the_faster_step_is_chosen(capsys):
    step, compiled = peers.compiled_if_faster(_torch(lambda f: _quick), _slow, _quick)
    assert step is _quick and compiled
    step, compiled = peers.compiled_if_faster(_torch(lambda f: _slow), _quick, _quick)
    assert step is _quick and not compiled
    assert capsys.readouterr().out.count("compiled in") == 2


def test_what_does_not_compile_goes_on(capsys):
    def fail(f):
        raise RuntimeError("no compiler\nand more")

    assert peers.compiled_if_faster(_torch(fail), _slow, _quick) == (_slow, False)
    assert capsys.readouterr().out == "torch.compile: RuntimeError: no compiler\n"


def test_what_compiles_too_long_is_stopped(capsys):
    def forever():
        while True:
            pass

    step, compiled = peers.compiled_if_faster(
        _torch(lambda f: forever), _slow, _quick, patience=1
    )
    assert step is _slow and not compiled
    assert "more than 1 s" in capsys.readouterr().out


def test_without_patience_nothing_is_compiled():
    found = peers.compiled_if_faster(_torch(None), _slow, _quick, patience=0)
    assert found == (_slow, False)
