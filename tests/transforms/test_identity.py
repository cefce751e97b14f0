"""`identity`, `set_to_zero` and `stateless`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

g = {"w": jnp.array([1.0, -2.0]), "frozen": None, "b": jnp.array(3.0, jnp.bfloat16)}
p = {"w": jnp.array([10.0, 20.0]), "frozen": None, "b": jnp.array(5.0, jnp.bfloat16)}


def _step(tx, updates=g, params=None):
    return tx.update(updates, tx.init(updates), params)[0]


@pytest.mark.parametrize(
    "tx",
    [
        steepest.identity(),
        steepest.chain(steepest.identity()),
        steepest.chain(steepest.identity(), steepest.chain(steepest.identity())),
        steepest.masked(steepest.identity(), True),
    ],
)
def test_identity_costs_nothing(tx):
    """The output is the same object as the input."""
    assert _step(tx) is g
    assert _step(tx, params=p) is g


def test_identity_does_not_look():
    """The updates may have another structure than the params, or contain no arrays."""
    tx = steepest.identity()
    assert tx.update("updates", tx.init("params"), 7, value=1.0) == (
        "updates",
        steepest.EmptyState(),
    )


def test_identity_adds_no_compiled_code():
    tx = steepest.chain(steepest.identity(), steepest.scale(2.0), steepest.identity())
    lone = steepest.scale(2.0)
    texts = [
        jax.jit(lambda x, tx=tx: _step(tx, x)).lower(g["w"]).as_text()
        for tx in (tx, lone)
    ]
    assert texts[0] == texts[1]


def test_set_to_zero_gives_zeros():
    u = _step(steepest.set_to_zero())
    assert u["frozen"] is None
    assert (u["w"].dtype, u["b"].dtype) == (jnp.float32, jnp.bfloat16)
    np.testing.assert_array_equal(u["w"], jnp.zeros(2))
    assert u["b"] == 0


def test_set_to_zero_stops_what_is_not_finite():
    u = _step(steepest.set_to_zero(), jnp.array([jnp.nan, jnp.inf]))
    np.testing.assert_array_equal(u, jnp.zeros(2))


def test_set_to_zero_freezes():
    tx = steepest.chain(steepest.sgd(0.1), steepest.set_to_zero())
    new = steepest.apply_updates(p, _step(tx, g, p))
    jax.tree.map(np.testing.assert_array_equal, new, p)


def test_your_own_sees_each_leaf_and_its_param():
    tx = steepest.stateless_with_tree_map(lambda g, p: g - p)
    u = _step(tx, g, p)
    np.testing.assert_array_equal(u["w"], [-9, -22])
    assert u["b"] == -2
    assert u["frozen"] is None


def test_your_own_without_params_is_given_none():
    tx = steepest.stateless_with_tree_map(lambda g, p: 2 * g if p is None else p)
    u = _step(tx)
    np.testing.assert_array_equal(u["w"], [2, -4])
    assert u["b"] == 6
    assert u["frozen"] is None


def test_your_own_is_not_asked_about_none():
    tx = steepest.stateless_with_tree_map(lambda g, p: g + p)
    u = _step(tx, {"a": None, "b": jnp.ones(1)}, {"a": jnp.ones(1), "b": jnp.ones(1)})
    assert u["a"] is None
    assert u["b"] == 2


def test_your_own_sees_the_dtypes_as_they_are():
    seen = []

    def f(g, p):
        seen.append((g.dtype.name, p.dtype.name))
        return g.astype(jnp.float16)

    u = _step(steepest.stateless_with_tree_map(f), g, p)
    assert set(seen) == {("float32",) * 2, ("bfloat16",) * 2}
    assert (u["w"].dtype, u["b"].dtype) == (jnp.float16, jnp.float16)


def test_your_own_remembers_nothing_and_ignores_extras():
    tx = steepest.stateless_with_tree_map(lambda g, p: g)
    assert tx.init(p) == steepest.EmptyState()
    assert tx.update(g, tx.init(p), p, value=1.0)[1] == steepest.EmptyState()


def test_your_own_wants_trees_that_match():
    tx = steepest.stateless_with_tree_map(lambda g, p: g)
    said = r"stateless_with_tree_map: leaf \['b'\] is in the params and not in the"
    with pytest.raises(ValueError, match=said):
        _step(tx, {"w": jnp.ones(1)}, {"w": jnp.ones(1), "b": jnp.ones(1)})
