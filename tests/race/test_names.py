"""The registry: it matches the public modules, and everything in it can race."""

import jax
import jax.numpy as jnp
import pytest

import steepest
from steepest.race.entrants._expressions import entrant
from steepest.race.entrants._names import _LEFT_OUT, _USUAL, find, known, optimizers

WRAPPED = ["sam(adamw)", "mechanize(sgd)", "MultiSteps(adamw, 1)", "guard(lbfgs)"]
NOT_AT_ONCE = {"adopt", "rprop"}  # their first step does not move
FINDS_ITS_OWN = {"cocob", "guard(lbfgs)", "lbfgs", "polyak_sgd"}


def test_the_doors_are_read():
    for name in ("adamw", "chain", "lookahead", "MultiSteps", "cosine_decay_schedule"):
        assert find(name).maker is getattr(steepest, name)
        assert find(f"steepest.{name}") is find(name)
    assert find("prodigy") is find("contrib.prodigy")
    assert find("prodigy").maker is steepest.contrib.prodigy


def test_where_both_doors_have_a_name_the_bare_one_is_the_front_door():
    assert find("muon").maker is steepest.muon
    assert find("contrib.muon").maker is steepest.contrib.muon
    assert find("contrib.muon").name == "contrib.muon"


def test_functions_that_do_not_build_optimizers_are_left_out():
    for name in ("apply_updates", "l2_loss", "inject_hyperparams", "make_train_step"):
        assert hasattr(steepest, name) and name not in known()


def test_the_exceptions_are_still_in_the_doors():
    """A hand-written list goes out of date."""
    for name in {*_LEFT_OUT, *_USUAL}:
        assert hasattr(steepest.contrib, name) or hasattr(steepest, name)
    for name, usual in _USUAL.items():
        assert set(usual) <= set(find(name).takes)


def test_optimizers_are_listed_once_with_a_line_about_them():
    listed = [one.name for one in optimizers()]
    assert listed == sorted(set(listed))
    assert {"adamw", "lbfgs", "polyak_sgd", "prodigy", "contrib.muon"} <= set(listed)
    parts = {"dpsgd", "lookahead", "scale_by_rprop", "schedule_free", "contrib.adamw"}
    assert not parts & set(listed)
    assert all(one.about.endswith(".") for one in optimizers())


@pytest.mark.parametrize(
    "name, near",
    [
        ("adamww", "adamw"),
        ("AdamW", "adamw"),
        ("multi_steps", "MultiSteps"),
        ("contrib.adamw", "adamw"),
        ("cosine_schedule", "cosine_decay_schedule"),
    ],
)
def test_near_matches_of_an_unknown_name(name, near):
    with pytest.raises(ValueError, match=rf"called `{name}`. Did you mean .*\b{near}"):
        find(name)


def test_an_unknown_name_without_near_matches():
    with pytest.raises(ValueError, match="`steepest optimizers` lists"):
        find("qqq")


@pytest.mark.parametrize("name, why", _LEFT_OUT.items(), ids=list(_LEFT_OUT))
def test_excluded_optimizers_have_a_reason(name, why):
    with pytest.raises(ValueError, match=f"{name} cannot race: {why}"):
        find(f"contrib.{name}")


def test_every_optimizer_takes_a_step_at_traced_rates(as_users_do):
    """By its bare name, in one program for two learning rates."""
    params = {"w": jnp.arange(6.0).reshape(2, 3) / 7, "b": jnp.full(3, 0.5)}

    def loss(p):
        return jnp.sum((p["w"] @ p["w"].T) ** 2) + jnp.sum((p["b"] - 1) ** 2)

    def step(one, rate):
        tx = one.make(rate)
        new, _, _ = steepest.make_train_step(loss, tx)(params, tx.init(params))
        return jax.tree.map(jnp.subtract, new, params)

    names = [one.name for one in optimizers()] + WRAPPED
    entrants = [entrant(name, steps=10) for name in names]
    everyone = jax.vmap(lambda rate: {x.name: step(x, rate) for x in entrants})
    result = jax.jit(everyone)(jnp.array([1e-2, 1.0]))
    for name, moved in result.items():
        _, high = moved["b"]
        assert jnp.all(jnp.isfinite(high)), name
        assert jnp.any(high != 0) or name in NOT_AT_ONCE, name
        differs = any(jnp.any(low != high) for low, high in moved.values())
        assert differs == (name not in NOT_AT_ONCE | FINDS_ITS_OWN), name
    own = {one.name for one in entrants if not one.swept}
    assert own == FINDS_ITS_OWN - {"cocob"}  # its learning rate cancels
