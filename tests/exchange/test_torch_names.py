"""Which parameter of torch is which leaf, and what is an error or a warning."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import UnusualValueWarning

PARAMS = {
    "conv": {"kernel": jnp.zeros((5, 4, 3, 2))},
    "fc": {"bias": jnp.zeros(2), "kernel": jnp.zeros((3, 2))},
}
TORCH = {"conv.weight": (2, 3, 5, 4), "fc.weight": (2, 3), "fc.bias": (2,)}
NAMES = {
    "conv.weight": "conv/kernel",
    "fc.weight": "fc/kernel",
    "fc.bias": "fc/bias",
}
TRANSPOSE = {"conv": (2, 3, 1, 0), "fc/kernel": None}
GROUP = {
    "lr": 0.1,
    "betas": (0.9, 0.999),
    "eps": 1e-8,
    "weight_decay": 0.0,
    "amsgrad": False,
    "maximize": False,
    "decoupled_weight_decay": False,
}
SGD = {
    "lr": 0.1,
    "momentum": 0.9,
    "dampening": 0,
    "weight_decay": 0,
    "nesterov": False,
}


def _values(shape, k):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 100 * k


def _adam(shapes=None, named=True, t=7, **group):
    """The state dict of Adam with these shapes."""
    state = {
        k: {
            "step": np.float32(t),
            "exp_avg": _values(shape, k),
            "exp_avg_sq": _values(shape, k) + 0.5,
        }
        for k, shape in enumerate(shapes or TORCH.values())
    }
    more = {"param_names": list(TORCH)} if named else {}
    groups = [{**GROUP, **group, **more, "params": list(state)}]
    return {"state": state, "param_groups": groups}


def _check(state):
    assert int(state[0].count) == 7
    mu = state[0].mu
    conv, fc, bias = (_values(shape, k) for k, shape in enumerate(TORCH.values()))
    assert (mu["conv"]["kernel"] == conv.transpose(2, 3, 1, 0)).all()
    assert (mu["fc"]["kernel"] == fc.T).all() and (mu["fc"]["bias"] == bias).all()
    assert (state[0].nu["fc"]["bias"] == bias + 0.5).all()


@pytest.mark.parametrize(
    "names",
    [
        NAMES,
        list(NAMES.values()),
        dict(enumerate(NAMES.values())),
        {0: "conv/kernel", "fc.weight": "fc/kernel", "2": "fc/bias"},
    ],
)
def test_names_are_a_dict_or_a_list(names):
    tx = steepest.adam(0.1)
    _check(steepest.from_torch(_adam(), PARAMS, tx, names=names, transpose=TRANSPOSE))


def test_a_state_dict_may_have_been_json():
    text = json.dumps(_adam(), default=lambda x: x.tolist())
    more = {"names": NAMES, "transpose": TRANSPOSE}
    _check(steepest.from_torch(json.loads(text), PARAMS, steepest.adam(0.1), **more))


def test_a_state_dict_may_be_keyed_by_names():
    """As `torch.distributed.checkpoint` writes it."""
    plain = _adam()
    keys = list(TORCH)
    state = {keys[k]: x for k, x in plain["state"].items()}
    groups = [{**GROUP, "params": keys}]
    moved = {"state": state, "param_groups": groups}
    more = {"names": NAMES, "transpose": TRANSPOSE}
    _check(steepest.from_torch(moved, PARAMS, steepest.adam(0.1), **more))


def test_groups_count_on():
    """torch numbers the parameters over all groups."""
    plain = _adam(named=False)
    (group,) = plain["param_groups"]
    first, rest = {**group, "params": [0]}, {**group, "params": [1, 2]}
    moved = {**plain, "param_groups": [first, {**rest, "weight_decay": 0.3}]}
    tx = steepest.adam(0.1)
    more = {"names": list(NAMES.values()), "transpose": TRANSPOSE}
    with pytest.warns(
        UnusualValueWarning, match="0.3 in torch and 0 in tx .leaf 'fc/k"
    ):
        _check(steepest.from_torch(moved, PARAMS, tx, **more))
    masked = steepest.chain(
        steepest.add_decayed_weights(0.3, mask="fc"), steepest.adam(0.1)
    )
    state = steepest.from_torch(moved, PARAMS, masked, **more)
    _check(state[1])
    with pytest.raises(ValueError, match="so torch needs several param groups"):
        steepest.to_torch(state, PARAMS, masked)
    back = steepest.to_torch(state, PARAMS, masked, like=moved, **more)
    assert back["param_groups"] == moved["param_groups"]
    jax.tree.map(np.testing.assert_array_equal, back["state"], moved["state"])


def test_without_names_the_order_is_that_of_the_leaves():
    params = {"a": jnp.zeros((2, 3)), "b": [None, jnp.zeros(2)]}
    state = _adam([(2, 3), (2,)], named=False)
    moved = steepest.from_torch(state, params, steepest.adam(0.1))
    assert moved[0].mu["b"][0] is None
    assert (moved[0].mu["b"][1] == _values((2,), 1)).all()
    back = steepest.to_torch(moved, params, steepest.adam(0.1))
    jax.tree.map(np.testing.assert_array_equal, back["state"], state["state"])


def test_a_pattern_transposes_matrices_and_leaves_vectors():
    params = PARAMS["fc"]
    state = _adam([(2,), (2, 3)], named=False)
    moved = steepest.from_torch(state, params, steepest.adam(0.1), transpose=".")
    assert (moved[0].mu["kernel"] == _values((2, 3), 1).T).all()


class _Half:
    """A tensor of bfloat16: NumPy has no such dtype."""

    dtype = "torch.bfloat16"

    def __init__(self, x):
        self.x = x

    def detach(self):
        return self

    cpu = detach

    def float(self):
        return type("Tensor", (), {"numpy": lambda _: self.x})()

    def numpy(self):
        raise TypeError("Got unsupported ScalarType BFloat16")


def test_bfloat16_tensors_go_through_float32():
    params = {"w": jnp.zeros(2, jnp.bfloat16)}
    buffer = {"momentum_buffer": _Half(np.array([1.0, 2.0], np.float32))}
    state = {"state": {0: buffer}, "param_groups": [{**SGD, "params": [0]}]}
    tx = steepest.sgd(0.1, momentum=0.9)
    moved = steepest.from_torch(state, params, tx)
    assert moved[0].trace["w"].dtype == jnp.bfloat16
    assert moved[0].trace["w"].tolist() == [1.0, 2.0]
    back = steepest.to_torch(moved, params, tx)["state"][0]["momentum_buffer"]
    assert back.dtype == np.float32 and back.tolist() == [1.0, 2.0]


def test_two_optimizers_for_one_tree():
    """Muon for the matrices and AdamW for the rest, as torch needs it."""
    params = {"bias": jnp.zeros(2), "kernel": jnp.zeros((3, 2))}
    tx = steepest.muon(0.1, eps=1e-7, coefficients="standard", scale="original")
    adam = _adam([(2,)], named=False, betas=(0.9, 0.95))
    adam["param_groups"][0] |= {"weight_decay": 0.1, "decoupled_weight_decay": True}
    like = steepest.to_torch(
        tx.init(params), params, tx, names=["kernel"], transpose="kernel"
    )
    buffer = {"momentum_buffer": _values((2, 3), 3)}
    muon = {**like, "state": {0: buffer}}
    names = [["kernel"], ["bias"]]
    # A vector is not decayed in tx.
    with pytest.warns(
        UnusualValueWarning, match="weight_decay is 0.1 in torch and 0 i"
    ):
        state = steepest.from_torch(
            [muon, adam], params, tx, names=names, transpose="kernel"
        )
    kept = state.inner_states
    mu = kept["muon"].inner_state[0].mu["kernel"]
    assert (mu == buffer["momentum_buffer"].T).all()
    assert int(kept["adam"].inner_state[0].count) == 7
    with pytest.raises(ValueError, match="tx needs several optimizers of torch"):
        steepest.to_torch(state, params, tx)
    with pytest.raises(ValueError, match=r"leaf \['bias'\], which is not"):
        steepest.from_torch(muon, params, tx, names=["kernel"], transpose="kernel")


def test_numbers_that_differ_are_named():
    params = {"a": jnp.zeros((2, 3)), "b": jnp.zeros(2)}
    state = _adam([(2, 3), (2,)], named=False, weight_decay=0.2)
    tx = steepest.adamw(0.3, b2=0.99, weight_decay=0.2)
    with pytest.warns(UnusualValueWarning) as raised:
        steepest.from_torch(state, params, tx)
    assert str(raised[0].message) == (
        "from_torch: lr is 0.1 in torch and 0.3 in tx (leaf 'a' and 1 more); "
        "weight_decay is in the gradient in torch and apart from the gradient in tx "
        "(leaf 'a' and 1 more); betas is (0.9, 0.999) in torch and (0.9, 0.99) in tx "
        "(leaf 'a' and 1 more). The run goes on as tx says."
    )


def test_the_rate_of_a_schedule_is_that_of_the_next_step():
    state = _adam([(2,)], named=False, lr=0.7)
    params = jnp.zeros(2)
    tx = steepest.adam(lambda t: t.astype(float) / 10)
    moved = steepest.from_torch(state, params, tx)
    assert [int(x.count) for x in moved] == [7, 7]
    assert np.isclose(
        steepest.to_torch(moved, params, tx)["param_groups"][0]["lr"], 0.7
    )


def test_maximize_is_named():
    state = _adam([(2,)], named=False, maximize=True)
    with pytest.warns(UnusualValueWarning, match="so tx needs the negative gradients"):
        steepest.from_torch(state, jnp.zeros(2), steepest.adam(0.1))


def test_an_older_torch_does_not_say_whether_decay_is_decoupled():
    state = _adam([(2,)], named=False, weight_decay=0.1)
    del state["param_groups"][0]["decoupled_weight_decay"]
    decay = steepest.add_decayed_weights(0.1)
    both = (steepest.adamw(0.1, weight_decay=0.1), [decay, steepest.adam(0.1)])
    steepest.from_torch(state, jnp.zeros(2), both[0])
    steepest.from_torch(state, jnp.zeros(2), steepest.chain(*both[1]))


def test_a_run_that_has_not_begun():
    tx = steepest.adam(0.1)
    params = {"w": jnp.ones(2)}
    state = {"state": {}, "param_groups": [{**GROUP, "params": [0]}]}
    moved = steepest.from_torch(state, params, tx)
    jax.tree.map(np.testing.assert_array_equal, moved, tx.init(params))


def test_eps_elsewhere_is_a_warning_where_it_matters():
    group = {
        "lr": 0.1,
        "lr_decay": 0,
        "eps": 1e-10,
        "weight_decay": 0,
        "initial_accumulator_value": 0,
        "params": [0],
    }
    make = lambda total: {
        "state": {0: {"step": 3.0, "sum": [total]}},
        "param_groups": [group],
    }
    params = jnp.ones(1)
    steepest.from_torch(make(1e-4), params, steepest.adagrad(0.1, eps=0.0))
    for total, tx in (
        (1e-16, steepest.adagrad(0.1, eps=0.0)),
        (1e-4, steepest.adagrad(0.1)),
    ):
        with pytest.warns(
            UnusualValueWarning, match="adds eps outside the square root"
        ):
            steepest.from_torch(make(total), params, tx)
