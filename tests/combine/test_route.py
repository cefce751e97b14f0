"""Each leaf goes to the first pattern that matches its path."""

from dataclasses import dataclass

import equinox
import flax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import steepest
from steepest.engine import plan_of

P = {
    "embed": jnp.ones(2),
    "mlp": [{"kernel": jnp.ones(2), "bias": jnp.ones(2)}, None],
    "head": jnp.ones(2),
}


def _times(**groups):
    """A transformation that multiplies the leaves of each group by its own number."""
    return steepest.route({k: steepest.scale(float(x)) for k, x in groups.items()})


def _numbers(tx, p):
    """The first element of the update of each leaf, by path."""
    u, _ = tx.update(p, tx.init(p), p)
    leaves = [float(x.ravel()[0]) for x in jax.tree.leaves(u)]
    return dict(zip(steepest.tree.key_paths(u), leaves, strict=True))


def test_the_first_match_wins():
    tx = _times(**{"embed|head": 2, "bias": 3, "mlp": 4, ".*": 5})
    assert _numbers(tx, P) == {
        "embed": 2,
        "head": 2,
        "mlp/0/bias": 3,
        "mlp/0/kernel": 4,
    }
    assert set(_numbers(_times(**{".*": 5, "bias": 3}), P).values()) == {5}


def test_a_pattern_is_found_anywhere_or_at_the_ends():
    tx = _times(**{"^bed|bed/$": 2, "^mlp/.*/k": 3, "s$": 4, "bed": 5, "": 6})
    assert list(_numbers(tx, P).values()) == [5, 6, 4, 3]


@jax.tree_util.register_dataclass
@dataclass
class _Layer:
    kernel: jax.Array
    bias: jax.Array


