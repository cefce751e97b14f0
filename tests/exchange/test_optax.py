"""Converting states between the libraries. `tests/oracles` does so during training."""

import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

from ..oracles._calls import loose

P = {"w": jnp.ones((2, 2)), "b": [jnp.ones(2), None]}


@pytest.fixture
def as_optax_does():
    """Optax mixes numbers of different dtypes and ranks."""
    with loose():
        yield


def _deep(m):
    return m.chain(
        m.clip_by_global_norm(1.0),
        m.masked(m.adamw(0.1), {"w": True, "b": False}),
        m.named_chain(("a", m.trace(0.9)), ("b", m.scale(1.0))),
    )


def test_there_and_back():
    state = _deep(steepest).init(P)
    there = steepest.to_optax(state)
    assert jax.tree.structure(there) == jax.tree.structure(_deep(optax).init(P))
    back = steepest.from_optax(there)
    assert jax.tree.structure(back) == jax.tree.structure(state)
    same = jax.tree.map(lambda a, b: a is b, back, state)
    assert all(jax.tree.leaves(same)), "no array is copied"


def test_what_is_not_optax_passes():
    class Mine(NamedTuple):
        x: int

    assert steepest.from_optax({"a": Mine(1), "b": None}) == {"a": Mine(1), "b": None}


def test_what_the_other_does_not_have_is_named(as_users_do):
    state = steepest.nag(0.1, 0.9).init(P)
    with pytest.raises(ValueError, match=r"to_optax: the state holds a \w+ with"):
        steepest.to_optax(state)


@pytest.mark.parametrize("move", [steepest.from_optax, steepest.to_optax])
def test_what_is_neither_is_refused(move, as_users_do):
    for x in (optax.adam, "state.pkl"):
        with pytest.raises(
            TypeError, match=rf"{move.__name__}: got a \w+, expected the"
        ):
            move(x)


def _three_steps(tx, p):
    state, found = tx.init(p), []
    for k in range(3):
        g = jax.tree.map(lambda x, k=k: x * (k + 1.5), p)
        updates, state = tx.update(g, state, p)
        found.append(updates)
    return found, state


@pytest.mark.parametrize(
    "move, of, into",
    [(steepest.from_optax, optax, steepest), (steepest.to_optax, steepest, optax)],
)
def test_transformations_move(move, of, into, as_optax_does):
    """The same results in all steps, in states of the other library."""
    tx = move(_deep(of))
    assert type(tx) is into.GradientTransformationExtraArgs
    updates, state = _three_steps(tx, P)
    stayed = _three_steps(_deep(of), P)
    _, native = _three_steps(_deep(into), P)
    assert jax.tree.structure(state) == jax.tree.structure(native)
    pairs = zip(*map(jax.tree.leaves, ((updates, state), stayed)), strict=True)
    for x, y in pairs:
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    "move, of, into",
    [(steepest.from_optax, optax, steepest), (steepest.to_optax, steepest, optax)],
)
def test_transformations_move_into_wrappers(move, of, into, as_optax_does, compiles):
    """A mask of one library around an optimizer of the other, during a step."""
    mask = {"w": True, "b": False}
    tx = into.masked(move(of.adam(0.1)), mask)
    updates, state = _three_steps(tx, P)
    native, kept = _three_steps(into.masked(into.adam(0.1), mask), P)
    jax.tree.map(np.testing.assert_allclose, updates, native)
    assert jax.tree.structure(state) == jax.tree.structure(kept)
    again = jax.jit(tx.update)
    state = again(P, state, P)[1]
    with compiles(0):
        again(P, state, P)


def test_extra_arguments_move(as_optax_does):
    f = lambda p: jnp.sum((p - 1.0) ** 2)
    p = jnp.array([3.0, 4.0])
    value, grad = jax.value_and_grad(f)(p)
    given = {"value": value, "grad": grad, "value_fn": f}
    for tx in (
        steepest.from_optax(optax.lbfgs()),
        steepest.to_optax(steepest.lbfgs()),
        optax.chain(optax.clip_by_global_norm(1.0), steepest.lbfgs()),
        steepest.chain(steepest.clip_by_global_norm(1.0), optax.lbfgs()),
        optax.chain(
            optax.clip_by_global_norm(1.0), steepest.to_optax(steepest.lbfgs())
        ),
    ):
        updates, _ = tx.update(grad, tx.init(p), p, **given)
        assert f(p + updates) < value


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "lion", "rmsprop", "lamb"])
def test_optax_injects_into_ours(name, as_optax_does):
    """It reads the signature, and does not support `**`."""
    both = [getattr(m, name) for m in (steepest, optax)]
    txs = [optax.inject_hyperparams(make)(learning_rate=1e-2) for make in both]
    (ours, state), (theirs, kept) = (_three_steps(tx, P) for tx in txs)
    assert state.hyperparams.keys() == kept.hyperparams.keys()
    for x, y in zip(*map(jax.tree.leaves, (ours, theirs)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)


def test_what_only_we_have_stays():
    """Optax has no class for it, and does not need one."""
    tx = steepest.to_optax(steepest.nag(0.1, 0.9))
    _, state = _three_steps(tx, P)
    found = jax.tree.structure(state)
    assert found == jax.tree.structure(steepest.nag(0.1, 0.9).init(P))


def test_transformations_of_the_same_library_do_not_change():
    ours, theirs = steepest.adam(0.1), optax.adam(0.1)
    assert steepest.from_optax(ours) is ours
    assert steepest.to_optax(theirs) is theirs


def test_without_optax_it_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ImportError, match="to_optax: Optax cannot be imported"):
        steepest.to_optax(steepest.EmptyState())


def test_memory_in_few_bits_is_decoded():
    """Optax has no such arrays."""
    p = {"w": jnp.linspace(-1, 1, 4096).reshape(64, 64)}
    tx = steepest.adam(0.1, memory_dtype="int8")
    _, state = tx.update(p, tx.init(p))
    theirs = steepest.to_optax(state)
    assert jax.tree.structure(theirs) == jax.tree.structure(optax.adam(0.1).init(p))
    np.testing.assert_array_equal(theirs[0].mu["w"], state[0].mu["w"].decode())
