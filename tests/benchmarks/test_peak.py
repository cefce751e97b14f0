"""The benchmark of peak memory trains a GPT, and leaves out what fails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from benchmarks import gpt, peak, processes, torch_gpt
from benchmarks.trees import stacked_gpt, TINY, TREES

TREE = TINY["gpt2-xl stacked"]


@pytest.fixture(autouse=True)
def _as_users_have_it():
    """JAX's attention and Optax promote dtypes."""
    with jax.numpy_dtype_promotion("standard"):
        yield


def test_the_stack_has_the_params_of_the_layers():
    stacked, apart = TREES["gpt2-xl stacked"], TREES["gpt2-xl"]
    assert stacked.params == apart.params
    assert stacked.leaves == 16


def _tiny(dtype=jnp.float32):
    shapes = stacked_gpt(2, 64, 300, 16)
    tokens = next(gpt.batches(2, 16))
    return gpt.init(shapes, dtype, jax.random.key(0)), tokens


def test_the_loss_starts_at_that_of_a_guess():
    params, tokens = _tiny()
    assert tokens.shape == (2, 17) and tokens.max() < 256
    tokens = np.random.default_rng(0).integers(0, 300, (4, 17))  # in text, bytes repeat
    assert abs(float(gpt.loss(params, tokens)) - np.log(300)) < 0.1


def test_a_token_sees_only_those_before_it():
    params, _ = _tiny()
    first = jax.tree.map(lambda x: x[0], params["layers"])
    x = jax.random.normal(jax.random.key(1), (1, 8, 64), jnp.bfloat16)
    y, changed = (gpt._layer(x, first, "xla") for x in (x, x.at[:, 5:].multiply(2)))
    assert (y[:, :5] == changed[:, :5]).all() and (y[:, 5:] != changed[:, 5:]).any()


@pytest.mark.parametrize(
    "optimizer, who",
    [("adamw, float32", "optax"), ("adamw, int8, 24-bit weights", "steepest")],
)
def test_numbers_of_one_case(optimizer, who, monkeypatch):
    monkeypatch.setattr(peak, "ROW", 2)
    monkeypatch.setattr(peak, "ROUNDS", 3)
    dtype, contenders = peak.CASES[optimizer]
    numbers = peak.trained(who, contenders[who](), TREE, dtype)
    assert list(numbers) == list(peak.QUANTITIES)
    assert len(numbers["step"]) == 3
    one = {quantity: xs[0] for quantity, xs in numbers.items()}
    assert one["weights"] == TREE.params * jnp.dtype(dtype).itemsize
    kept = one["weights"] + one["state"]
    assert kept < one["peak"] and one["rest"] >= kept
    assert one["loss"] < one["first loss"]


def test_a_description_that_is_wrong_is_an_error():
    described = steepest.describe(steepest.adamw(1e-3), TREE.shapes)
    weights, state = described.param_bytes, described.state_bytes
    peak._check_description(described, weights, state)
    with pytest.raises(RuntimeError, match="Correct `describe`"):
        peak._check_description(described, weights, state + 1)


def test_a_case_that_fails_is_left_out(monkeypatch, capsys):
    def measured(module, case, *options, longest):
        assert module == "benchmarks.peak" and options == ("--quick",)
        return {} if case == ("muon, int8", "steepest") else {"peak": [7_000_000]}

    monkeypatch.setattr(processes, "measured", measured)
    rows = list(peak.of_training(TREE, {}, quick=True))
    assert [row.optimizer for row in rows] == list(peak.CASES)[:-1]
    assert {"steepest", "optax"} <= rows[0].times.keys()
    assert "| 7.00 MB |" in capsys.readouterr().out


def test_torch_trains_the_same_model(monkeypatch):
    torch = pytest.importorskip("torch")
    shapes = stacked_gpt(2, 64, 300, 16)
    params, tokens = _tiny()
    theirs = torch_gpt.init(torch, shapes, "cpu")
    as_torch = lambda x: torch.from_numpy(np.array(x))
    layers = [
        jax.tree.map(lambda x, k=k: as_torch(x[k]), params["layers"]) for k in range(2)
    ]
    same = {k: jax.tree.map(as_torch, x) for k, x in params.items() if k != "layers"}
    same["layers"] = layers
    assert jax.tree.map(lambda x: x.shape, same) == jax.tree.map(
        lambda x: x.shape, theirs
    )
    value = torch_gpt.loss(torch, same, torch.from_numpy(tokens).long())
    assert abs(float(value.detach()) - float(gpt.loss(params, tokens))) < 1e-2
    numbers = torch_gpt.trained(shapes, 1e-3, gpt.batches(2, 16), rounds=3, row=2)
    assert numbers["loss"] < numbers["first loss"]