class _Net(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(1, 2, rngs=rngs)


_ARRAYS = {"kernel": jnp.ones(2), "bias": jnp.ones(2)}
_TREES = {
    "dict": {"layer": _ARRAYS},
    "list": [[_ARRAYS]],
    "dataclass": {"layer": _Layer(**_ARRAYS)},
    "FrozenDict": flax.core.freeze({"layer": _ARRAYS}),
    "equinox": equinox.filter(
        equinox.nn.MLP(1, 1, 2, 1, key=jax.random.key(0)), equinox.is_array
    ),
    "nnx": nnx.state(_Net(nnx.Rngs(0)), nnx.Param),
}


@pytest.mark.parametrize("name", _TREES)
def test_trees_of_every_kind(name):
    p = jax.tree.map(jnp.ones_like, _TREES[name])
    found = _numbers(_times(bias=2, **{"kernel|weight": 3}), p)
    assert {2.0, 3.0} == set(found.values())
    assert all((x == 2) == ("bias" in path) for path, x in found.items())


def test_a_tree_that_is_one_array():
    assert _numbers(_times(**{".*": 3}), jnp.ones(2)) == {"": 3}


def test_trees_that_cannot_be_compared():
    """Some modules have arrays that are not leaves."""

    @jax.tree_util.register_pytree_with_keys_class
    class Module:
        def __init__(self, w, table):
            self.w, self.table = w, table

        def tree_flatten_with_keys(self):
            return [(jax.tree_util.GetAttrKey("w"), self.w)], [self.table]

        @classmethod
        def tree_unflatten(cls, table, children):
            return cls(*children, *table)

    choose = steepest.matching("w")
    for table in (np.arange(2), np.arange(2), np.arange(3)):
        assert choose(Module(jnp.ones(2), table)).w is True


def test_groups_run_in_one_pass_frozen_ones_too():
    groups = {"mlp": steepest.adamw(0.1), "embed": None, ".*": steepest.sgd(0.1)}
    (segment,) = plan_of("test", "tx", steepest.route(groups))._segments
    assert len(segment.passes) == 1


def test_the_state_is_that_of_a_partition():
    state = _times(mlp=2, **{".*": 3}).init(P)
    assert isinstance(state, steepest.PartitionState)
    assert list(state.inner_states) == ["mlp", ".*"]


def test_a_frozen_group_keeps_nothing_and_does_not_move():
    tx = steepest.chain(
        steepest.route({"embed": None, ".*": steepest.trace(0.9)}),
        steepest.add_decayed_weights(0.1),
    )
    state = tx.init(P)
    assert jax.tree.leaves(state[0].inner_states["embed"]) == []
    assert len(jax.tree.leaves(state)) == 3
    found = _numbers(tx, P)
    assert found.pop("embed") == 0
    assert all(x == pytest.approx(1.1) for x in found.values())


def test_groups_inside_groups_see_their_own_leaves():
    """The inner patterns need not match the leaves of other groups."""
    inner = steepest.route({"kernel": steepest.scale(2.0), "bias": None})
    tx = steepest.route({"mlp": inner, ".*": steepest.scale(5.0)})
    assert list(_numbers(tx, P).values()) == [5, 5, 0, 2]


def test_a_leaf_without_a_gradient_needs_no_pattern():
    tx = _times(mlp=2)
    g = {"embed": None, "mlp": [{"kernel": jnp.ones(2), "bias": None}], "head": None}
    u, _ = tx.update(g, tx.init(g), g)
    assert u["embed"] is None and u["mlp"][0]["kernel"].tolist() == [2, 2]


def loss(p, shift=1.0):
    z = p["w"] * p["rest"]["scale"] + p["rest"]["bias"]
    return jnp.sum((z - shift) ** 2) + jnp.sum((p["rest"]["bias"] - shift) ** 2)


Q = {"w": jnp.array([3.0, -2.0]), "rest": {"scale": jnp.ones(2), "bias": jnp.ones(2)}}
_RATE = 0.01


def _gradient_steps(rest=_RATE, **makers):
    return steepest.route({**makers, ".*": steepest.sgd(rest)})


def _step(tx, state, p, **extra):
    value, grad = jax.value_and_grad(loss)(p)
    known = {"value": value, "grad": grad, "value_fn": loss, **extra}
    u, state = tx.update(grad, state, p, **known)
    return steepest.apply_updates(p, u), state


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_line_search_sees_its_own_params(compiled):
    """L-BFGS on some leaves and SGD on the others, four steps.

    The result is the same as by hand, with the loss as a function of only the group's
    params.
    """
    tx = _gradient_steps(w=steepest.lbfgs())
    step = lambda p, state: _step(tx, state, p)
    step = jax.jit(step) if compiled else step
    p, state = Q, tx.init(Q)

    alone = steepest.lbfgs()
    q, memory = Q, alone.init({"w": Q["w"]})
    for _ in range(4):
        p, state = step(p, state)

        of_w = lambda w, q=q: loss({**q, **w})
        value, grad = jax.value_and_grad(loss)(q)
        mine = {"w": grad["w"]}
        known = {"value": value, "grad": mine, "value_fn": of_w}
        u, memory = alone.update(mine, memory, {"w": q["w"]}, **known)
        down = lambda x, g: x - _RATE * g
        rest = jax.tree.map(down, q["rest"], grad["rest"])
        q = {"w": q["w"] + u["w"], "rest": rest}
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5), p, q)
    assert loss(p) < 0.2 * loss(Q)


def test_the_stored_value_of_a_search_in_a_group_is_not_used():
    """The value belongs to a point with other values for the other leaves."""
    tx = _gradient_steps(w=steepest.lbfgs())
    p, state = _step(tx, tx.init(Q), Q)
    value, grad = steepest.value_and_grad_from_state(loss)(p, state=state)
    assert value == loss(p)
    jax.tree.map(np.testing.assert_array_equal, grad, jax.grad(loss)(p))


def test_the_function_keeps_its_other_arguments():
    tx = _gradient_steps(w=steepest.scale_by_backtracking_linesearch(3))
    p, _ = _step(tx, tx.init(Q), Q, shift=2.0)
    assert not np.allclose(p["w"], Q["w"])
    with pytest.raises(TypeError, match=r"Unexpected keyword arguments \['unknown'\]"):
        _step(tx, tx.init(Q), Q, unknown=2.0)


