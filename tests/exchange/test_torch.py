"""Runs that move between torch and steepest. `_torch_run` stored torch's part."""

import json

import jax
import numpy as np
import pytest

import steepest
from steepest.tree import key_paths

from . import _torch_cases as cases
from ._torch_run import FILE, optimizer_of, step

CASES = cases.CASES
STORED = json.loads(FILE.read_text())
every = pytest.mark.parametrize("name", CASES)


def _near(found, wanted, rtol=1e-6):
    """Equal but for rounding: of each number, or of the largest in the array."""
    for x, y in zip(*map(jax.tree.leaves, (found, wanted)), strict=True):
        x, y = np.asarray(x), np.asarray(y, np.float32)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * np.max(np.abs(y)))


def _same_end(found, name):
    """Whether the params moved as in torch."""
    start, end = (cases.ours(STORED[name][k]["params"]) for k in ("middle", "end"))
    far = lambda a, b: max(
        float(abs(x - y).max())
        for x, y in zip(*map(jax.tree.leaves, (a, b)), strict=True)
    )
    assert far(found, end) < CASES[name].tolerance * far(start, end)


def _steps(case, tx, params, state, first, last):
    update = jax.jit(tx.update)
    for t in range(first, last):
        grads = cases.ours(cases.gradients(case)[t])
        updates, state = update(grads, state, params)
        params = steepest.apply_updates(params, updates)
    return params, state


def _moved(case, name):
    """The params and the state of torch's run when it moves."""
    middle = STORED[name]["middle"]
    params = cases.ours(middle["params"])
    tx = case.make()
    more = {"names": case.names, "transpose": cases.TRANSPOSE, **case.more}
    return params, tx, steepest.from_torch(middle["state_dict"], params, tx, **more)


def _back(case, name, state, params, tx, **more):
    """The state dict of torch, in which tx may have no place for some numbers."""
    more = {"names": case.names, "transpose": cases.TRANSPOSE, **case.more, **more}
    if {"dampening", "lr_decay"} & case.arguments.keys():
        more["like"] = STORED[name]["middle"]["state_dict"]
    return steepest.to_torch(state, params, tx, **more)


def _memory(state):
    """Arrays by parameter and name; JSON has keys of text."""
    return {
        int(k): {a: np.asarray(x) for a, x in row.items()} for k, row in state.items()
    }


@every
def test_a_run_of_torch_goes_on(name):
    """Steps 6 to 10 equal torch's: the params, and what torch keeps."""
    case = CASES[name]
    params, tx, state = _moved(case, name)
    params, state = _steps(case, tx, params, state, cases.MOVE, cases.STEPS)
    _same_end(params, name)
    back = _back(case, name, state, params, tx, count=cases.STEPS)
    _near(back["state"], _memory(STORED[name]["end"]["state"]))


@every
def test_the_state_is_one_of_tx(name):
    """So that a compiled step of the same run accepts it."""
    case = CASES[name]
    params, tx, state = _moved(case, name)
    kinds = lambda tree: jax.tree.map(lambda x: (x.shape, x.dtype, x.weak_type), tree)
    assert kinds(state) == kinds(tx.init(params))


@every
def test_there_and_back(name):
    case = CASES[name]
    params, tx, state = _moved(case, name)
    back = _back(case, name, state, params, tx, count=cases.MOVE)
    stored = STORED[name]["middle"]["state_dict"]
    _near(back["state"], _memory(stored["state"]))
    group, theirs = back["param_groups"][0], stored["param_groups"][0]
    assert group.keys() == theirs.keys()
    # Only the start of a run needs the second; torch's eps=1e-10 is lost in rounding.
    other = ("adjust_lr_fn", "initial_accumulator_value")
    for key in group.keys() - other:
        x, y = group[key], theirs[key]
        assert x == y or np.allclose(x, y, rtol=1e-6, atol=2e-10), key


@every
def test_a_run_of_steepest_goes_on_in_torch(name):
    torch = pytest.importorskip("torch")
    case = CASES[name]
    params, tx = cases.ours(cases.start(case)), case.make()
    if case.arguments.get("dampening"):
        pytest.skip("torch does not dampen the first gradient")
    params, state = _steps(case, tx, params, tx.init(params), 0, cases.MOVE)
    values = dict(zip(key_paths(params), jax.tree.leaves(params), strict=True))
    values = {k: np.asarray(values[cases.NAMES[k]]).T for k in case.shapes}
    optimizer, tensors = optimizer_of(case, values)
    back = _back(case, name, state, params, tx, tensor=torch.from_numpy)
    optimizer.load_state_dict(back)
    for t in range(cases.MOVE, cases.STEPS):
        step(case, optimizer, tensors, t)
    found = dict(zip(case.shapes, (x.detach().numpy() for x in tensors), strict=True))
    _same_end(cases.ours(found), name)


def _model(torch, dtype):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)).to(dtype)
    return model, list(model.named_parameters())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_named_parameters_in_two_groups(dtype):
    torch = pytest.importorskip("torch")
    model, named = _model(torch, getattr(torch, dtype))
    weights = [x for x in named if "weight" in x[0]]
    biases = [x for x in named if "bias" in x[0]]
    groups = [{"params": weights}, {"params": biases, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.1, weight_decay=0.2)
    for _ in range(3):
        for x in model.parameters():
            x.grad = torch.randn_like(x)
        optimizer.step()
    numpy = {k: x.detach().float().numpy() for k, x in named}
    params = {k: jax.numpy.asarray(x, dtype) for k, x in numpy.items()}
    tx = steepest.adamw(0.1, weight_decay=0.2, mask="weight")
    names = {k: k for k in params}
    state = steepest.from_torch(optimizer.state_dict(), params, tx, names=names)
    like = optimizer.state_dict()
    back = steepest.to_torch(
        state, params, tx, like=like, names=names, tensor=torch.from_numpy
    )
    optimizer.load_state_dict(back)
    for k, row in like["state"].items():
        for key, x in row.items():
            new = optimizer.state_dict()["state"][k][key]
            assert new.dtype == x.dtype and torch.equal(new, x), key


def test_the_stored_runs_are_torchs():
    pytest.importorskip("torch")
    from ._torch_run import run

    for name, case in CASES.items():
        if name != "muon_bfloat16":  # bfloat16 products differ between machines
            _near(run(case)["end"], STORED[name]["end"])


def test_memory_in_few_bits():
    """torch gets float32, and what it gives is encoded."""
    p = {"w": np.linspace(-1, 1, 4096, dtype=np.float32).reshape(64, 64)}
    tx = steepest.adamw(0.1, memory_dtype="int8")
    _, state = tx.update(p, tx.init(p), p)
    torch_state = steepest.to_torch(state, p, tx)
    memory = torch_state["state"][0]
    mean = np.asarray(state[0].mu["w"].decode())
    assert memory["exp_avg"].shape in (mean.shape, mean.T.shape)
    back = steepest.from_torch(torch_state, p, tx)
    for x, y in zip(jax.tree.leaves(state[0]), jax.tree.leaves(back[0]), strict=True):
        np.testing.assert_allclose(x, y, 1e-6)
