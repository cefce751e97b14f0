"""Formulas are compiled once for all transformations that compute the same."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp

import steepest
from steepest.core import Recent
from steepest.engine._formula import _COMPILED, fingerprint
from steepest.engine._leaves import Leaves
from steepest.engine._masks import view_through
from steepest.engine._sweep import Sweep


def _over(x):
    return lambda y: x * y


def test_the_same_code_over_the_same_numbers_is_the_same():
    assert fingerprint(_over(2.0)) == fingerprint(_over(2.0))
    assert fingerprint(_over(2.0)) != fingerprint(_over(3.0))
    assert fingerprint(_over(1)) != fingerprint(_over(1.0))
    assert fingerprint(_over(1)) != fingerprint(_over(True))
    assert fingerprint(_over(_over(2.0))) == fingerprint(_over(_over(2.0)))
    assert fingerprint(_over(_over(2.0))) != fingerprint(_over(_over(3.0)))


def test_equal_lines_are_not_the_same_code():
    one, two = (lambda y: y), (lambda y: y)
    assert fingerprint(one) != fingerprint(two)


def test_a_function_of_itself_has_an_end():
    def power(n):
        return 1 if n == 0 else 2 * power(n - 1)

    assert fingerprint(power) == fingerprint(power)


def test_an_array_is_kept_by_nobody():
    """It may be a tracer, whose time is over when its function returns."""
    assert fingerprint(_over(jnp.ones(()))) is None
    before = len(_COMPILED)
    jax.jit(lambda s: steepest.scale(s).update(jnp.ones(3), steepest.EmptyState()))(2.0)
    assert len(_COMPILED) == before


def test_a_second_adam_compiles_nothing():
    p = {"w": jnp.ones((5, 7))}

    def step():
        tx = steepest.adamw(0.123, mask={"w": True})
        return tx.update(p, tx.init(p), p)

    step()
    before = len(_COMPILED), sum(f._cache_size() for f in _COMPILED.values())
    step()
    after = len(_COMPILED), sum(f._cache_size() for f in _COMPILED.values())
    assert before == after


def test_the_shelf_of_formulas_is_finite(monkeypatch):
    """A sweep over very many learning rates does not fill the memory."""
    monkeypatch.setattr("steepest.engine._formula._COMPILED", shelf := Recent(3))
    for i in range(8):
        tx, g = steepest.scale(float(i)), jnp.ones(())
        assert tx.update(g, tx.init(g))[0] == i
        assert 0 < len(shelf) <= 3


def test_many_threads_with_many_optimizers(monkeypatch):
    """More optimizers than the shelf holds, in several threads at once.

    The shelf was once cleared while another thread read it, which was a `KeyError`.
    """
    monkeypatch.setattr("steepest.engine._formula._COMPILED", shelf := Recent(2))
    g = jnp.ones(2)

    def work(k):
        for i in range(6):
            tx = steepest.sgd(0.5 * (k + 2 * i))
            u, _ = tx.update(g, tx.init(g))
            assert float(u[0]) == -0.5 * (k + 2 * i)
        return k

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [0, 1, 2, 3]
    assert 0 < len(shelf) <= 2


def test_the_shelf_of_one_sweep_is_finite(monkeypatch):
    """Masks that change make other combinations; so may a user's rule, by its names."""
    monkeypatch.setattr("steepest.engine._sweep._KINDS", 3)
    names = iter("abcdefgh")

    def prepare(step):
        return {next(names): jnp.zeros(())}

    leaf = lambda n, g, p: g
    rule = steepest.Rule("fresh", steepest.EmptyState, leaf, prepare=prepare)
    sweep, g = Sweep([rule]), Leaves([jnp.ones(3)])
    for _ in range(8):
        views = [view_through([], g)]
        sweep.run(g, [None], [None], [steepest.EmptyState()], views, {})
        assert 0 < len(sweep._formulas) <= 3


def test_a_memory_of_compiled_functions_is_in_use():
    assert isinstance(_COMPILED, Recent)
    assert _COMPILED.size <= 128


def test_what_leaks_is_seen():
    """No tracer survives a step whose hyperparameters were traced."""
    with jax.checking_leaks():
        update = jax.jit(lambda lr: steepest.adam(lr).update(jnp.ones(3), _state()))
        update(0.1)


def _state():
    return steepest.adam(0.1).init(jnp.ones(3))
