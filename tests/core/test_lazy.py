"""Modules that import their names on first use."""

import compileall
import inspect
import pickle
import pkgutil
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import steepest
from steepest.core import lazy

DOORS = [
    name
    for _, name, is_package in pkgutil.walk_packages(steepest.__path__, "steepest.")
    if "__main__" not in name and (is_package or "._" not in name)
]


def _python(program: str, **env: str) -> str:
    """The output of a program in a new process."""
    source = str(Path(steepest.__file__).parent.parent)
    env = {"PYTHONPATH": source, "PATH": "", **env}
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=env,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_importing_the_package_loads_neither_jax_nor_an_optimizer():
    program = "import sys, steepest; print(*sys.modules)"
    loaded = _python(program).split()
    assert "jax" not in loaded and "numpy" not in loaded
    ours = [name for name in loaded if name.startswith("steepest")]
    assert set(ours) <= {
        "steepest",
        "steepest.core",
        "steepest.core._deprecated",
        "steepest.core._lazy",
        "steepest.matrix",  # a lazy door, whose names the package has too
    }


def test_one_optimizer_does_not_load_the_others():
    program = "import sys, steepest; steepest.adamw(1e-3); print(*sys.modules)"
    loaded = _python(program, JAX_PLATFORMS="cpu").split()
    assert "steepest.optimizers._adam" in loaded
    for name in ("optimizers._lbfgs", "contrib", "losses", "race"):
        assert f"steepest.{name}" not in loaded
    assert "jax.extend" not in loaded, "it loads Pallas, which takes 17 ms"


def test_no_module_needs_a_backend():
    """A module may be imported during a trace, so none may compute an array."""
    program = """
import pkgutil, importlib, steepest
for _, name, _ in pkgutil.walk_packages(steepest.__path__, "steepest."):
    if not name.endswith("__main__"):
        importlib.import_module(name)
from jax._src import xla_bridge
assert not xla_bridge._backends
"""
    _python(program, JAX_PLATFORMS="there_is_no_such_platform")


def test_a_first_use_during_a_trace():
    program = """
import jax, steepest
@jax.jit
def step(p):
    updates, _ = (tx := steepest.contrib.muon(0.1)).update(p, tx.init(p), p)
    return updates, steepest.losses.ctc_loss is not None
with jax.checking_leaks():
    step(jax.numpy.eye(3))
step(jax.numpy.eye(4))
"""
    _python(program, JAX_PLATFORMS="cpu")


def test_many_threads_get_the_same_object():
    program = """
import steepest
from concurrent.futures import ThreadPoolExecutor
names = ["adam", "lbfgs", "chain", "losses", "contrib"] * 20
with ThreadPoolExecutor(16) as pool:
    values = list(pool.map(lambda name: getattr(steepest, name), names))
assert all(x is getattr(steepest, name) for name, x in zip(names, values))
"""
    _python(program, JAX_PLATFORMS="cpu")


@pytest.mark.parametrize("door", DOORS)
def test_every_name_of_a_door_is_there(door):
    module = import_module(door)
    for name in dir(module):
        assert getattr(module, name) is getattr(module, name)


def test_star_import():
    scope: dict[str, object] = {}
    exec("from steepest import *", scope)
    assert scope["adam"] is steepest.adam and scope["contrib"] is steepest.contrib
    assert "dpsgd" not in scope, "a deprecated name"
    assert set(steepest.__all__) <= set(scope)  # pyright: ignore


def test_functions_are_found_again_by_pickle():
    assert pickle.loads(pickle.dumps(steepest.adam)) is steepest.adam
    tx = steepest.adamw(1e-3)
    assert pickle.loads(pickle.dumps(tx)) == tx


def test_members_and_suggestions():
    assert dict(inspect.getmembers(steepest))["adam"] is steepest.adam
    with pytest.raises(AttributeError, match="module 'steepest' has no") as info:
        steepest.adamm  # noqa: B018  # pyright: ignore
    assert info.value.name == "adamm" and info.value.obj is steepest
    assert not hasattr(steepest, "__wrapped__")


def test_the_warning_points_to_the_caller():
    program = """
import warnings, steepest
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    steepest.dpsgd
    steepest.tree_utils.tree_l2_norm
print(*(x.filename for x in caught))
"""
    assert _python(program, JAX_PLATFORMS="cpu").split() == ["<string>"] * 2


class _Source:
    """A loader that knows the source of a module, or does not."""

    def __init__(self, source: str | None) -> None:
        self.source = source

    def get_source(self, name: str) -> str | None:
        del name
        return self.source


def _door(source: str | None) -> dict[str, object]:
    return {
        "__name__": "steepest.room",
        "__package__": "steepest.room",
        "__loader__": _Source(source),
    }


def test_the_names_are_those_in_the_block():
    door = _door(
        "if typing.TYPE_CHECKING or not _lazy(globals()):\n"
        "    from .. import tree as trees\n"
        "    from ..optimizers import adam as adam, sgd as plain\n"
        "if typing.TYPE_CHECKING:\n"
        "    from ..optimizers import lion as lion\n"
    )
    assert lazy(door)
    assert door["__all__"] == ["adam", "plain", "trees"]
    find = door["__getattr__"]
    assert find("trees") is steepest.tree and find("plain") is steepest.sgd
    assert door["plain"] is steepest.sgd, "kept"
    with pytest.raises(AttributeError, match="no attribute 'lion'"):
        find("lion")


@pytest.mark.parametrize("source", [None, ""])
def test_without_source_the_door_imports_at_once(source):
    door = _door(source)
    assert not lazy(door)
    assert "__all__" not in door and "__dir__" not in door


def test_the_package_works_without_source(tmp_path):
    """Bundled programs may have compiled files only."""
    folder = tmp_path / "steepest"
    shutil.copytree(
        Path(steepest.__file__).parent,
        folder,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    assert compileall.compile_dir(folder, quiet=1, legacy=True)
    for path in folder.rglob("*.py"):
        path.unlink()
    program = "import steepest; print(steepest.__file__, steepest.adam(0.1))"
    env = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(tmp_path)}
    assert _python(program, **env).startswith(f"{folder}/__init__.pyc adam(")


def test_in_threads_of_this_process():
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda rate: steepest.adam(rate), [0.1] * 8))
    assert len({*made}) == 1
    jax.block_until_ready(made[0].update(jnp.ones(2), made[0].init(jnp.ones(2))))


def test_a_module_can_be_called():
    """`steepest.race` is a package and the function of that name."""
    assert steepest.race is import_module("steepest.race")
    with pytest.raises(ValueError, match="race: there is no problem 'nosuch'"):
        steepest.race("nosuch", optimizers=["adam"])
    assert pickle.loads(pickle.dumps(steepest.race)) is steepest.race
    race = steepest.race.race
    assert pickle.loads(pickle.dumps(race)) is race
