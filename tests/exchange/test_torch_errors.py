"""What `from_torch` and `to_torch` refuse, and the reason they give."""

from typing import Any

import jax.numpy as jnp
import pytest

import steepest

from .test_torch_names import _adam, GROUP, PARAMS, SGD

P = {"w": jnp.zeros((2, 3))}
MATRIX = _adam([(2, 3)], named=False)


def _dict(memory: dict[str, Any], **group: Any) -> dict[str, Any]:
    return {
        "state": {0: memory} if memory else {},
        "param_groups": [{**group, "params": [0]}],
    }


def _rms(**more: Any) -> dict[str, Any]:
    memory = {"step": 3.0, "square_avg": [[1.0] * 3] * 2, **more}
    momentum = 0.9 if "momentum_buffer" in more else 0
    group = {"lr": 0.1, "alpha": 0.9, "eps": 1e-8, "weight_decay": 0.0}
    centered = "grad_avg" in more
    return _dict(memory, **group, momentum=momentum, centered=centered)


_BUFFER = {"momentum_buffer": [[1.0] * 3] * 2}
_ADAGRAD = {"lr": 0.1, "eps": 1e-10, "weight_decay": 0.0}
_RMS = {"eps_in_sqrt": False}
_PLAIN = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}

BAD: dict[str, tuple[Any, Any, Any, str]] = {
    "transposed": (
        _adam([(3, 2)], named=False),
        P,
        {},
        "from_torch: leaf 'w' has shape (2, 3), but torch's parameter 0 has shape "
        "(3, 2). It fits transposed, as `torch.nn.Linear` stores (out, in): pass "
        "`transpose=['w']`, or a pattern for all such leaves.",
    ),
    "transposed in vain": (
        MATRIX,
        P,
        {"transpose": "w"},
        "and transpose gives the axes (1, 0). It fits without: leave 'w' out of "
        "`transpose`.",
    ),
    "a convolution": (
        _adam([(2, 3, 5, 4)], named=False),
        {"w": jnp.zeros((5, 4, 3, 2))},
        {},
        "It fits transposed: pass `transpose={'w': (2, 3, 1, 0)}`.",
    ),
    "a convolution without axes": (
        _adam([(2, 3, 5, 4)], named=False),
        {"w": jnp.zeros((5, 4, 3, 2))},
        {"transpose": "w"},
        "from_torch: transpose names 'w', which has 4 axes, so their order must be "
        "given. Pass `transpose={'w': axes}`; for a convolution from torch's OIHW to "
        "HWIO, axes is (2, 3, 1, 0).",
    ),
    "wrong axes": (
        MATRIX,
        P,
        {"transpose": {"w": (0, 2)}},
        "from_torch: transpose gives 'w' the axes (0, 2), expected the numbers 0 to 1 "
        "in some order.",
    ),
    "a pattern without a match": (
        MATRIX,
        P,
        {"transpose": "kernel"},
        "from_torch: transpose has 'kernel', which matches no leaf. The paths are "
        "['w'].",
    ),
    "no pattern": (
        MATRIX,
        P,
        {"transpose": "("},
        "from_torch: transpose has '(', which is not a regular expression (",
    ),
    "another order": (
        _adam([(7,)], named=False),
        P,
        {},
        "Pass `names`, since the leaves are not in torch's order: a list of paths in "
        "that order, or a dict from torch's names or indices to paths.",
    ),
    "another number": (
        _adam(),
        P,
        {},
        "from_torch: params has 1 leaf, but the state dict has 3 parameters. Pass "
        "`names`: a path for each parameter in torch's order, or None for one without "
        "a leaf.",
    ),
    "no such path": (
        MATRIX,
        P,
        {"names": ["v"]},
        "from_torch: names has the path 'v', which is not a leaf of params. The paths "
        "are ['w'].",
    ),
    "twice": (
        _adam(),
        PARAMS,
        {"names": ["fc/bias"] * 3},
        "from_torch: names gives 'fc/bias' to several parameters of torch, expected "
        "each path once.",
    ),
    "no name": (
        _adam(),
        PARAMS,
        {"names": {"conv.weight": "conv/kernel"}},
        "from_torch: names has no path for torch's parameter 1 ('fc.weight'). Add it,",
    ),
    "no names in torch": (
        MATRIX,
        P,
        {"names": {"fc.weight": "w"}},
        "from_torch: names has no path for torch's parameter 0. This state dict has no "
        "names: give indices, or a list in torch's order, that of "
        "`model.named_parameters()`.",
    ),
    "a name too many": (
        MATRIX,
        P,
        {"names": {0: "w", 1: "v"}},
        "from_torch: names has 1, which is not a parameter of the state dict. It has "
        "[0].",
    ),
    "several without names": (
        [MATRIX, MATRIX],
        P,
        {},
        "from_torch: got 2 state dicts, but names is None, expected a list or a dict "
        "of paths for each.",
    ),
    "a leaf of both": (
        [MATRIX, MATRIX],
        P,
        {"names": [["w"], ["w"]]},
        "from_torch: names gives 'w' to several parameters of torch, expected each "
        "path once.",
    ),
    "no array": (
        _dict({"momentum_buffer": "x"}, **SGD),
        P,
        {"tx": steepest.sgd(0.1, 0.9)},
        "from_torch: momentum_buffer of parameter 0 is a str, expected a tensor, an "
        "array or lists of numbers.",
    ),
    "another optimizer": (
        _dict(_BUFFER, **SGD),
        P,
        {},
        "from_torch: the state dict is of torch.optim.SGD, but tx applies "
        "scale_by_adam to leaf 'w'. Use `sgd(lr, momentum)`.",
    ),
    "no memory": (
        MATRIX,
        P,
        {"tx": steepest.sgd(0.1)},
        "from_torch: the state dict is of torch.optim.Adam, but tx keeps no memory for "
        "leaf 'w'. Use `adam(lr, b1, b2, eps)` or",
    ),
    "Nesterov": (
        MATRIX,
        P,
        {"tx": steepest.nadam(0.1)},
        "tx applies scale_by_adam with Nesterov momentum to leaf 'w'. Use `adam(",
    ),
    "Adamax": (
        _dict({"step": 1.0, "exp_inf": 0.0}, **_PLAIN),
        P,
        {},
        "a param group has the keys ['betas', 'eps', 'lr', 'weight_decay'], which "
        "are not those of an optimizer that can be converted. Expected one of: "
        "SGD, Adam, AdamW, NAdam, RAdam, RMSprop, Adagrad, Muon.",
    ),
    "AMSGrad": (
        _dict(
            {**MATRIX["state"][0], "max_exp_avg_sq": MATRIX["state"][0]["exp_avg"]},
            **{**GROUP, "amsgrad": True},
        ),
        P,
        {},
        "amsgrad=True. torch takes the maximum before the bias correction and steepest "
        "after it, so neither maximum gives the other. Start `amsgrad` anew with "
        "`tx.init`.",
    ),
    "a wrapper": (
        MATRIX,
        P,
        {"tx": steepest.apply_if_finite(steepest.adam(0.1), 3)},
        "from_torch: tx contains apply_if_finite, whose state torch does not have. "
        "Expected a chain, mask or partition of optimizers. Convert the state of the "
        "optimizer inside it, and put the result into the field `inner_state`.",
    ),
    "momentum without a place": (
        _dict(_BUFFER, **SGD),
        P,
        {"tx": steepest.sgd(0.1)},
        "from_torch: torch's parameter 0 has 'momentum_buffer', for which tx has no "
        "place at leaf 'w'. Pass `momentum` to the optimizer.",
    ),
    "centered without a mean": (
        _rms(),
        P,
        {"tx": steepest.rmsprop(0.1, **_RMS, centered=True)},
        "from_torch: tx needs 'grad_avg' for leaf 'w', which torch's parameter 0 does "
        "not have. Leave `centered` out.",
    ),
    "the first step with dampening": (
        _dict({}, **{**SGD, "dampening": 0.5}),
        P,
        {"tx": steepest.sgd(0.05, 0.9)},
        "torch does not dampen the first gradient, and steepest does. Take one step in "
        "torch first.",
    ),
    "all dampened": (
        _dict(_BUFFER, **{**SGD, "dampening": 1}),
        P,
        {"tx": steepest.sgd(0.05, 0.9)},
        "from_torch: dampening is 1, expected a number below 1:",
    ),
    "a schedule without a count": (
        _dict(_BUFFER, **SGD),
        P,
        {"tx": steepest.sgd(steepest.constant_schedule(0.1), 0.9)},
        "from_torch: scale_by_learning_rate counts the steps, which torch's SGD does "
        "not store. Pass `count`, the number of steps taken.",
    ),
    "another count": (
        MATRIX,
        P,
        {"count": 3},
        "from_torch: count is 3, but torch's parameters have taken 7 steps. Leave "
        "`count` out.",
    ),
    "eps in the root": (
        _rms(),
        P,
        {"tx": steepest.rmsprop(0.1)},
        "from_torch: torch's RMSprop adds eps outside the square root, and tx inside "
        "it. Pass `eps_in_sqrt=False` to `rmsprop`.",
    ),
    "RMSprop with bias correction": (
        _rms(),
        P,
        {"tx": steepest.rmsprop(0.1, **_RMS, bias_correction=True)},
        "tx corrects the bias of the mean square, and torch's RMSprop does not.",
    ),
    "RMSprop with Nesterov": (
        _rms(**_BUFFER),
        P,
        {"tx": steepest.rmsprop(0.1, **_RMS, momentum=0.9, nesterov=True)},
        "torch's RMSprop has no Nesterov momentum, and tx has. Leave out `nesterov`.",
    ),
    "RMSprop with momentum and a schedule": (
        _rms(**_BUFFER),
        P,
        {"tx": steepest.rmsprop(steepest.constant_schedule(0.1), **_RMS, momentum=0.9)},
        "accumulates the steps after the learning rate, torch before it.",
    ),
    "RMSprop without a step": (
        _rms(**_BUFFER),
        P,
        {"tx": steepest.rmsprop(0.0, **_RMS, momentum=0.9)},
        "from_torch: the learning rate of `rmsprop` is 0. It multiplies the momentum,",
    ),
    "lr_decay": (
        _dict({"step": 3.0, "sum": [[1.0] * 3] * 2}, **_ADAGRAD, lr_decay=0.5),
        P,
        {"tx": steepest.adagrad(0.1, eps=0.0)},
        "from_torch: torch's Adagrad has lr_decay=0.5, and the learning rate of tx is "
        "constant. Pass a schedule: `adagrad(lambda t: lr / (1 + lr_decay * t), "
        "eps=0.0)`.",
    ),
    "NAdam": (
        _dict(
            {**MATRIX["state"][0], "mu_product": 0.01},
            **_PLAIN,
            momentum_decay=4e-3,
        ),
        P,
        {"tx": steepest.nadam(0.1)},
        "from_torch: torch's NAdam raises its momentum during the run, and it is still "
        "49.9% below b1 (momentum_decay is 0.004, at step 7); the product of all "
        "momenta is 0.01, and b1^t is 0.478. steepest's `nadam` has a constant "
        "momentum. Start it anew with `tx.init`, or go on in torch.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_converted_is_refused(name, as_users_do):
    state, params, options, says = BAD[name]
    options = {"tx": steepest.adam(0.1), **options}
    with pytest.raises((TypeError, ValueError)) as raised:
        steepest.from_torch(state, params, **options)
    assert says in str(raised.value)


def test_a_state_of_another_optimizer_is_refused(as_users_do):
    tx = steepest.adam(0.1)
    with pytest.raises(
        ValueError, match=r"to_torch: leaf .* is in the state of tx and"
    ):
        steepest.to_torch(steepest.sgd(0.1).init(P), P, tx)
    with pytest.raises(ValueError, match=r"has shape \(3,\), expected \(2, 3\)"):
        steepest.to_torch(tx.init({"w": jnp.zeros(3)}), P, tx)


def test_torch_cannot_have_a_constant_momentum_and_raise_it(as_users_do):
    tx = steepest.nadam(0.1)
    like = _dict({}, **_PLAIN, momentum_decay=4e-3)
    with pytest.raises(
        ValueError, match="momentum_decay=1000, and torch's momentum is"
    ):
        steepest.to_torch(tx.init(P), P, tx, like=like)


def test_leaves_with_other_counts_need_their_own_transformation(as_users_do):
    params = {"a": jnp.zeros(2), "b": jnp.zeros(2)}
    state = _adam([(2,), (2,)], named=False)
    del state["state"][1]  # it never had a gradient
    with pytest.raises(
        ValueError, match=r"different numbers of steps \('a': 7, 'b': 0\)"
    ):
        steepest.from_torch(state, params, steepest.adam(0.1))
    tx = steepest.masked(steepest.adam(0.1), "a")
    moved = steepest.from_torch(state, params, tx, names=["a", None])
    assert int(moved.inner_state[0].count) == 7
