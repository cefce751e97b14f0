"""Bad calls of functions on trees."""

import jax
import jax.numpy as jnp

import steepest
from steepest import tree

from ._bad import Bad, params

_STR = {"w": "a word"}
_NOT_A_NUMBER = "leaf ['w'] of the tree is a str, expected an array or a number."
_KEY = (
    "rng_key is a int, expected one random key. Make it with `jax.random.key(0)`, and "
    "more of it with `jax.random.split`."
)


def _longer():
    return {"w": jnp.ones((3, 2)), "b": jnp.zeros(3)}


def _shapes(who: str, first: str, second: str, wanted: str) -> str:
    return (
        f"{who}: leaf ['b'] has shape (2,) in the {first} and (3,) in the {second}, "
        f"expected {wanted}."
    )


def _other(who: str, *names: str) -> str:
    return (
        f"{who}: leaf ['b'] is in the {names[0]} and not in the {names[1]}. Pass trees "
        "of the same structure."
    )


_BROADCAST = "shapes that broadcast"
BAD = {
    "bias_correction": Bad(
        lambda: steepest.bias_correction(params(), decay=0.9, count=0),
        steepest.UnusualValueWarning,
        "bias_correction: count is 0, but is usually a number above 0. The value is "
        "used.",
    ),
    "global_norm": Bad(
        lambda: steepest.global_norm(_STR), TypeError, f"global_norm: {_NOT_A_NUMBER}"
    ),
    "scale_gradient": Bad(
        lambda: steepest.scale_gradient(params(), jnp.ones(3)),
        ValueError,
        "scale_gradient: scale has shape (3,), expected one number that is not NaN.",
    ),
    "tree_map_params": Bad(
        lambda: steepest.tree_map_params(
            steepest.adam(0.1), lambda x: x, steepest.sgd(0.1).init(params())
        ),
        ValueError,
        "map_params: the state is PyTreeDef((CustomNode(namedtuple[EmptyState], []), "
        "CustomNode(namedtuple[EmptyState], []))), expected one like "
        "PyTreeDef((CustomNode(namedtuple[ScaleByAdamState], [*, *, *]), "
        "CustomNode(namedtuple[EmptyState], []))). Pass a state made by `initable`.",
    ),
    "tree.add": Bad(
        lambda: tree.add(params(), _longer()),
        TypeError,
        _shapes("add", "tree_x", "tree_y", _BROADCAST),
    ),
    "tree.add_scale": Bad(
        lambda: tree.add_scale(params(), params(), 0.1),
        TypeError,
        "add_scale: scalar is a dict, expected an array of numbers.",
    ),
    "tree.allclose": Bad(
        lambda: tree.allclose(params(), params(), rtol=-1e-5),
        steepest.UnusualValueWarning,
        "allclose: rtol is -1e-05, but is usually a number of at least 0. The value "
        "is used.",
    ),
    "tree.batch_shape": Bad(
        lambda: tree.batch_shape(params(), 4),
        TypeError,
        "batch_shape: shape is 4, expected a sequence of whole numbers of at least 0, "
        "such as (2, 3).",
    ),
    "tree.cast": Bad(
        lambda: tree.cast(params(), "float33"),
        TypeError,
        "cast: dtype is 'float33', expected a dtype, such as `jnp.float32`.",
    ),
    "tree.cast_like": Bad(
        lambda: tree.cast_like(params(), {"w": jnp.ones(1)}),
        ValueError,
        _other("cast_like", "tree", "other_tree"),
    ),
    "tree.clip": Bad(
        lambda: tree.clip(params(), 1.0, -1.0),
        ValueError,
        "clip: min_value is 1.0 and max_value is -1.0, expected min_value <= "
        "max_value.",
    ),
    "tree.conj": Bad(lambda: tree.conj(_STR), TypeError, f"conj: {_NOT_A_NUMBER}"),
    "tree.differentiable": Bad(
        lambda: tree.differentiable("my_grad", params={"n": jnp.array(3)}),
        TypeError,
        "my_grad: leaf ['n'] of the params has dtype int32, expected real or complex "
        "numbers, to differentiate with respect to them. Convert it with "
        "`.astype(float)`, or leave it out.",
    ),
    "tree.div": Bad(
        lambda: tree.div(params(), {"w": jnp.ones((3, 2)), "b": None}),
        TypeError,
        "div: leaf ['b'] of the tree_y is a NoneType, expected an array or a number.",
    ),
    "tree.dtype": Bad(
        lambda: tree.dtype({"w": jnp.ones(2), "x": jnp.ones(2, jnp.bfloat16)}),
        ValueError,
        "dtype: leaf ['x'] has dtype bfloat16, but the leaves before it have float32. "
        "Cast them to one dtype, or pass a `mixed_dtype_handler`.",
    ),
    "tree.full_like": Bad(
        lambda: tree.full_like(params(), jnp.ones(3)),
        ValueError,
        "full_like: leaf ['b'] has shape (2,) in the tree and fill_value has shape "
        "(3,), expected shapes that broadcast.",
    ),
    "tree.get": Bad(
        lambda: tree.get({"a": {"lr": 1.0}, "b": {"lr": 2.0}}, "lr"),
        KeyError,
        "get: Found multiple values for 'lr': at ['a']['lr'], ['b']['lr']. Choose one "
        "with `filtering`, or take all with `get_all_with_path`.",
    ),
    "tree.get_all_with_path": Bad(
        lambda: tree.get_all_with_path(params(), "w", filtering="w"),
        TypeError,
        "get_all_with_path: filtering is a str, expected a function.",
    ),
    "tree.map_numbers": Bad(
        lambda: tree.map_numbers("mine", lambda x, y: x + y, x=params(), y=_longer()),
        TypeError,
        _shapes("mine", "x", "y", _BROADCAST),
    ),
    "tree.map_trees": Bad(
        lambda: tree.map_trees("mine", lambda x, y: x, x=params(), y={"w": 1.0}),
        ValueError,
        _other("mine", "x", "y"),
    ),
    "tree.max": Bad(lambda: tree.max(_STR), TypeError, f"max: {_NOT_A_NUMBER}"),
    "tree.min": Bad(lambda: tree.min(_STR), TypeError, f"min: {_NOT_A_NUMBER}"),
    "tree.mul": Bad(
        lambda: tree.mul(params(), _longer()),
        TypeError,
        _shapes("mul", "tree_x", "tree_y", _BROADCAST),
    ),
    "tree.norm": Bad(
        lambda: tree.norm(params(), "fro"),
        ValueError,
        "norm: Unsupported ord: 'fro', expected 1, 2, None or infinity.",
    ),
    "tree.ones_like": Bad(
        lambda: tree.ones_like(_STR), TypeError, f"ones_like: {_NOT_A_NUMBER}"
    ),
    "tree.random_like": Bad(
        lambda: tree.random_like(jax.random.key(0), {"n": jnp.array(3)}),
        ValueError,
        (
            "random_like: the sampler failed for leaf ['n'], int32 of shape (): ",
            ". Pass another `dtype` or `sampler`.",
        ),
    ),
    "tree.real": Bad(lambda: tree.real(_STR), TypeError, f"real: {_NOT_A_NUMBER}"),
    "tree.scale": Bad(
        lambda: tree.scale(params(), 2.0),
        TypeError,
        "scale: scalar is a dict, expected an array or a number. The tree is the "
        "second argument.",
    ),
    "tree.set": Bad(
        lambda: tree.set({"lr": 0.1}, learning_rate=0.2),
        KeyError,
        "set: Found no values matching 'learning_rate' in a tree with the names 'lr'. "
        "`set` only replaces existing values.",
    ),
    "tree.split_key_like": Bad(
        lambda: tree.split_key_like(0, params()), TypeError, f"split_key_like: {_KEY}"
    ),
    "tree.sub": Bad(
        lambda: tree.sub(params(), {"w": jnp.ones((3, 2))}),
        ValueError,
        _other("sub", "tree_x", "tree_y"),
    ),
    "tree.sum": Bad(lambda: tree.sum(_STR), TypeError, f"sum: {_NOT_A_NUMBER}"),
    "tree.vdot": Bad(
        lambda: tree.vdot(params(), _longer()),
        TypeError,
        _shapes("vdot", "tree_x", "tree_y", "leaves of the same size"),
    ),
    "tree.where": Bad(
        lambda: tree.where({"w": True}, params(), params()),
        TypeError,
        "where: condition is a dict, expected an array of numbers.",
    ),
    "tree.zeros_like": Bad(
        lambda: tree.zeros_like(_STR), TypeError, f"zeros_like: {_NOT_A_NUMBER}"
    ),
    "update_infinity_moment": Bad(
        lambda: steepest.update_infinity_moment(params(), params(), 1.1, 0.0),
        steepest.UnusualValueWarning,
        "update_infinity_moment: decay is 1.1, but is usually a number in [0, 1]. The "
        "value is used.",
    ),
    "update_moment": Bad(
        lambda: steepest.update_moment(params(), {"w": jnp.ones((3, 2))}, 0.9, 1),
        ValueError,
        _other("update_moment", "updates", "moments"),
    ),
    "update_moment_per_elem_norm": Bad(
        lambda: steepest.update_moment_per_elem_norm(params(), _longer(), 0.9, 2),
        TypeError,
        _shapes("update_moment_per_elem_norm", "updates", "moments", _BROADCAST),
    ),
}

# Functions that accept anything, and why.
TAKES_ANYTHING = {
    "tree.NamedTupleKey": "a pair of names, used unchanged",
    "tree.first_difference": "any two trees: it finds differences",
    "tree.leaf_paths": "any tree",
    "tree.owner_of": "any path",
    "tree.named": "any text",
    "tree.names_in": "any tree",
    "tree.size": "any tree: a leaf that is not an array counts as one, as in NumPy",
    "tree.unwrap_random_key_data": "any tree: other leaves do not change",
}
