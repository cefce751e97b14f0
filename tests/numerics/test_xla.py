"""Each trick changes no number, and does to the compiled program what it promises."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from steepest.numerics import (
    _xla,
    after,
    before_its_parts,
    computed_again,
    computed_once,
    inlined,
    joins_rows,
    largest,
    members,
    most_in_chain,
    most_in_stack,
    read_again,
    set_apart,
    slope_if,
    sqrt_or_zero,
    unknown,
)

ODD = jnp.array([1.0, -0.0, jnp.inf, jnp.nan])
X = jnp.linspace(-1, 1, 64 * 64).reshape(64, 64)
on_cpu = pytest.mark.skipif(
    jax.default_backend() != "cpu", reason="what the CPU compiler does"
)


def _traced(f, *args):
    return str(jax.make_jaxpr(f)(*args))


def _compiled(f, *args, donate=()):
    return jax.jit(f, donate_argnums=donate).lower(*args).compile()


def _stored(f, *args, donate=()):
    """The bytes that a program needs besides its arguments and results."""
    return _compiled(f, *args, donate=donate).memory_analysis().temp_size_in_bytes


def _operations(name, f, *args):
    return len(re.findall(rf"[\]\}}] {name}\(", _compiled(f, *args).as_text()))


@pytest.mark.parametrize(
    "trick",
    [
        set_apart,
        read_again,
        before_its_parts,
        pytest.param(computed_again, marks=on_cpu),
    ],
)
def test_a_barrier_is_in_the_program(trick):
    """One, around all that it is given."""
    args = (ODD, ODD + 1) if trick is set_apart else ODD
    assert _traced(trick, args).count("optimization_barrier") == 1
    for f in (trick, jax.jit(trick)):
        jax.tree.map(np.testing.assert_array_equal, f(args), args)
    slopes = jax.grad(lambda x: sum(map(jnp.sum, jax.tree.leaves(trick(x)))))(args)
    jax.tree.map(lambda x: np.testing.assert_array_equal(x, jnp.ones(4)), slopes)


@on_cpu
def test_squares_for_a_norm_are_not_stored():
    """A norm, and then a mean of squares that is divided by it."""

    def step(nu, g, again):
        size = jnp.sqrt(jnp.sum(jnp.square(again(g))))
        return 0.9 * nu + jnp.square(g) / size

    assert _stored(lambda *row: step(*row, again=read_again), X, X, donate=0) < X.nbytes
    stored = _stored(lambda *row: step(*row, again=lambda g: g), X, X, donate=0)
    assert stored >= X.nbytes


def test_a_decision_is_the_same():
    for yes in (True, False):
        decision = jnp.array(yes)
        assert computed_once(yes) == jax.jit(computed_once)(decision) == yes
        assert computed_once(decision).dtype == bool


@on_cpu
def test_a_decision_is_computed_once():
    """It is used at every leaf, and has a term for each."""
    leaves = [X + k for k in range(6)]

    def step(leaves, once):
        fine = [jnp.isfinite(jnp.max(x)) for x in leaves]
        apply = once(jnp.all(jnp.stack(fine)))
        return [jnp.where(apply, 2 * x, 0) for x in leaves]

    count = lambda once: _operations("is-finite", lambda *xs: step(xs, once), *leaves)
    assert count(computed_once) <= len(leaves) <= count(lambda x: x)


@pytest.mark.parametrize("bad", [jnp.inf, -jnp.inf, jnp.nan])
def test_the_largest_is_finite_if_all_are(bad):
    assert largest(jnp.array([1.0, -3.0])) == 3
    assert not jnp.isfinite(largest(jnp.array([1.0, bad, 2.0])))
    assert largest(jnp.zeros((0, 3))) == 0


@on_cpu
def test_the_largest_needs_no_memory():
    by_mask = lambda x: jnp.all(jnp.isfinite(x)) & (x[0, 0] > 0)
    by_size = lambda x: jnp.isfinite(largest(x)) & (x[0, 0] > 0)
    assert _stored(by_size, X) < X.size <= _stored(by_mask, X)


def test_a_root_is_chosen_in_the_derivative_only():
    assert "select" not in _traced(sqrt_or_zero, X)
    assert sqrt_or_zero(0.0) == 0 == jax.grad(sqrt_or_zero)(0.0)
    np.testing.assert_array_equal(sqrt_or_zero(X**2), jnp.sqrt(X**2))
    np.testing.assert_allclose(jax.grad(sqrt_or_zero)(4.0), 0.25)


def test_a_slope_is_dropped_and_not_the_value():
    """Zero times NaN is NaN; a slope that is chosen is zero."""
    assert "select" not in _traced(slope_if, True, X)
    for apply, slope in ((True, jnp.nan), (False, 0.0)):
        f = lambda x, apply=apply: jnp.nan * slope_if(jnp.array(apply), x)
        np.testing.assert_array_equal(jax.grad(f)(2.0), slope)
        np.testing.assert_array_equal(slope_if(jnp.array(apply), ODD), ODD)


@on_cpu
def test_a_slope_that_may_be_dropped_needs_no_memory():
    """A step that takes a norm: its results are chosen."""
    zeros = lambda apply, x: jnp.where(apply, x, jnp.zeros_like(x))

    def step(mu, nu, g, apply, keep):
        g = keep(apply, g)
        g = g / jnp.sqrt(jnp.sum(g * g))
        mu = jnp.where(apply, 0.9 * mu + g, mu)
        return mu, jnp.where(apply, 0.9 * nu + g * g, nu)

    def stored(keep):
        run = lambda *row: step(*row, keep=keep)
        return _stored(run, X, X, X, True, donate=(0, 1))

    assert stored(slope_if) < X.nbytes <= stored(zeros)


def test_an_order_changes_nothing():
    """Whatever was computed first, also where it is not finite."""
    first = jnp.array([jnp.nan, jnp.inf, 0.0, 1.0])
    for y in (after(ODD, first), after(ODD, jnp.zeros(()), first), after(ODD)):
        np.testing.assert_array_equal(y, ODD)
        assert jnp.signbit(y)[1]


def test_slopes_are_those_of_x():
    both = jax.grad(lambda x, y: after(3 * x, y), (0, 1))(1.0, jnp.nan)
    assert both == (3, 0)


@on_cpu
def test_what_is_read_first_is_not_copied():
    """The old `last` is read for `v`, and then overwritten."""

    def step(v, last, g, keep=after):
        v = v + (g - last)
        return v, keep(g + 1, v)

    def copies(f):
        return _compiled(f, X, X, X, donate=(0, 1)).as_text().count(" copy(")

    assert copies(step) == 0
    assert copies(lambda *row: step(*row, keep=lambda x, y: x)) > 0


def test_what_is_inlined_leaves_no_call():
    """It is traced once for all leaves of a shape."""
    seen = []
    f = lambda x: seen.append(x) or 2 * x
    xs = [X, X + 1, X + 2]
    program = jax.jit(lambda xs: [inlined(f)(x) for x in xs]).lower(xs).as_text()
    assert "call @" not in program and program.count("stablehlo.multiply") == 3
    assert len(seen) == 1
    called = jax.jit(lambda xs: [jax.jit(f)(x) for x in xs]).lower(xs).as_text()
    assert "call @" in called
    np.testing.assert_array_equal(inlined(f)(X), 2 * X)


def test_stacks_are_no_larger_than_they_should_be(monkeypatch):
    at = lambda backend: monkeypatch.setattr(jax, "default_backend", lambda: backend)
    at("cpu")
    assert most_in_stack(1) == _xla.SMALL_ONES
    assert most_in_stack(_xla.SMALL_ON_CPU) == most_in_stack(1 << 20) == _xla.ON_CPU
    assert most_in_stack(_xla.MOST) == most_in_stack(2 * _xla.MOST) == 1
    assert most_in_chain(1 << 20) == _xla.ON_CPU
    at("gpu")
    assert most_in_chain(1 << 20) == 512 and most_in_chain(2 * _xla.MOST) == 1
    assert most_in_stack(1) == _xla.SMALL_ONES
    assert most_in_stack(_xla.SMALL) == _xla.ELSEWHERE
    assert most_in_stack(2 * _xla.MOST) == 1


@on_cpu
def test_rows_are_joined_on_one_device_only(monkeypatch):
    assert not joins_rows(X)  # the tests have eight
    monkeypatch.setattr(jax, "device_count", lambda: 1)
    assert joins_rows(X)
    mesh = jax.make_mesh((8,), ("a",), axis_types=(AxisType.Explicit,))
    sharded = jax.device_put(X, NamedSharding(mesh, PartitionSpec("a")))
    assert not joins_rows(sharded)


@on_cpu
def test_slices_from_unknown_places_are_one_loop():
    """The loops of a compiled program differ only if their text does."""

    hidden = lambda x: [members(x, start, 1) for start in unknown(range(8))]
    known = lambda x: [members(x, start, 1) for start in range(8)]

    x = jnp.arange(8 * 48 * 48.0).reshape(8, 48, 48).at[0, 0, 0].set(jnp.nan)
    for y, z in zip(jax.jit(hidden)(x), x, strict=True):
        np.testing.assert_array_equal(y[0], z)
    places = lambda f: set(re.findall(r"slice={\[(\d)", _compiled(f, x).as_text()))
    assert len(places(known)) == 8 and len(places(hidden)) <= 1


def test_elsewhere_nothing_is_hidden(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert list(unknown(range(8))) == list(range(8))


def test_members_of_a_stack():
    np.testing.assert_array_equal(members(X, 3, 2), X[3:5])
    np.testing.assert_array_equal(members(X, jnp.int32(3), 2), X[3:5])
    assert members(X, 0, len(X)) is X
    with jax.enable_x64(True):
        np.testing.assert_array_equal(members(X, jnp.int32(3), 2), X[3:5])
