"""Users' code: transformations with states of all kinds, conditions, schedules.

Each is a function of the library. The states are those that a skipped step might
damage: results of casts, comparisons and rounding, integers, booleans, half precision,
empty arrays and keys. All are exact, since XLA may omit intermediate rounding.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ._expression import USER


def _of_leaf(begin: Any, step: Any) -> Any:
    """Stores `step(g, s)` for each leaf, and returns the gradient."""

    def make(m: Any) -> Any:
        def update(g: Any, state: Any, p: Any = None) -> Any:
            return g, jax.tree.map(step, g, state)

        init = lambda p: jax.tree.map(begin, p)
        return lambda: m.GradientTransformation(init, update)

    return make


def _real(x: Any) -> Any:
    return jnp.real(x).astype(jnp.float32)


def _filled(dtype: Any, value: Any) -> Any:
    return lambda p: jnp.full(jnp.shape(p), value, dtype)


_HALF = jnp.bfloat16

USER["user.compared"] = _of_leaf(
    _filled(jnp.float32, 5.25), lambda g, s: (_real(g) > 0).astype(jnp.float32)
)
USER["user.rounded"] = _of_leaf(
    _filled(jnp.int32, 16777217), lambda g, s: jnp.round(_real(g) * 3).astype(jnp.int32)
)
USER["user.narrowed"] = _of_leaf(
    _filled(jnp.float32, 1.001),
    lambda g, s: jnp.sign(_real(g).astype(_HALF)).astype(jnp.float32),
)
USER["user.halved"] = _of_leaf(
    _filled(_HALF, 1.5), lambda g, s: jnp.where(_real(g) > 0, s * 2, s / 2)
)
USER["user.counted"] = _of_leaf(
    _filled(jnp.int8, 3), lambda g, s: s + (_real(g) > 0).astype(jnp.int8)
)
USER["user.flagged"] = _of_leaf(
    _filled(jnp.bool_, True), lambda g, s: s ^ (_real(g) > 0)
)
USER["user.packed_bits"] = _of_leaf(
    _filled(jnp.uint8, 200),
    lambda g, s: (s.astype(jnp.float32) * 0.5).astype(jnp.uint8),
)
USER["user.nothing"] = _of_leaf(
    lambda p: jnp.zeros((0, 2), _HALF),
    lambda g, s: (s.astype(jnp.float32) + 1).astype(_HALF),
)


class KeyState(NamedTuple):
    """A key, a count, and a flag from a comparison."""

    key: Any
    count: Any
    late: Any


def _keyed(m: Any) -> Any:
    def init(p: Any) -> KeyState:
        return KeyState(
            jax.random.key(3), jnp.array(16777217, jnp.int32), jnp.array(False)
        )

    def update(g: Any, s: KeyState, p: Any = None) -> Any:
        count = (s.count.astype(jnp.float32) + 1).astype(jnp.int32)
        state = KeyState(jax.random.fold_in(s.key, s.count), count, count > 16777218)
        noise = jax.random.normal(s.key, ())
        return jax.tree.map(lambda x: x + noise.astype(x.dtype), g), state

    return lambda: m.GradientTransformation(init, update)


USER["user.keyed"] = _keyed

STATEFUL = tuple(USER)


# Functions for wrappers, passed by name.
def _given(f: Any) -> Any:
    return lambda m: f


def _dimensions(p: Any, least: int) -> Any:
    return jax.tree.map(lambda x: jnp.ndim(x) >= least, p)


USER["user.matrices"] = _given(lambda p: _dimensions(p, 2))
USER["user.arrays"] = _given(lambda p: _dimensions(p, 1))
USER["user.all_leaves"] = _given(lambda p: _dimensions(p, 0))
USER["user.no_leaves"] = _given(lambda p: _dimensions(p, 9))
USER["user.labels"] = _given(
    lambda p: jax.tree.map(lambda x: "many" if jnp.ndim(x) > 1 else "few", p)
)
MASKS = "user.matrices", "user.arrays", "user.all_leaves", "user.no_leaves"

USER["user.odd"] = _given(lambda step: step % 2 == 1)
USER["user.early"] = _given(lambda step: step < 3)
USER["user.never"] = _given(lambda step: False)
USER["user.low"] = _given(lambda step, value=0.0, **extra: value < 1)
CONDITIONS = "user.odd", "user.early", "user.never"

USER["user.falling_schedule"] = _given(
    lambda count: 0.1 / jnp.sqrt(1 + jnp.asarray(count).astype(jnp.float32))
)
USER["user.every"] = _given(lambda step: 1 + step % 2)
USER["user.skip_large"] = lambda m: functools.partial(
    m.skip_large_updates, max_squared_norm=20.0
)


def _skip_second(updates: Any, step: Any, params: Any) -> Any:
    return step == 1, {"was": step}


USER["user.skip_second"] = _given(_skip_second)


# Python code that uses values: outside `jit` it sees numbers, and its result may
# change.
class Box:
    """A mutable object that a user's function reads; changed before each step."""

    turn = 0


USER["user.if_schedule"] = _given(lambda count: 0.1 if count < 2 else 0.01)
USER["user.box_schedule"] = _given(lambda count: 0.1 * (1 + Box.turn))
USER["user.if_condition"] = _given(lambda step: bool(step > 0 and step < 3))
USER["user.box_condition"] = _given(lambda step: Box.turn % 2 == 0)


def _if_skip(updates: Any, step: Any, params: Any) -> Any:
    return jnp.array(Box.turn == 2), {}


USER["user.if_skip"] = _given(_if_skip)


def _if_value(m: Any) -> Any:
    """A transformation that uses Python's `if` on an extra argument."""

    def update(g: Any, s: Any, p: Any = None, *, value: Any, **extra: Any) -> Any:
        return (jax.tree.map(lambda x: -x, g) if value > 1 else g), s + 1

    init = lambda p: jnp.zeros((), jnp.int32)
    return lambda: m.GradientTransformationExtraArgs(init, update)


USER["user.if_value"] = _if_value
CONCRETE = tuple(name for name in USER if name.startswith(("user.if_", "user.box_")))


# Makers that are not plain calls.
USER["user.multi_steps"] = lambda m: (
    lambda *args, **kwargs: m.MultiSteps(*args, **kwargs).gradient_transformation()
)
USER["user.inject"] = lambda m: (
    lambda maker, *args, **kwargs: m.inject_hyperparams(maker)(*args, **kwargs)
)
USER["user.frozen"] = lambda m: (
    lambda: m.stateless(lambda g, p: jax.tree.map(lambda x: x * 2, g))
)
USER["user.measured"] = lambda m: lambda: m.snapshot("norm", m.global_norm)
USER["user.monitored"] = lambda m: lambda: m.monitor({"norm": m.global_norm})
USER["user.averaged"] = lambda m: (
    lambda: m.monitor({"norm": m.measure_with_ema(m.global_norm, 0.9)})
)
