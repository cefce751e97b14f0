"""The built-in problems: their properties, and that they can be learned."""

import sysconfig
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import decoupled
from steepest.race import find_lr, Problem, race
from steepest.race._check import checked
from steepest.race.problems import (
    _digits,
    _hebbian,
    bytes_,
    digits,
    hebbian,
    known,
    least_squares,
    load,
    rosenbrock,
)

from .small import LINE

KEY = jax.random.key(0)
names = pytest.mark.parametrize("name", list(known()))


@names
def test_fits_together(name):
    """And has a description."""
    problem = checked(load(name))
    assert problem.name == name
    assert problem.about.endswith(".") and problem.target is not None
    assert known()[name].endswith(".")
    same = lambda a, b: np.testing.assert_array_equal(a, b)
    jax.tree.map(same, problem.data, load(name).data)


def test_it_prints_as_one_line_without_its_arrays():
    text = repr(load("digits"))
    assert text.startswith("<Problem digits, measure: accuracy, better: higher, ")
    assert "\n" not in text and "MB, steps: " in text and len(text) < 150
    assert "\x1b" not in repr(replace(LINE, name="\x1b[31m"))


@pytest.mark.parametrize(
    "call, says",
    [
        (
            lambda: race(LINE, learning_rate=0.1),
            "^race: there is no argument `learning_rate`. Did you mean `learning_rat",
        ),
        (
            lambda: race(LINE, optimizer="adam"),
            "^race: there is no argument `optimizer`. Did you mean `optimizers`",
        ),
        (
            lambda: race(LINE, zzz=1),
            "^race: there is no argument `zzz`. Others: problem, optimizers, learning",
        ),
        (
            lambda: find_lr(LINE, "adam", higest=1.0),
            "^find_lr: there is no argument `higest`. Did you mean `highest`",
        ),
        (
            lambda: Problem(init=LINE.init, los=LINE.loss),
            "^Problem: there is no argument `los`. Did you mean `loss`",
        ),
    ],
    ids=["rate", "optimizer", "others", "find_lr", "Problem"],
)
def test_an_unknown_argument_is_an_error_with_the_known_ones(call, says):
    with pytest.raises(TypeError, match=says):
        call()


def _trained(problem, tx, steps):
    """The losses of some steps, and the metric before and after."""

    @jax.jit
    def run(data):
        params = problem.init(KEY)
        train = steepest.make_train_step(problem.loss, tx)
        rule = decoupled.of(tx)

        def step(carry, k):
            params, state = carry
            batch = problem.batches(jax.random.fold_in(KEY, k), data)
            if problem.adjust is None:
                params, state, value = train(params, state, batch)
            else:
                value = problem.loss(params, batch)
                adjustments = problem.adjust(params, batch)
                state, params = rule.step(state, params, adjustments)
            return (params, state), value

        start = params, tx.init(params)
        (after, _), values = jax.lax.scan(step, start, jnp.arange(steps))
        return values, problem.metric(params, data), problem.metric(after, data)

    return run(problem.data)


def test_digits_are_learned():
    losses, before, after = _trained(digits(), steepest.adamw(1e-2), 60)
    assert before < 0.3 and after > 0.85
    assert jnp.mean(losses[-5:]) < 0.5 < losses[0]


def test_digits_are_learned_without_a_gradient():
    losses, before, after = _trained(hebbian(), steepest.muon(3e-3), 120)
    assert before < 0.3 and after > 0.9
    assert jnp.mean(losses[-5:]) < 0.5 * losses[0]


def test_digits_convolve():
    """A chain of matrix products, equal to a convolution."""
    params = jax.jit(_digits._init)(KEY)
    pixels = jax.random.uniform(KEY, (5, 8, 8, 1), jnp.float32)
    x = pixels
    for name, side, padding in (("conv1", 3, [(1, 0)] * 2), ("conv2", 2, "VALID")):
        kernel, bias = params[name]["kernel"], params[name]["bias"]
        inside = (side, side, -1) if name == "conv1" else (-1, side, side)
        kernel = kernel.reshape(*inside, kernel.shape[-1])
        if name == "conv2":
            kernel = kernel.transpose(1, 2, 0, 3)
        layout = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(
            x, kernel, (2, 2), padding, dimension_numbers=layout
        )
        x = jax.nn.relu(x + bias[None, None, None, :])
    x = x.transpose(0, 3, 1, 2).reshape(5, -1)
    dense, head = params["dense"], params["head"]
    x = jax.nn.relu(x @ dense["kernel"] + dense["bias"][None, :])
    wanted = x @ head["kernel"] + head["bias"][None, :]
    padded = jnp.pad(pixels[..., 0], [(0, 0), (1, 1), (1, 1)]).reshape(5, 100)
    result = _digits._scores(params, _digits._patches(padded))
    np.testing.assert_allclose(result.T, wanted, rtol=1e-4, atol=1e-4)


