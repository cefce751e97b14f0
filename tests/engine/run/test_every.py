"""Expensive changes of memory: the matrices take turns, or all change in one step."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core import Every, Matrix, Rule
from steepest.engine import lift
from steepest.engine.run import _every
from steepest.numerics import zero_count

SHAPES = {"a": (3, 5), "b": (5, 3), "layers": (4, 3, 5), "square": (3, 3)}


class State(NamedTuple):
    """What the tests look at."""

    count: Any
    sums: Any  # (rows, columns): sums of outer products
    copies: Any  # (rows, columns): the sums when it was last their turn


def _pair(p):
    *stack, m, n = p.shape
    columns = None if n > 4 else jnp.zeros((*stack, n, n))
    return jnp.zeros((*stack, m, m)), columns


def _rule(**every):
    def before(g, sums):
        rows, columns = sums
        return g, (rows + g @ g.T, None if columns is None else columns + g.T @ g)

    def copy(sums, copies):
        del copies
        return sums

    return Rule(
        "copy",
        lambda g: g,
        State,
        memory={"sums": _pair, "copies": _pair},
        shared={"count": zero_count},
        numbers={"k": 4},
        matrix=Matrix(
            lambda g: g,
            every=Every(copy, ("copies",), sides=True, **every),
            before=before,
        ),
    )


def _run(tx, steps, compiled):
    """The copies after each step."""
    g = {name: jnp.ones(shape) for name, shape in SHAPES.items()}
    state, seen = tx.init(g), []
    update = jax.jit(tx.update) if compiled else tx.update
    for _ in range(steps):
        u, new = update(g, state)
        assert jax.tree.structure(new) == jax.tree.structure(state)
        assert jax.tree.all(jax.tree.map(jnp.array_equal, u, g))
        state = new
        seen.append(state.copies)
    return seen


def _ages(seen, name, side):
    """For each step and each matrix, the step in which it last had its turn."""
    n = SHAPES[name][-1 - side]  # each step adds n to every element of the sums
    return np.array([np.asarray(x[name][side])[..., 0, 0].ravel() / n for x in seen])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_each_matrix_has_its_turn(compiled):
    """Eight sides of length 3 in three of four steps; a side without memory is left."""
    seen = _run(lift(_rule(k="k")), 9, compiled)
    ages = np.concatenate(
        [_ages(seen, "a", 0), _ages(seen, "b", 1), _ages(seen, "layers", 0)]
        + [_ages(seen, "square", side) for side in (0, 1)],
        axis=1,
    )
    assert ages.shape == (9, 8)
    changed = np.diff(np.concatenate([np.zeros((1, 8)), ages]), axis=0) > 0
    assert changed.sum(axis=1).tolist() == [3, 3, 3, 0, 3, 3, 3, 0, 3]
    for t in range(3, 9):
        assert (ages[t] > t - 3).all()  # every fourth step
    assert seen[-1]["a"][1] is None


def test_the_others_have_their_turns_in_other_steps():
    """The only side of length 5."""
    ages = _ages(_run(lift(_rule(k="k")), 9, True), "b", 0)[:, 0]
    assert ages.tolist() == [0, 0, 0, 4, 4, 4, 4, 8, 8]


def test_no_turn_is_lost_before_the_memory_is_written():
    """If the formula writes the sums, they are zero in the first step."""
    rule = _rule(k="k")
    matrix = Matrix(rule.matrix.before, every=rule.matrix.every)
    seen = _run(lift(replace(rule, matrix=matrix)), 9, True)
    ages = np.concatenate([_ages(seen, "a", 0), _ages(seen, "layers", 0)], axis=1)
    changed = np.diff(np.concatenate([np.zeros((1, 5)), ages]), axis=0) > 0
    assert not changed[0].any() and (changed[1] | changed[2]).all()


@pytest.mark.parametrize("k", [2, 3, 5, 9])
def test_a_stack_of_all_matrices_or_of_each_turn(k, monkeypatch):
    """On a CPU all are in one stack. Eight sides do not divide into 3 or 5 turns."""
    numbers = {"numbers": {"k": k}}
    one = _run(lift(replace(_rule(k="k"), **numbers)), k + 2, True)
    monkeypatch.setattr(_every, "short_programs", lambda: False)
    _every._changing.cache_clear()
    jax.clear_caches()
    many = _run(lift(replace(_rule(k="k"), **numbers)), k + 2, True)
    _every._changing.cache_clear()
    assert jax.tree.all(jax.tree.map(jnp.array_equal, one, many))


def test_a_wrong_number_of_results():
    rule = _rule(k="k")
    every = rule.matrix.every._replace(formula=lambda sums, copies: (sums, copies))
    rule = Rule(
        "copy",
        rule.formula,
        State,
        rule.memory,
        rule.shared,
        rule.numbers,
        matrix=rule.matrix._replace(every=every),
    )
    tx, g = lift(rule), jnp.ones((3, 3))
    with pytest.raises(TypeError, match="copy: <lambda> returns 2 arrays, expected 1"):
        tx.update(g, tx.init(g))


def test_vmap_over_states():
    """Each member of a batch is at another step."""
    tx, g = lift(_rule(k="k")), jnp.ones((3, 3))
    state = tx.init(g)
    states = [state]
    for _ in range(3):
        states.append(tx.update(g, states[-1])[1])
    batch = jax.tree.map(lambda *xs: jnp.stack(xs), *states)
    _, new = jax.vmap(lambda state: tx.update(g, state))(batch)
    for k, state in enumerate(states):
        want = tx.update(g, state)[1]
        assert jax.tree.all(
            jax.tree.map(lambda x, y, k=k: jnp.array_equal(x[k], y), new, want)
        )


def test_the_work_is_that_of_products_and_of_passes(monkeypatch):
    """A preconditioner of the short side of 4 x 64 is cheaper than one of 64 x 64."""
    for name, value in {"_WITH_MATRIX": 1, "_WITH_ITSELF": 3, "_PASSES": 10}.items():
        monkeypatch.setattr(_every, name, value)
    cell = lambda *arrays: _every.Cell(0, None, tuple(map(jnp.zeros, arrays)))
    assert _every._work([cell((3, 64, 64))] * 2, [0]) == (6, 6 * 64**2 * (64 + 10))
    wide = cell((3, 4, 64), (3, 4, 4), (3, 64))
    products = (1 * 4 * 4 * 64 + 3 * 4**3) / (1 + 3)
    assert _every._work([wide], [1, 2]) == (3, 3 * (products + 10 * 4**2))
    assert _every._work([cell((3, 64))], [0]) == (3, 3 * 64)
