"""Instances of our classes count as Optax's, and Optax's as ours."""

import copy
import functools
import inspect
import pickle
import subprocess
import sys
import threading
from types import ModuleType

import flax.serialization
import jax
import jax.numpy as jnp
import optax
import pytest

import steepest
from steepest.core import _like_optax, Recent
from steepest.exchange._optax import _ours, _theirs

P = {"w": jnp.ones((2, 2)), "b": jnp.zeros(2)}
_OURS, _THEIRS = _ours(), _theirs()
SHARED = sorted(_OURS.keys() & _THEIRS.keys())


@pytest.mark.parametrize("name", SHARED)
def test_every_class_that_both_have(name):
    ours, theirs = _OURS[name], _THEIRS[name]
    assert ours._fields == theirs._fields
    values = [0] * len(ours._fields)
    assert isinstance(ours(*values), theirs)
    assert isinstance(theirs(*values), ours)


def test_no_class_is_missing():
    assert len(SHARED) > 60
    alone = sorted(_OURS.keys() - _THEIRS.keys())
    assert [x for x in alone if x.endswith("State")] == [
        "CompensatedState",
        "EmaParamsState",
        "GuardState",
        "HyperballState",
        "MarsState",
        "NagState",
        "ScaleByAdaMuonState",
        "ScaleByAdamMiniState",
        "ScaleByApolloState",
        "ScaleByDion2State",
        "ScaleByFiraState",
        "ScaleByKlShampooState",
        "ScaleByKlSoapState",
        "ScaleByKronState",
        "ScaleByLmoState",
        "ScaleByNorMuonState",
        "ScaleByPolarState",
        "ScaleByPsgdState",
        "ScaleByShampooState",
        "ScaleBySoapMuonState",
        "ScaleBySoapState",
        "ScaleBySplusState",
        "StochasticRoundingState",
        "WatchedState",
        "ZeroState",
    ]


def test_classes_are_not_mixed_up():
    pair = steepest.GradientTransformation(lambda p: (), lambda u, s, p=None: (u, s))
    assert isinstance(pair, optax.GradientTransformation)
    assert not isinstance(pair, optax.GradientTransformationExtraArgs)
    assert not isinstance(steepest.EmptyState(), optax.MaskedNode)
    assert not isinstance(optax.EmptyState(), steepest.MaskedNode)
    assert not isinstance((), steepest.EmptyState)
    assert not isinstance(jnp.ones(1), steepest.EmptyState)


def test_the_type_stays():
    """JAX compares types: two types for one state would give two tree structures."""
    state = steepest.EmptyState()
    assert type(state) is steepest.EmptyState
    assert state.__class__ is not steepest.EmptyState
    assert issubclass(state.__class__, steepest.EmptyState | optax.EmptyState)


ADAM = steepest.ScaleByAdamState(jnp.zeros((), jnp.int32), P, P)


@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        lambda x: x._replace(mu=P),
        lambda x: x.__class__(*x),
        lambda x: x.__class__(**x._asdict()),
        lambda x: x.__class__._make(x),
        lambda x: jax.tree.map(jnp.asarray, x),
        lambda x: jax.jit(lambda y: y)(x),
        lambda x: flax.serialization.from_bytes(x, flax.serialization.to_bytes(x)),
        *(
            lambda x, k=k: pickle.loads(pickle.dumps(x, k))
            for k in range(pickle.HIGHEST_PROTOCOL + 1)
        ),
    ],
)
def test_what_is_made_of_one_has_the_same_type(again):
    new = again(ADAM)
    assert type(new) is steepest.ScaleByAdamState
    assert jax.tree.structure(new) == jax.tree.structure(ADAM)


def test_the_appearance_of_classes_does_not_change():
    assert repr(steepest.EmptyState()) == "EmptyState()"
    assert repr(ADAM).startswith("ScaleByAdamState(count=")
    assert ADAM.__class__.__module__ == "steepest.optimizers._adam"


def test_dispatch_by_class():
    @functools.singledispatch
    def who(x):
        return "nobody"

    who.register(optax.EmptyState)(lambda x: "empty")
    assert who(steepest.EmptyState()) == "empty"
    assert who(steepest.MaskedNode()) == "nobody"


@pytest.mark.parametrize("slots", [{}, {"__slots__": ()}])
def test_subclasses_of_users(slots):
    Mine = type("Mine", (steepest.GradientTransformationExtraArgs,), dict(slots))
    tx = Mine(*steepest.sgd(0.1))
    assert isinstance(tx, Mine)
    assert isinstance(tx, optax.GradientTransformationExtraArgs)
    assert not isinstance(optax.sgd(0.1), Mine)
    assert not isinstance(steepest.sgd(0.1), Mine)
    assert repr(tx).startswith("Mine(")
    assert type(tx.__class__(*tx)) is Mine


def test_a_subclass_of_the_same_name_is_another_class():
    Same = type("EmptyState", (steepest.EmptyState,), {})
    assert not isinstance(optax.EmptyState(), Same)


@pytest.mark.parametrize("found", [None, ModuleType("optax"), object(), "optax"])
def test_anything_may_be_called_optax(found, monkeypatch):
    """A blocked import, a partial import, a mock."""
    for name in [name for name in sys.modules if name.startswith("optax.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optax", found)
    assert not isinstance(steepest.EmptyState(), optax.EmptyState)
    assert steepest.EmptyState().__class__ is steepest.EmptyState
    assert not isinstance(optax.EmptyState(), steepest.EmptyState)


def test_other_fields_are_another_class(monkeypatch):
    monkeypatch.setattr(optax, "EmptyState", optax.ScaleByAdamState)
    assert steepest.EmptyState().__class__ is steepest.EmptyState


def test_threads_agree(monkeypatch):
    monkeypatch.setattr(_like_optax, "_JOINT", Recent(4))
    found, ready = [], threading.Barrier(8, timeout=60)

    def ask():
        ready.wait()
        found.append(steepest.EmptyState().__class__)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1


def _optax_comes_later():
    import pickle
    import sys

    import jax
    import jax.numpy as jnp

    import steepest

    assert not [name for name in sys.modules if name.startswith("optax")]
    tx, p = steepest.adamw(0.1), {"w": jnp.ones(3)}
    before, traces = tx.init(p), []
    mask = steepest.MaskedNode()
    saved = pickle.dumps(before)
    assert before[0].__class__ is type(before[0])

    @jax.jit
    def step(g, state):
        traces.append(1)
        return tx.update(g, state, p)

    step(p, before)
    import optax

    assert isinstance(tx, optax.GradientTransformationExtraArgs)
    assert isinstance(mask, optax.MaskedNode)
    assert isinstance(before[0], optax.ScaleByAdamState)
    after = tx.init(p)
    same = jax.tree.structure(before)
    assert jax.tree.structure(after) == same
    assert jax.tree.structure(pickle.loads(saved)) == same
    step(p, after)
    step(p, pickle.loads(saved))
    assert len(traces) == 1


def test_optax_may_come_later():
    program = inspect.getsource(_optax_comes_later) + "\n_optax_comes_later()"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