_HEARING = {
    "polyak_sgd": steepest.polyak_sgd,
    "momo": steepest.contrib.momo,
    "prodigy": steepest.contrib.prodigy,
    "sophia": lambda: steepest.contrib.sophia(0.1),
    "sam": lambda: steepest.contrib.sam(
        steepest.sgd(0.1), steepest.sgd(0.1), opaque_mode=True
    ),
    "nothing to do": lambda: steepest.sgd(0.1),
}


def test_several_groups_may_need_extra_arguments():
    """Each receives the arguments it needs, and acts as it does alone on its leaves."""
    p = {name: jnp.array([2.0, -3.0]) for name in _HEARING} | {"search": jnp.ones(2)}
    f = lambda p: sum(jnp.sum(k * x**2) for k, x in enumerate(p.values(), 1))
    gradients = lambda p, i: jax.grad(f)(p)
    value, grad = jax.value_and_grad(f)(p)
    known = {"value": value, "grad": grad}
    functions = {"value_fn": f, "obj_fn": f, "grad_fn": gradients}
    search = steepest.scale_by_backtracking_linesearch(3)
    groups = {f"^{name}$": make() for name, make in _HEARING.items()}
    tx = steepest.route({**groups, "search": search})
    u, _ = tx.update(grad, tx.init(p), p, **known, **functions)
    for name, make in _HEARING.items():
        alone, mine = make(), {name: p[name]}
        of_mine = lambda x, name=name: f({**p, name: x[name]})
        grads = lambda x, i, name=name: {name: gradients({**p, **x}, i)[name]}
        extra = {"value_fn": of_mine, "obj_fn": of_mine, "grad_fn": grads}
        g = {name: grad[name]}
        v, _ = alone.update(g, alone.init(mine), mine, value=value, grad=g, **extra)
        np.testing.assert_allclose(u[name], v[name], rtol=1e-6)


BAD = {
    "a list": (
        [steepest.sgd(0.1)],
        TypeError,
        "route: transforms is a list, expected a di",
    ),
    "nothing": (
        {},
        ValueError,
        "route: got no patterns, expected at least one",
    ),
    "no pattern": (
        {3: None},
        TypeError,
        "route: a pattern is 3, a int, expected a regular",
    ),
    "malformed": (
        {".*": None, "a|(b": None},
        ValueError,
        "route: the pattern 'a|(b' is invalid at position 2: missing ), unterminated",
    ),
    "no transformation": (
        {".*": steepest.adam},
        TypeError,
        "route: transforms['.*'] is a function, expected a gradient transformation",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_at_construction(name, as_users_do):
    transforms, kind, message = BAD[name]
    with pytest.raises(kind) as error:
        steepest.route(transforms)
    assert str(error.value).startswith(message)


def test_leaves_without_a_pattern_are_named(as_users_do):
    with pytest.raises(ValueError) as error:
        _times(kernel=2).init(P)
    assert str(error.value) == (
        "route: no pattern matches embed, head, mlp/0/bias; the patterns are "
        "['kernel']. Add `\".*\"` as the last pattern for all other leaves, with "
        "`None` to freeze them."
    )
    with pytest.raises(ValueError, match="embed, head, mlp/0/bias and 1 more; the pat"):
        _times(none=2).init(P)
    with pytest.raises(ValueError, match="no pattern matches \\(the tree itself\\); "):
        _times(none=2).init(jnp.ones(2))


def test_a_state_of_other_patterns_is_refused(as_users_do):
    other = _times(mlp=2, **{".*": 3}).init(P)
    message = r"route: the state has the labels \[\"'.\*'\", \"'mlp'\"\]"
    with pytest.raises(ValueError, match=message):
        _times(**{".*": 3}).update(P, other, P)
