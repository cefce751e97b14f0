"""Bad calls of functions of core, engine and exchange."""

import jax
import jax.numpy as jnp

import steepest

from ._bad import Bad, params


def _longer():
    return {"w": jnp.ones((3, 2)), "b": jnp.zeros(3)}


def _step_with_a_function():
    tx = steepest.sgd(0.1)
    return steepest.make_step(tx)(params(), tx.init(params()), params(), value_fn=len)


def _shardings_inside_jit():
    return jax.jit(lambda p: steepest.shardings(steepest.adam(0.1), p))(params())


BAD = {
    "apply_updates": Bad(
        lambda: steepest.apply_updates(params(), _longer()),
        ValueError,
        "apply_updates: leaf ['b'] has shape (3,) in the updates and (2,) in the "
        "params. Pass trees of one structure.",
    ),
    "incremental_update": Bad(
        lambda: steepest.incremental_update(params(), params(), float("nan")),
        ValueError,
        "incremental_update: step_size is nan, expected a number that is finite.",
    ),
    "init": Bad(
        lambda: steepest.init(steepest.adam, params()),
        TypeError,
        "init: tx is a function, expected a gradient transformation (a pair of `init` "
        "and `update`). Call it first: `adam(...)`.",
    ),
    "lift": Bad(
        lambda: steepest.lift(steepest.adam(0.1)),
        TypeError,
        "lift: rule is a Transformation, expected a `Rule`: `lift(Rule(name, formula, "
        "State))`.",
    ),
    "make_step": Bad(
        _step_with_a_function,
        TypeError,
        "make_step: value_fn is a builtin_function_or_method, expected an array, "
        "since the step is compiled. To pass functions as extra arguments, call "
        "`tx.update` and `apply_updates`.",
    ),
    "pack": Bad(
        lambda: steepest.pack(steepest.adam(0.1), params()),
        TypeError,
        "pack: tx is a Transformation, expected one made by `packed`, such as "
        "`packed(adamw(1e-3))`.",
    ),
    "packed": Bad(
        lambda: steepest.packed(steepest.lars(0.1)),
        ValueError,
        "packed: scale_by_trust_ratio may need whole leaves, expected an elementwise "
        "transformation. Pack only the others: `chain(clip_by_block_rms(1.0), "
        "packed(adam(1e-3)))`.",
    ),
    "packing": Bad(
        lambda: steepest.packing(params(), below=0),
        ValueError,
        "packing: below is 0, expected a number that is whole and at least 1.",
    ),
    "periodic_update": Bad(
        lambda: steepest.periodic_update(params(), params(), 3, 0),
        ValueError,
        "periodic_update: update_period is 0, expected a number that is whole and at "
        "least 1.",
    ),
    "place": Bad(
        lambda: steepest.place(params(), {}),
        ValueError,
        "place: leaf ['b'] is in the state and not in the shardings. Pass the "
        "shardings of the same optimizer: `place(state, shardings(tx, params))`.",
    ),
    "repack": Bad(
        lambda: steepest.repack(params(), {"w": jnp.ones((3, 2))}),
        ValueError,
        "repack: `tree` has another structure than `like`, expected the structure of "
        "`unpack(like)`: ",
    ),
    "optimizer": Bad(
        lambda: steepest.optimizer(steepest.adam(0.1)),
        TypeError,
        "optimizer: recipe is a Transformation, expected a function.",
    ),
    "shardings": Bad(
        _shardings_inside_jit,
        TypeError,
        "shardings: the sharding of params['b'] is not known inside `jit`, since the "
        "axes of its mesh are not explicit. Call this outside of `jit`.",
    ),
    "Rule": Bad(
        lambda: steepest.Rule("mine", lambda g, *, decay: g, numbers={"decai": 0.9}),
        TypeError,
        "mine: <lambda> asks for decay, expected keyword-only arguments among: decai.",
    ),
    "transformation": Bad(
        lambda: steepest.transformation(steepest.adam(0.1)),
        TypeError,
        "transformation: got a Transformation, expected a function. Write "
        "`@transformation` above its definition.",
    ),
    "from_config": Bad(
        lambda: steepest.from_config({"adamm": {"learning_rate": 0.1}}),
        ValueError,
        "from_config: config names 'adamm', which is not a function of steepest. Did "
        "you mean 'adam'?",
    ),
    "to_config": Bad(
        lambda: steepest.to_config(steepest.masked(steepest.adam(0.1), len)),
        TypeError,
        "to_config: tx.mask is the function len, which cannot be written as JSON. "
        "Choose leaves by a pattern (`mask=r'kernel'`), and make schedules with "
        "functions of steepest.",
    ),
    "from_torch": Bad(
        lambda: steepest.from_torch(
            {"model": {}, "optimizer": {"state": {}, "param_groups": []}},
            params(),
            steepest.adam(0.1),
        ),
        TypeError,
        "from_torch: state_dict has the keys ['model', 'optimizer'], expected the keys "
        "'state' and 'param_groups'. Pass `state_dict['optimizer']`.",
    ),
    "to_torch": Bad(
        lambda: steepest.to_torch(
            steepest.lion(0.1).init(params()), params(), steepest.lion(0.1)
        ),
        ValueError,
        "to_torch: tx applies scale_by_lion to leaf 'b', which torch does not have. "
        "Expected one of: scale_by_adam, scale_by_polar, scale_by_radam, scale_by_rms, "
        "scale_by_rss, scale_by_stddev, trace.",
    ),
    "stateless": Bad(
        lambda: steepest.stateless(0.1),
        TypeError,
        "stateless: f is a float, expected a function.",
    ),
    "with_extra_args_support": Bad(
        lambda: steepest.with_extra_args_support(steepest.adam),
        TypeError,
        "with_extra_args_support: tx is a function, expected a gradient "
        "transformation (a pair of `init` and `update`). Call it first: `adam(...)`.",
    ),
}

# Functions that accept anything, and why.
TAKES_ANYTHING = {
    "gives": "the rule checks the function it decorates",
    "init_empty_state": "it ignores its argument",
    "Packed": "made by `pack`",
    "unpack": "a tree that is not packed is returned unchanged",
    "zero": Bad(
        lambda: steepest.zero(steepest.adam(0.1), axis=0),  # pyright: ignore
        TypeError,
        'zero: axis is a int, expected the name of a mesh axis, such as "data".',
    ),
}
