"""A skipped step leaves the state unchanged, bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.engine import selected, when, zeros
from steepest.engine.step._select import _Choosing

G = jnp.array([1.0, jnp.nan, -3.0])


def _tx(state, new):
    """A user's transformation: its state, and its step as a function of (g, state)."""
    return steepest.GradientTransformationExtraArgs(
        lambda params: state, lambda g, s, p=None, **extra: (2 * g, new(g, s))
    )


# The old state, and the step that computes the next one. The old values cannot be
# represented in the dtypes the step uses: 5.25 as a boolean, 16777217 as a float32.
STATES = {
    "comparison": (jnp.array([5.25, 7.5, 0.5]), lambda g, s: (g > 0).astype(float)),
    "rounding": (
        jnp.array([16777217, 3, -1], jnp.int32),
        lambda g, s: jnp.round(g * 3).astype(jnp.int32),
    ),
    "half precision": (
        jnp.array([1.001, 2.002, 3.003]),
        lambda g, s: (g.astype(jnp.bfloat16) * 2).astype(jnp.float32),
    ),
    "there and back": (
        jnp.array([1.001, 0.1, 7.7], jnp.bfloat16),
        lambda g, s: (s.astype(jnp.float32) + g).astype(jnp.bfloat16),
    ),
    "a wider dtype": (jnp.array([1, 2, 2**24 + 1], jnp.int32), lambda g, s: s + g[:3]),
    "complex": (
        jnp.array([1 + 2j, 3 - 1j, 0.1j]),
        lambda g, s: s + g.astype(jnp.complex64),
    ),
    "booleans": (jnp.array([True, False, True]), lambda g, s: g > 0),
    "unsigned": (jnp.array([255, 1, 0], jnp.uint8), lambda g, s: s + jnp.uint8(1)),
    "nothing in it": (jnp.zeros((0, 3)), lambda g, s: s * 2),
    "a random key": (jax.random.key(3), lambda g, s: jax.random.split(s)[0]),
    "several keys": (
        jax.random.split(jax.random.key(3), 4),
        lambda g, s: jax.vmap(lambda k: jax.random.split(k)[0])(s),
    ),
    "one array twice": (
        (jnp.ones(3), jnp.full((3,), 7.0)),
        lambda g, s: (lambda x: (x, x))(s[0] + g),
    ),
    "signs of zero": (jnp.array([-0.0, 0.0, -0.0]), lambda g, s: s + 1),
    "what came in": (jnp.array([4.0, 5.0, 6.0]), lambda g, s: g),
    "a constant": (jnp.array([4.0, 5.0, 6.0]), lambda g, s: jnp.zeros(3)),
    "a single number": (jnp.array(9, jnp.int32), lambda g, s: s + 1),
    "tiny numbers": (jnp.array([1e-40, 1e-45, 0], jnp.float32), lambda g, s: s + g),
}


def _bytes(tree):
    """The bytes of each leaf, with its dtype and shape."""
    data = lambda x: jax.random.key_data(x) if _is_key(x) else x
    leaves = jax.tree.leaves(tree)
    return [(x.dtype, x.shape, np.asarray(data(x)).tobytes()) for x in leaves]


def _is_key(x):
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("hold", ["selected", "when"])
@pytest.mark.parametrize("traced", [True, False], ids=["traced", "concrete"])
def test_the_state_stays_bit_for_bit(name, hold, traced):
    state, new = STATES[name]
    tx = _tx(state, new)
    between = (zeros,) if hold == "when" else ()
    choose = {"selected": selected, "when": when}[hold]

    def step(apply, g, s):
        return choose("test", apply, tx, *between, g, s, None, {})

    with jax.numpy_dtype_promotion("standard"):
        run = jax.jit(step) if traced else step
        u, kept = run(jnp.array(False), G, state)
        assert _bytes(kept) == _bytes(state)
        assert not np.any(u)
        u, taken = run(jnp.array(True), G, state)
        want = jax.jit(tx.update)(G, state)
        cast = lambda x, s: x if x.dtype == s.dtype else x.astype(s.dtype)
        want = want[0], jax.tree.map(cast, want[1], state)
    assert _bytes((u, taken)) == _bytes(want)


def test_the_selection_is_where_a_result_is_computed():
    """Before it is used again, which saves the copy."""
    tx = steepest.trace(0.9)
    step = lambda apply, g, s: selected("test", apply, tx, g, s, None, {})
    names = [str(e.primitive) for e in _flat(jax.make_jaxpr(step)(True, G, tx.init(G)))]
    first, last = names.index("select_n"), len(names) - names[::-1].index("select_n")
    assert "mul" not in names[first:last]  # no operation of the step is in between


def _flat(closed):
    for eqn in closed.jaxpr.eqns:
        inside = [x for x in eqn.params.values() if hasattr(x, "jaxpr")]
        for x in inside:
            yield from _flat(x)
        if not inside:
            yield eqn


def test_a_result_that_is_cast_is_chosen_after_the_cast():
    run = lambda apply, x, old: _Choosing(lambda n, o: jnp.where(apply, n, o)).run(
        (closed := jax.make_jaxpr(lambda x: (x > 0).astype(float))(x)).jaxpr,
        closed.consts,
        [x],
        [old],
    )
    old = jnp.array([5.25, 0.5])
    assert run(False, jnp.ones(2), old)[0].tolist() == [5.25, 0.5]
    assert run(True, jnp.ones(2), old)[0].tolist() == [1, 1]


@pytest.mark.parametrize("hold", [selected, when])
def test_gradients_of_a_skipped_step_are_zero(hold):
    """With respect to all inputs; zero times NaN is NaN."""
    step = lambda g, s, p=None, *, value: (jnp.sqrt(g * s * value) + p, s / g)
    tx = steepest.GradientTransformationExtraArgs(lambda p: p, step)
    between = (zeros,) if hold is when else ()

    def moved(g, s, p, value):
        apply = jnp.all(jnp.isfinite(g))
        args = "test", apply, tx, *between, g, s, p, {"value": value}
        u, new = jax.jit(lambda: hold(*args))()
        return jnp.sum(u) + jnp.sum(new)

    args = jnp.array([jnp.nan, 0.0]), jnp.zeros(2), jnp.ones(2), jnp.array(-1.0)
    slopes = jax.grad(moved, (0, 1, 2, 3))(*args)
    assert [x.tolist() for x in slopes] == [[0, 0], [1, 1], [0, 0], 0]


def test_a_state_that_changes_its_shape_is_named():
    tx = _tx({"m": jnp.ones(3)}, lambda g, s: {"m": jnp.ones(4)})
    for hold in (selected, when):
        between = (zeros,) if hold is when else ()
        step = lambda apply, hold=hold, between=between: hold(
            "guard", apply, tx, *between, G, tx.init(G), None, {}
        )
        with pytest.raises(ValueError, match=r"guard: leaf \['m'\] has shape \(4,\)"):
            jax.jit(step)(True)
