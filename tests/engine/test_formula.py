"""Formulas are compiled once for all transformations that compute the same."""

import jax
import jax.numpy as jnp

import steepest
from steepest.engine._formula import _COMPILED, fingerprint


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
    monkeypatch.setattr("steepest.engine._formula._ENOUGH", 3)
    monkeypatch.setattr("steepest.engine._formula._COMPILED", shelf := {})
    for i in range(8):
        tx, g = steepest.scale(float(i)), jnp.ones(())
        assert tx.update(g, tx.init(g))[0] == i
        assert len(shelf) <= 3


def test_what_leaks_is_seen():
    """No tracer survives a step whose hyperparameters were traced."""
    with jax.checking_leaks():
        update = jax.jit(lambda lr: steepest.adam(lr).update(jnp.ones(3), _state()))
        update(0.1)


def _state():
    return steepest.adam(0.1).init(jnp.ones(3))
