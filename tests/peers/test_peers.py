"""Our optimizers move as those of other packages did. `_run` stored their part."""

from contextlib import contextmanager
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.engine.run import _every, _formula, _stacks

from ._cases import DATA, gradients, movements, Peer, PEERS, start, STEPS, STORED
from ._ours import GIVEN, OURS, WAITING


def tree(values):
    """Arrays by path as a nested dict, with kernels of (in, out)."""
    nested = {}
    for path, x in values.items():
        layer, leaf = path.split("/")
        nested.setdefault(layer, {})[leaf] = jnp.asarray(turned(leaf, x))
    return nested


def turned(leaf, x):
    """A kernel of torch as one of ours, or back; other leaves are alike."""
    return x.T if leaf == "kernel" else x


def flat(nested):
    """The inverse of `tree`."""
    return {
        f"{layer}/{leaf}": turned(leaf, np.asarray(x, np.float64))
        for layer, leaves in nested.items()
        for leaf, x in leaves.items()
    }


def run(peer: Peer, tx):
    """How far each parameter is from its start, as `movements`."""
    first, rows = start(peer), {name: [] for name in peer.shapes}
    params = tree(first)
    state, update = tx.init(params), jax.jit(tx.update)
    for t, grads in enumerate(gradients(peer), 1):
        updates, state = update(tree(grads), state, params)
        params = steepest.apply_updates(params, updates)
        for name, x in flat(params).items():
            if t in STORED:
                rows[name].append(x - first[name])
    return {name: np.stack(x) for name, x in rows.items()}


def distances(peer: Peer, found, wanted):
    """|found - wanted| / |wanted| of each leaf after each of `STORED`.

    Where a peer hardly moves, as in a first step that it skips, the unit is a typical
    step: the movement at the end over the number of steps.
    """
    far = lambda x: np.linalg.norm(x.reshape(len(x), -1), axis=1)
    result = {}
    for name in peer.shapes:
        moved = far(wanted[name])
        unit = np.maximum(moved, moved[-1] / STEPS)
        result[name] = far(found[name] - wanted[name]) / unit
    return result


@contextmanager
def given(name):
    """Give our optimizer what `GIVEN` says, in newly compiled functions."""
    if name not in GIVEN:
        yield
        return
    forget()
    with mock.patch(*GIVEN[name]):
        yield
    forget()


def forget():
    """Trace our formulas again. JAX's other caches stay: the other tests need them."""
    for cached in (_every._changing, _formula.joined, _stacks.stacking):
        cached.cache_clear()


@pytest.mark.parametrize("name", OURS)
def test_a_run_equals_the_peers(name):
    """After each of seven steps, as far as the table promises."""
    peer = PEERS[name]
    with jax.enable_x64(peer.dtype == "float64"), given(name):
        found = distances(peer, run(peer, OURS[name]()), movements(name))
    for leaf, distance in found.items():
        assert distance.max() <= peer.tolerance, (
            leaf,
            dict(zip(STORED, distance, strict=True)),
        )


def test_every_run_is_compared_or_waits():
    assert not OURS.keys() & WAITING.keys()
    assert OURS.keys() | WAITING.keys() == PEERS.keys()
    assert {f"{name}.npz" for name in PEERS} == {x.name for x in DATA.iterdir()}


@pytest.mark.parametrize("name", PEERS)
def test_a_stored_run_is_whole(name):
    """The file has the leaves of the table, and every leaf ends up elsewhere."""
    peer, stored = PEERS[name], movements(name)
    assert stored.keys() == peer.shapes.keys()
    for leaf, shape in peer.shapes.items():
        assert stored[leaf].shape == (len(STORED), *shape)
        assert np.isfinite(stored[leaf]).all() and np.any(stored[leaf][-1])


def test_the_runs_are_small():
    assert sum(x.stat().st_size for x in DATA.iterdir()) < 400_000