def test_digits_held_out_are_not_trained_on():
    data = digits().data
    held_out = {image.tobytes() for image in data["test_images"]}
    assert (len(data["images"]), len(held_out)) == (1347, 450)
    assert not held_out & {image.tobytes() for image in data["images"]}


def test_digits_give_muon_the_hidden_layers():
    tx = steepest.muon(1e-3)
    lines = steepest.describe(tx, jax.eval_shape(digits().init, KEY)).lines
    result = {line.path for line in lines if "muon" in line.groups}
    layers = "conv1", "conv2", "dense"
    assert result == {f"['{layer}']['kernel']" for layer in layers}


def test_adjustments_go_down_the_energy():
    """After settling, they are its gradient with fixed activities."""
    problem = hebbian()
    params, batch = jax.jit(
        lambda data: (problem.init(KEY), problem.batches(KEY, data))
    )(problem.data)

    @jax.jit
    def both(params):
        layers = _hebbian._settled(params, batch)

        def energy(p):
            errors = _hebbian._errors(p, layers)
            return sum(0.5 * jnp.sum(e**2) for e in errors) / len(batch[0])

        return problem.adjust(params, batch), jax.grad(energy)(params)

    result, wanted = both(params)
    for x, y in zip(result, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


def test_settling_lessens_the_energy():
    problem = hebbian()

    @jax.jit
    def energies(data):
        params, batch = problem.init(KEY), problem.batches(KEY, data)
        guessed = _hebbian._guess(params, batch[0])
        top = _hebbian._errors(params, [*guessed[:-1], batch[1]])[-1]
        before = 0.5 * jnp.sum(top**2) / len(top)
        return before, problem.loss(params, batch)

    before, after = energies(problem.data)
    assert 0 < after < before


def test_bytes_know_nothing_at_first():
    problem = bytes_()

    @jax.jit
    def start(data):
        params, batch = problem.init(KEY), problem.batches(KEY, data)
        return batch, problem.loss(params, batch), problem.metric(params, data)

    batch, loss, bits = start(problem.data)
    assert batch.shape == (8, 65) and batch.dtype == jnp.uint8
    assert bytes(np.asarray(batch[0])) in problem.data["train"].tobytes()
    assert 7.9 < float(loss) / np.log(2) < 8.3 and 7.9 < bits < 8.3
    assert 1e6 < problem.data["train"].size < 2.5e6


def test_bytes_do_not_look_ahead():
    from steepest.race.problems._bytes import _scores

    params = jax.eval_shape(bytes_().init, KEY)
    params = jax.tree.map(lambda x: jnp.full(x.shape, 0.1), params)
    params["embed"]["bytes"] = jnp.linspace(-1, 1, 256 * 64).reshape(256, 64)
    read = jnp.arange(64)[None, :]
    scores = jax.jit(_scores)
    one, other = scores(params, read), scores(params, read.at[0, 40].set(200))
    np.testing.assert_array_equal(one[0, :40], other[0, :40])
    assert jnp.any(one[0, 40] != other[0, 40])


def test_bytes_need_the_source(monkeypatch, tmp_path):
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    with pytest.raises(FileNotFoundError, match=r"argparse\.py.*another problem"):
        bytes_()


def test_rosenbrock_is_least_where_all_are_one():
    problem = rosenbrock()
    ones = jnp.ones(10)
    assert problem.metric(ones, None) == 0
    assert jnp.all(jax.grad(problem.loss)(ones, None) == 0)
    here, there = (problem.init(jax.random.key(seed)) for seed in (0, 1))
    assert jnp.max(jnp.abs(here - there)) > 0.01
    assert jnp.max(jnp.abs(here[::2] + 1.2)) < 0.5


def test_least_squares_are_steep_and_flat():
    problem = least_squares()
    a, b, best = (np.float64(problem.data[name]) for name in ("a", "b", "best"))
    assert np.linalg.cond(a.T @ a) == pytest.approx(1e5, rel=1e-2)
    np.testing.assert_allclose(best, np.linalg.lstsq(a, b)[0], atol=1e-3)
    at_zero = jax.jit(
        lambda f, data: f(jnp.zeros(30, jnp.float32), data), static_argnums=0
    )
    both = problem.loss, problem.metric
    loss, excess = (float(at_zero(f, problem.data)) for f in both)
    least = 0.5 * np.sum((a @ best - b) ** 2)
    assert least == pytest.approx(0.005, rel=1e-3)
    assert loss == pytest.approx(excess + least, rel=1e-4)
