"""Functions apart from the arrays they capture."""

import threading

import jax
import jax.numpy as jnp
import pytest

import steepest
from steepest.engine import _templates
from steepest.engine._templates import _compiled, shared, take_apart


def _over(x):
    return lambda y: x * y


def _template(f):
    return take_apart(f, [])


def test_the_same_code_over_the_same_numbers_is_the_same():
    assert _template(_over(2.0)) == _template(_over(2.0))
    assert hash(_template(_over(2.0))) == hash(_template(_over(2.0)))
    assert _template(_over(_over(2.0))) == _template(_over(_over(2.0)))
    assert _template(_over(float("nan"))) == _template(_over(float("nan")))


@pytest.mark.parametrize(
    ("one", "two"),
    [(2.0, 3.0), (1, 1.0), (1, True), (0.0, -0.0), (_over(2.0), _over(3.0))],
)
def test_other_numbers_are_another(one, two):
    assert _template(_over(one)) != _template(_over(two))


def test_equal_lines_are_not_the_same_code():
    one, two = (lambda y: y), (lambda y: y)
    assert _template(one) != _template(two)


def test_arrays_are_taken_out_and_put_back():
    three, four = jnp.array(3.0), jnp.array(4.0)

    def two(x, y=three, *, z=four):
        return inner(x) + y * z

    inner, arrays = _over(jnp.array(2.0)), []
    template = take_apart(two, arrays)
    assert [float(x) for x in arrays] == [2, 3, 4]
    assert float(template.with_arrays(iter(arrays))(1.0)) == 14
    assert float(template.with_arrays(iter([10.0, 20.0, 30.0]))(1.0)) == 610


def test_one_compile_serves_every_array(compiles):
    step = lambda x: steepest.adam(x, b1=x).update(jnp.ones(3), _state())
    step(jnp.array(0.1))
    rates = [jnp.array(x) for x in (0.2, 0.3)]
    with compiles(0):
        first, second = (step(x)[0] for x in rates)
    assert first.tolist() != second.tolist()


def test_a_second_adam_compiles_nothing(compiles):
    p = {"w": jnp.ones((5, 7))}

    def step():
        tx = steepest.adamw(0.123, mask={"w": True})
        return tx.update(p, tx.init(p), p)

    step()
    with compiles(0):
        step()


def test_a_function_of_itself_has_an_end():
    """And keeps its own array: it cannot be made again with another one."""

    def power(n):
        return one if n == 0 else 2 * power(n - 1)

    one = jnp.array(1.0)
    assert _template(power) == _template(power)
    build = lambda layout, f: lambda: f(3)
    assert float(shared(build, None, power)()) == 8


def test_what_is_compiled_is_bounded(monkeypatch):
    """A sweep over very many learning rates does not fill the memory."""
    few = _templates.lru_cache(maxsize=3)(_compiled.__wrapped__)
    monkeypatch.setattr(_templates, "_compiled", few)
    for i in range(8):
        tx, g = steepest.scale(float(i)), jnp.ones(())
        assert tx.update(g, tx.init(g))[0] == i
        assert few.cache_info().currsize <= 3
    assert _compiled.cache_info().maxsize <= 128


def test_threads_may_share_it(monkeypatch):
    """While one drops what another has just looked up."""
    few = _templates.lru_cache(maxsize=2)(_compiled.__wrapped__)
    monkeypatch.setattr(_templates, "_compiled", few)
    wrong = []

    def work(k):
        for i in range(5):
            tx, g = steepest.scale(float(k + i)), jnp.ones(())
            if tx.update(g, tx.init(g))[0] != k + i:
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_no_tracer_survives():
    """Neither in a template nor in what was compiled."""
    with jax.checking_leaks():
        update = jax.jit(lambda lr: steepest.adam(lr).update(jnp.ones(3), _state()))
        update(0.1)


def _state():
    return steepest.adam(0.1).init(jnp.ones(3))
