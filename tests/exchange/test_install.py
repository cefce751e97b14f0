"""Importing steepest as Optax."""

import importlib.util
import inspect
import sys

import optax
import pytest

import steepest
from steepest.exchange import _install


@pytest.fixture
def without_optax(monkeypatch):
    """As if Optax were not imported yet."""
    for name in list(sys.modules):
        if name == "optax" or name.startswith("optax."):
            monkeypatch.delitem(sys.modules, name)


def _public_modules(module, path="optax"):
    """The submodules that a user of Optax imports by name."""
    for name, x in inspect.getmembers(module, inspect.ismodule):
        if name in getattr(module, "__all__", ()) and name[0] != "_":
            yield f"{path}.{name}"
            yield from _public_modules(x, f"{path}.{name}")


def test_every_public_submodule_is_known():
    rooms = {name for name in sys.modules if name.startswith("optax.")}
    rooms = {name for name in rooms if "._" not in name}
    known = {f"optax.{name}" for name in _install._SUBMODULES}
    assert rooms | {*_public_modules(optax)} <= known


def test_it_replaces_optax(without_optax):
    undo = steepest.install_as_optax()
    try:
        import optax as found
        import optax.contrib
        import optax.experimental.aggregating
        from optax import tree_utils
        from optax.losses import l2_loss

        assert found.adam is steepest.adam
        assert found.__version__ == "0.2.8"
        assert steepest.__version__ != found.__version__
        assert optax.contrib is steepest.contrib
        assert tree_utils is steepest.tree_utils
        assert l2_loss is steepest.losses.l2_loss
        assert isinstance(steepest.adam(0.1), found.GradientTransformation)
        assert steepest.EmptyState().__class__ is steepest.EmptyState
        assert importlib.util.find_spec("optax") is not None
        everything = {}
        exec("from optax import *", everything)
        assert everything["adamw"] is steepest.adamw
        with pytest.warns(DeprecationWarning, match="dpsgd"):
            assert found.dpsgd is steepest.contrib.dpsgd
        with pytest.raises(AttributeError, match="no attribute 'adm'"):
            found.adm  # noqa: B018
        with pytest.raises(ModuleNotFoundError, match=r"optax\._src"):
            import optax._src
        steepest.install_as_optax()
        assert sys.modules["optax"] is found
    finally:
        undo()
    assert not [name for name in sys.modules if name.split(".")[0] == "optax"]
    undo()
