"""The learning-rate range test."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.race import find_lr, Problem
from steepest.race.report import range_test_picture
from steepest.race.terminal import main

from .small import LINE

CURVATURES = np.geomspace(0.04, 4.0, 10).astype(np.float32)
STABLE = 2 / CURVATURES.max()  # the largest stable rate of gradient descent


def _half_square(params, batch):
    return 0.5 * jnp.sum(CURVATURES * (params - batch) ** 2)


QUADRATIC = Problem(
    init=lambda key: jax.random.normal(key, (10,)),
    loss=_half_square,
    data=np.zeros(10, np.float32),
    name="quadratic",
)
NOISY = replace(
    QUADRATIC, batches=lambda key, data: data + 0.1 * jax.random.normal(key, (10,))
)


@pytest.mark.parametrize("problem", [QUADRATIC, NOISY], ids=["full", "noisy"])
def test_gradient_descent_diverges_at_two_over_the_curvature(problem):
    test = find_lr(problem, "sgd")
    assert STABLE / 1.6 < test.diverges < 1.6 * STABLE
    assert 1e-4 < test.suggested < test.diverges / 10


def test_momentum_moves_the_limit():
    """Heavy-ball is stable up to `2 (1 + b) / L`."""
    test = find_lr(QUADRATIC, "sgd(momentum=0.9)")
    assert STABLE * 1.9 / 1.6 < test.diverges < 1.6 * STABLE * 1.9


def test_the_limit_is_above_the_range():
    test = find_lr(NOISY, "sgd", highest=0.1)
    assert test.diverges is None and test.suggested is not None
    assert np.isfinite(test.smooth).all()
    assert "does not diverge up to 0.1" in range_test_picture(test).says


def test_everything_is_above_the_limit():
    test = find_lr(NOISY, "sgd", lowest=10.0, highest=1000.0, steps=50)
    assert test.diverges < 30.0 and test.suggested is None
    range_test_picture(test).alone()


def test_the_shapes():
    test = find_lr(LINE, "adam", steps=20, seeds=[3, 5])
    assert test.losses.shape == (2, 20) and test.smooth.shape == (20,)
    np.testing.assert_allclose(test.rates[[0, -1]], [1e-6, 10.0])
    assert (test.problem, test.optimizer) == ("line", "adam")
    assert find_lr(LINE, "adam").losses.shape == (3, 12), "the problem's"


def test_a_seed_has_the_same_losses_alone():
    both = find_lr(LINE, "adam", steps=20, seeds=[3, 5]).losses
    alone = find_lr(LINE, "adam", steps=20, seeds=[5]).losses
    np.testing.assert_allclose(both[1:], alone, rtol=1e-4)


def test_the_first_loss_is_that_of_the_initial_params():
    """The learning rate of the first step has not been used yet."""
    low, high = (find_lr(LINE, "sgd", steps=10, lowest=x) for x in (1e-6, 1.0))
    np.testing.assert_allclose(low.losses[:, 0], high.losses[:, 0])


@pytest.mark.parametrize("bad", [jnp.nan, jnp.inf])
def test_runs_that_break_down(bad):
    """A loss that is not a number above some distance."""

    def loss(params, batch):
        value = _half_square(params, batch)
        return jnp.where(value > 100, bad, value)

    test = find_lr(replace(NOISY, loss=loss), "sgd")
    assert STABLE / 2 < test.diverges < 2 * STABLE
    assert np.isfinite(test.suggested)
    assert "nan" not in range_test_picture(test).alone().lower()


def test_a_breakdown_after_the_first_step():
    loss = lambda params, batch: jnp.sum(jnp.log(params))
    positive = replace(QUADRATIC, init=lambda key: jnp.ones(10), loss=loss)
    test = find_lr(positive, "sgd", lowest=100.0, highest=1e3, steps=20)
    assert test.diverges == pytest.approx(100.0) and test.suggested is None
    assert "nan" not in range_test_picture(test).alone().lower()


def test_one_bad_seed_of_many():
    """Params that are NaN at the start for one seed."""

    def init(key):
        params = jax.random.normal(key, (10,))
        return jnp.where(params[0] > 1.0, jnp.nan, params)

    test = find_lr(replace(NOISY, init=init), "sgd", seeds=20)
    bad = np.isnan(test.losses[:, 0])
    assert 0 < bad.sum() < 20
    assert STABLE / 2 < test.diverges < 2 * STABLE


def test_a_loss_that_never_falls():
    flat = replace(QUADRATIC, loss=lambda params, batch: jnp.sum(0.0 * params) + 1.0)
    test = find_lr(flat, "sgd", steps=50)
    assert test.suggested is None and test.diverges is None
    assert "never falls" in range_test_picture(test).says
    range_test_picture(test).alone()


def test_a_fall_within_the_noise_is_not_called_none():
    """A loss that falls by 1 from 10, with noise of 1 from batch to batch."""
    problem = Problem(
        init=lambda key: 1.0 + 0.01 * jax.random.normal(key),
        loss=lambda params, batch: jnp.maximum(params, 0.0) + 9.0 + batch,
        batches=lambda key, data: jax.random.normal(key),
        name="hidden",
    )
    test = find_lr(problem, "sgd", steps=20, seeds=1, highest=1.0)
    says = range_test_picture(test).says
    assert test.suggested is None and test.fall > 0.5
    assert says.startswith("The loss does not clearly fall between 1e-6 and 1: a fall")
    assert "is within its noise. Use more steps" in says
    many = find_lr(problem, "sgd", steps=1000, highest=1.0)
    assert "falls fastest" in range_test_picture(many).says


@pytest.mark.parametrize(
    "optimizer", ["lookahead(adamw)", "schedule_free_adamw", "lion"]
)
def test_optimizers_with_more_state(optimizer):
    test = find_lr(NOISY, optimizer, steps=200)
    assert 1e-5 < test.suggested < 10


def test_a_local_learning_rule():
    local = replace(QUADRATIC, adjust=lambda params, batch: CURVATURES * params)
    assert STABLE / 2 < find_lr(local, "sgd").diverges < 4 * STABLE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"optimizer": "adamw(1e-3)"}, r"adamw\(1e-3\) has a learning rate already"),
        ({"optimizer": "adammm"}, "Did you mean adam"),
        ({"lowest": 1.0, "highest": 0.1}, "expected a lowest learning rate below"),
        ({"lowest": 0.0}, "expected a number above 0"),
        ({"highest": float("nan")}, "expected a number above 0"),
        ({"steps": 3}, "steps is 3, expected at least 10"),
        ({"seeds": 0}, "seeds"),
        ({"problem": "nowhere"}, "there is no problem 'nowhere'"),
        (
            {"problem": replace(LINE, loss=lambda p, b: jnp.nan * jnp.sum(p["w"]))},
            "is NaN at the initial params",
        ),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        find_lr(**{"problem": LINE, **arguments})


def test_an_optimizer_that_cannot_train_it():
    local = replace(QUADRATIC, adjust=lambda params, batch: CURVATURES * params)
    with pytest.raises(ValueError, match="cannot train the problem 'quadratic'"):
        find_lr(local, "lbfgs(rate)", steps=20)


def test_the_command(capsys, tmp_path):
    svg = tmp_path / "curve.svg"
    problem = "tests.race.test_find_lr:NOISY"
    tokens = ["find-lr", problem, "sgd", "--steps", "300", "--seeds", "2"]
    assert main([*tokens, "--svg", str(svg)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("sgd on quadratic\n") and "10 learning rate" in out
    assert "The loss falls fastest at" in out and "It diverges from" in out
    assert svg.read_text().startswith("<svg") and "diverges" in svg.read_text()


def test_the_command_explains_errors(capsys):
    assert main(["find-lr", "rosenbrock", "adamw(1e-3)"]) == 2
    assert "error: find_lr: adamw(1e-3) has" in capsys.readouterr().err
    assert main(["find-lr", "rosenbrock", "--lowest", "two"]) == 2
    assert "not a number" in capsys.readouterr().err
