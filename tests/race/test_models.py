"""Models of Flax and Equinox in a race train as they do in a loop of their own."""

import builtins
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import steepest
from steepest.race import Problem, race
from steepest.race._check import checked
from steepest.race._model import _loss_key

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(24, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int32)
HELD_OUT = 2 * X[:6], Y[:6]
RATE, STEPS, SEED = 0.3, 3, 5


@pytest.fixture(autouse=True)
def _as_jax_comes():
    """Flax and Equinox rely on JAX's default promotion."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def _cross_entropy(logits, labels):
    scores = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))


class Nnx(nnx.Module):
    """All kinds of state: statistics, and the keys of dropout."""

    def __init__(self, *, rngs):
        self.first = nnx.Linear(3, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, momentum=0.5, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.last = nnx.Linear(8, 2, rngs=rngs)

    def __call__(self, x):
        x = self.dropout(jax.nn.relu(self.norm(self.first(x))))
        self.hidden = nnx.Intermediate(x)
        return self.last(x)


def nnx_loss(model, batch):
    logits = model(batch[0])
    return _cross_entropy(logits, batch[1]), logits


class Linen(linen.Module):
    rate: float = 0.0

    @linen.compact
    def __call__(self, x, train):
        x = linen.Dense(8)(x)
        x = linen.BatchNorm(use_running_average=not train, momentum=0.5)(x)
        x = linen.Dropout(self.rate, deterministic=not train)(linen.relu(x))
        return linen.Dense(2)(x)


def linen_loss(model, batch, train):
    return _cross_entropy(model(batch[0], train=train), batch[1])


class Equinox(eqx.Module):
    first: eqx.nn.Linear
    norm: eqx.nn.BatchNorm
    dropout: eqx.nn.Dropout
    last: eqx.nn.Linear
    scale: jax.Array  # an array that is not trained

    def __init__(self, *, key):
        one, two = jax.random.split(key)
        self.first = eqx.nn.Linear(3, 8, key=one)
        self.norm = eqx.nn.BatchNorm(8, axis_name="batch", mode="batch")
        self.dropout = eqx.nn.Dropout(0.5)
        self.last = eqx.nn.Linear(8, 2, key=two)
        self.scale = jnp.int32(1)

    def __call__(self, x, state, key):
        x, state = self.norm(self.first(x), state)
        return self.scale * self.last(self.dropout(jax.nn.relu(x), key=key)), state


def equinox_loss(model, state, batch, key):
    keys = jax.random.split(key, len(batch[0]))
    each = jax.vmap(model, (0, None, 0), (0, None), axis_name="batch")
    logits, state = each(batch[0], state, keys)
    return _cross_entropy(logits, batch[1]), state


def _problem(make, *args, **how):
    how = {"validation": HELD_OUT, "batch_size": 8, "eval_batch_size": 4, **how}
    return make(*args, (X, Y), **how)


def _run(problem):
    """Losses and final metric of one run."""
    how = {"learning_rates": [RATE], "seeds": [SEED], "steps": STEPS}
    outcome = race(problem, ["sgd"], **how)
    assert not outcome.missing
    (sweep,) = outcome.sweeps
    return sweep.loss[0, 0, 1:], sweep.metric[0, 0, -1], outcome


def _batches(problem):
    order = jax.random.split(jax.random.key(SEED))[1]
    data = jax.tree.map(jnp.asarray, problem.data)
    for t in range(STEPS):
        yield t, problem.batches(jax.random.fold_in(order, t), data)


def _start():
    return jax.random.split(jax.random.key(SEED))[0]


def test_nnx_trains_as_with_its_own_optimizer():
    problem = _problem(Problem.from_nnx, Nnx, nnx_loss)
    losses, metric, outcome = _run(problem)
    model = Nnx(rngs=nnx.Rngs(_start()))
    optimizer = nnx.Optimizer(model, steepest.sgd(RATE), wrt=nnx.Param)
    model.train()
    step = nnx.jit(nnx.value_and_grad(nnx_loss, has_aux=True))
    for t, batch in _batches(problem):
        (value, _), g = step(model, batch)
        optimizer.update(model, g)
        np.testing.assert_allclose(losses[t], value, rtol=1e-5)
    model.eval()
    np.testing.assert_allclose(metric, nnx_loss(model, HELD_OUT)[0], rtol=1e-5)
    assert outcome.remarks == () and outcome.measure == "validation loss"


def test_linen_trains_as_with_apply():
    problem = _problem(Problem.from_linen, Linen(), linen_loss)
    losses, metric, _ = _run(problem)
    module = Linen()
    params, state = problem.init(_start())

    def loss(params, state, batch):
        x, labels = batch
        how = {"train": True, "mutable": ["batch_stats"]}
        logits, state = module.apply({"params": params, **state}, x, **how)
        return _cross_entropy(logits, labels), state

    step = jax.jit(jax.value_and_grad(loss, has_aux=True))
    for t, batch in _batches(problem):
        (value, state), g = step(params, state, batch)
        params = jax.tree.map(lambda p, g: p - RATE * g, params, g)
        np.testing.assert_allclose(losses[t], value, rtol=1e-5)
    logits = module.apply({"params": params, **state}, HELD_OUT[0], train=False)
    np.testing.assert_allclose(metric, _cross_entropy(logits, HELD_OUT[1]), rtol=1e-5)


def test_equinox_trains_as_in_a_loop():
    make = eqx.nn.make_with_state(Equinox)
    problem = _problem(Problem.from_equinox, make, equinox_loss)
    losses, metric, _ = _run(problem)
    model, state = make(key=_start())
    step = eqx.filter_jit(eqx.filter_value_and_grad(equinox_loss, has_aux=True))
    for t, batch in _batches(problem):
        (value, state), g = step(model, state, batch, _loss_key(SEED, t))
        model = eqx.apply_updates(model, jax.tree.map(lambda g: -RATE * g, g))
        np.testing.assert_allclose(losses[t], value, rtol=1e-5)
    model = eqx.nn.inference_mode(model)
    value, _ = equinox_loss(model, state, HELD_OUT, jax.random.key(0))
    np.testing.assert_allclose(metric, value, rtol=1e-5)


def _value(problem, seed, metric=False):
    """The first loss, or the first metric, without a race."""
    params, state = problem.init(jax.random.key(0))
    if metric:
        return float(problem.metric(params, state, problem.data))
    return float(problem.loss(params, state, (X, Y), jax.random.key(seed))[0])


def test_dropout_is_on_in_training_only():
    problem = _problem(Problem.from_linen, Linen(0.5), linen_loss)
    assert _value(problem, 1) != _value(problem, 2)
    assert problem.remarks == ()
    module = linen.Sequential([linen.Dropout(0.5, deterministic=False), linen.Dense(2)])
    always = _problem(
        Problem.from_linen,
        module,
        lambda f, batch: _cross_entropy(f(batch[0]), batch[1]),
    )
    (message,) = always.remarks
    assert message.startswith("The metric depends on random keys")


def _with_logits(model, state, batch, key):
    value, state = equinox_loss(model, state, batch, key)
    return value, state, jnp.zeros((len(batch[0]), 2))


@pytest.mark.parametrize(
    "make, args",
    [
        (Problem.from_nnx, (Nnx, nnx_loss)),
        (Problem.from_equinox, (Equinox, _with_logits)),
    ],
)
def test_accuracy_is_computed_from_logits(make, args):
    problem = _problem(make, *args, metric="accuracy", eval_batch_size=6)
    assert (problem.measure, problem.better) == ("accuracy", "higher")
    assert _value(problem, 0, metric=True) in [k / 6 for k in range(7)]


def test_a_metric_of_ones_own():
    def count(model, batch):
        return jnp.mean(jnp.ones(len(batch[0])))

    problem = _problem(Problem.from_nnx, Nnx, nnx_loss, metric=count, better="lower")
    assert problem.measure == "count" and _value(problem, 0, metric=True) == 1
    how = {"metric": lambda model, state, batch: jnp.mean(batch[0]), "better": "lower"}
    problem = _problem(Problem.from_equinox, Equinox, equinox_loss, **how)
    np.testing.assert_allclose(
        _value(problem, 0, metric=True), HELD_OUT[0].mean(), rtol=1e-4, atol=1e-6
    )


def test_functions_may_have_state_and_take_keys():
    def init(key):
        return {"w": jax.random.normal(key, (3,))}, {"count": jnp.float32(0)}

    def loss(params, state, batch, key, train):
        noise = jax.random.normal(key) if train else 0.0
        value = jnp.mean(batch[0] @ params["w"]) + noise
        return value, {"count": state["count"] + 1}

    problem = _problem(Problem.from_functions, init, loss, stateful=True)
    checked(problem)
    params, state = problem.init(jax.random.key(0))
    _, state = problem.loss(params, state, (X, Y), jax.random.key(0))
    assert state["count"] == 1 and _value(problem, 1) != _value(problem, 2)
    w = params["w"]
    np.testing.assert_allclose(
        _value(problem, 0, metric=True), (HELD_OUT[0] @ w).mean(), rtol=1e-4, atol=1e-6
    )


FIXED = {
    "nnx": lambda: _problem(Problem.from_nnx, Nnx(rngs=nnx.Rngs(0)), nnx_loss),
    "equinox": lambda: _problem(
        Problem.from_equinox,
        eqx.nn.make_with_state(Equinox)(key=jax.random.key(0)),
        equinox_loss,
    ),
    "linen": lambda: _problem(
        Problem.from_linen,
        Linen(),
        linen_loss,
        init=functools.partial(
            lambda known, key: known, Linen().init(jax.random.key(0), X, train=False)
        ),
    ),
}


@pytest.mark.parametrize("make", FIXED.values(), ids=FIXED)
def test_a_model_that_exists_is_the_start_of_every_seed(make):
    problem = checked(make())
    (p, s), (q, r) = (problem.init(jax.random.key(k)) for k in (0, 1))
    jax.tree.map(np.testing.assert_array_equal, p, q)
    keys = [jax.random.key_data(x) for x in jax.tree.leaves(s) if "key" in str(x.dtype)]
    same = [jax.random.key_data(x) for x in jax.tree.leaves(r) if "key" in str(x.dtype)]
    assert all((x != y).any() for x, y in zip(keys, same, strict=True))


def test_some_params_may_be_frozen():
    last = lambda path, _: path[0] == "last"
    problem = _problem(Problem.from_nnx, Nnx, nnx_loss, wrt=last)
    params, state = problem.init(jax.random.key(0))
    assert set(params) == {"last"} and "kernel" in state["first"]
    spec = lambda x: eqx.is_inexact_array(x) and x.ndim == 2
    problem = _problem(Problem.from_equinox, Equinox, equinox_loss, wrt=spec)
    params, _ = problem.init(jax.random.key(0))
    assert len(jax.tree.leaves(params)) == 2


BAD = {
    "nnx model": (Problem.from_nnx, (3, nnx_loss), {}, "model is a int, expected"),
    "nnx arguments": (
        Problem.from_nnx,
        (nnx.Linear, nnx_loss),
        {},
        "model could not be made.*Pass a function of one .*`lambda rngs",
    ),
    "nnx keywords": (
        Problem.from_nnx,
        (functools.partial(nnx.Linear, 3), nnx_loss),
        {},
        "model could not be made",
    ),
    "nnx result": (Problem.from_nnx, (lambda rngs: 3, nnx_loss), {}, "returned a int"),
    "linen class": (
        Problem.from_linen,
        (Linen, linen_loss),
        {},
        "module is a .*expected a linen module",
    ),
    "linen loss": (
        Problem.from_linen,
        (Linen(), lambda model, batch: 0.0),
        {},
        "the loss did not call the model",
    ),
    "equinox model": (Problem.from_equinox, (3, equinox_loss), {}, "model is a int"),
    "equinox arguments": (
        Problem.from_equinox,
        (eqx.nn.make_with_state(eqx.nn.Linear), equinox_loss),
        {},
        "model could not be made.*such as `lambda key",
    ),
    "equinox result": (
        Problem.from_equinox,
        (lambda key: 3, equinox_loss),
        {},
        "model made a int",
    ),
    "equinox state": (
        Problem.from_equinox,
        (eqx.nn.make_with_state(Equinox)(key=jax.random.key(0))[0], equinox_loss),
        {},
        "the state of the model is missing",
    ),
    "equinox loss": (
        Problem.from_equinox,
        (Equinox, lambda model, state, batch: 0.0),
        {},
        r"a function returned a float, expected `\(value, state\)`",
    ),
    "functions": (Problem.from_functions, (3, nnx_loss), {}, "init is 3, expected"),
    "pair": (
        Problem.from_functions,
        (lambda key: 3.0, nnx_loss),
        {"stateful": True},
        r"init returned a float, expected a pair",
    ),
    "loss": (Problem.from_nnx, (Nnx, "loss"), {}, "loss is 'loss', expected"),
    "two": (
        Problem.from_nnx,
        (Nnx, lambda model, x, y: 0.0),
        {},
        r"`function\(model, batch\)` does not fit.*'y'.*`x, y = batch`",
    ),
    "metric": (Problem.from_nnx, (Nnx, nnx_loss), {"metric": "f1"}, "metric is 'f1'"),
    "better": (
        Problem.from_nnx,
        (Nnx, nnx_loss),
        {"metric": lambda model, batch: 0.0},
        "`better` is missing",
    ),
    "logits": (
        Problem.from_linen,
        (Linen(), linen_loss),
        {"metric": "accuracy"},
        "needs a loss that also returns the logits",
    ),
    "labels": (
        Problem.from_nnx,
        (Nnx, lambda model, batch: (0.0, jnp.zeros((3, 2)))),
        {"metric": "accuracy"},
        "needs one label for each row",
    ),
}


@pytest.mark.parametrize("make, args, how, says", BAD.values(), ids=BAD)
def test_mistakes_are_errors(make, args, how, says, as_users_do):
    with pytest.raises((TypeError, ValueError), match=rf"Problem.from_\w+: .*{says}"):
        _problem(make, *args, **how)


@pytest.mark.parametrize("package", ["flax", "equinox"])
def test_a_missing_package_is_named(package, monkeypatch):
    imports = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return imports(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    makers = {"flax": [Problem.from_nnx, Problem.from_linen]}
    for make in makers.get(package, [Problem.from_equinox]):
        with pytest.raises(ImportError, match=f"needs the package {package}.*pip"):
            make(Nnx, nnx_loss, (X, Y))
