"""Storage options of all optimizers."""

import inspect
import pickle
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.engine import optimizer

from ...zoo import few_params, gradients, over, typeof, ZOO

KEEPING = [r for r in ZOO if "keep_count" in inspect.signature(r.maker).parameters]
# These wrap an optimizer, which has the keywords.
WRAPPERS = ("mechanize", "sam", "schedule_free")
FIXED = ("optimistic_adam", "rprop", "schedule_free_adamw")  # take no schedule


def test_every_optimizer_takes_the_keywords():
    rooms = ("steepest.optimizers.", "steepest.matrix.", "steepest.contrib.")
    ours = {r.maker.__name__ for r in ZOO if r.maker.__module__.startswith(rooms)}
    assert ours - {r.maker.__name__ for r in KEEPING} == set(WRAPPERS)


@over(KEEPING)
def test_the_signature_names_the_keywords(row):
    """No `**`, which other libraries cannot inspect; and it pickles by name."""
    arguments = inspect.signature(row.maker).parameters
    assert not [x for x in arguments.values() if x.kind is x.VAR_KEYWORD]
    assert arguments["memory_dtype"].kind is inspect.Parameter.KEYWORD_ONLY
    assert pickle.loads(pickle.dumps(row.maker)) is row.maker


def test_another_keyword_is_refused(as_users_do):
    with pytest.raises(TypeError, match="adam: there is no argument `memory_dtyp`"):
        steepest.adam(0.1, memory_dtyp=jnp.bfloat16)


def test_a_recipe_of_the_user():
    @optimizer
    def recipe(rate: float, *, keep_count: bool = False):
        return steepest.sgd(rate)

    tx = recipe(0.1, keep_count=True)
    assert repr(tx) == "recipe(rate=0.1, keep_count=True)"
    assert isinstance(tx.init(jnp.ones(2))[-1], steepest.ScaleByScheduleState)
    with pytest.raises(TypeError, match="recipe: there is no argument `memory_dtype`"):
        recipe(0.1, memory_dtype=jnp.bfloat16)


# Bases are not orthogonal in half precision, and factors have no small eigenvalues.
EXACT = re.compile(r"ns_coeffs|\.(factors|bases|roots|eigenvalues|radius|bounds)\b")


@over(KEEPING)
def test_all_its_memory_in_one_dtype(row):
    tx, p = row.make(memory_dtype=jnp.bfloat16), few_params()
    state = jax.eval_shape(tx.init, p)
    # The line search of L-BFGS stores a point and its gradient, which are not memory.
    memory = state[0] if row.maker is steepest.lbfgs else state
    rows = jax.tree_util.tree_leaves_with_path(memory)
    wide = [path for path, x in rows if x.ndim and x.dtype == jnp.float32]
    assert not [path for path in wide if not EXACT.search(jax.tree_util.keystr(path))]
    _, new = jax.eval_shape(tx.update, gradients(p), state, p)
    assert typeof(new) == typeof(state)


@over([r for r in KEEPING if "learning_rate" in r.hyper and r.name not in FIXED])
def test_with_a_count_a_number_may_become_a_schedule(row):
    rates = [name for name in row.hyper if name.endswith("learning_rate")]
    number = row.make(keep_count=True)
    schedule = row.make(**dict.fromkeys(rates, steepest.constant_schedule(0.1)))
    p = few_params()
    begun = jax.eval_shape(number.init, p)
    assert jax.tree.structure(begun) == jax.tree.structure(
        jax.eval_shape(schedule.init, p)
    )


def test_a_run_goes_on_with_a_schedule():
    p = jnp.array([1.0, 2.0])
    number = steepest.adamw(0.1, keep_count=True)
    schedule = steepest.adamw(steepest.constant_schedule(0.1))
    state = number.init(p)
    for _ in range(2):
        _, state = number.update(p, state, p)
    assert int(state[2].count) == 2
    u, _ = number.update(p, state, p)
    v, after = schedule.update(p, state, p)
    np.testing.assert_allclose(u, v, 1e-6)
    assert int(after[2].count) == 3


def test_what_has_a_dtype_of_its_own_keeps_it():
    tx = steepest.adam(0.1, nu_dtype=jnp.float32, memory_dtype=jnp.bfloat16)
    state = tx.init(jnp.ones(3))[0]
    assert (state.mu.dtype, state.nu.dtype) == (jnp.bfloat16, jnp.float32)


def test_narrow_memory_is_computed_wide():
    """A mean with decay 0.9 in bfloat16 agrees with float32 up to its last digits."""
    g = jnp.linspace(0.1, 1, 8)
    runs = [steepest.sgd(0.1, 0.9, memory_dtype=x) for x in (jnp.bfloat16, jnp.float32)]
    states = [tx.init(g) for tx in runs]
    for _ in range(3):
        found = [tx.update(g, s) for tx, s in zip(runs, states, strict=True)]
        states = [s for _, s in found]
    (u, _), (v, _) = found
    assert u.dtype == jnp.float32
    np.testing.assert_allclose(u, v, 1e-2)
    assert not np.array_equal(u, v)


def test_any_transformation_can_be_kept_so():
    tx = steepest.keeping(
        steepest.chain(steepest.clip(1.0), steepest.trace(0.9)), memory_dtype="bfloat16"
    )
    assert tx.init(jnp.ones(3))[1].trace.dtype == jnp.bfloat16
    complex_ = tx.init(jnp.ones(3, jnp.complex64))[1].trace
    assert complex_.dtype == jnp.complex64  # not representable in bfloat16


@pytest.mark.parametrize(
    "wrong, says",
    [
        (
            {"nestorov": True},
            "adam: there is no argument `nestorov`. Did you mean `nes",
        ),
        ({"zzz": 1}, "adam: there is no argument `zzz`. There are ['learning_rate'"),
        (
            {"memory_dtype": "int16"},
            "adam: memory_dtype is 'int16', expected a dtype of real",
        ),
    ],
    ids=["near", "far", "integers"],
)
def test_bad_arguments(wrong, says, as_users_do):
    with pytest.raises(TypeError) as raised:
        steepest.adam(0.1, **wrong)
    assert str(raised.value).startswith(says)
