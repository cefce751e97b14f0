"""Use optimizers for real params on complex params."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    like_optax,
    OptState,
    Param,
    Params,
    Transformation,
    transformation,
    Updates,
)
from ..engine import Leaves, WrapperInfo


@like_optax
class SplitRealAndImaginaryArrays(NamedTuple):
    """A complex array as two real ones."""

    real: Param
    imaginary: Param


@like_optax
class SplitRealAndImaginaryState(NamedTuple):
    """The state of the inner transformation, which sees real arrays."""

    inner_state: OptState


@transformation
def split_real_and_imaginary(
    inner: AnyTransformation,
) -> GradientTransformationExtraArgs:
    """Pass `inner` two real arrays instead of each complex one.

    Most optimizers treat a complex number as one number: Adam divides it by its
    absolute value. Here its real and imaginary parts are separate numbers.

    Args:
        inner: any transformation; it receives the extra arguments unchanged.

    >>> import jax.numpy as jnp, steepest
    >>> tx = split_real_and_imaginary(steepest.adam(0.1))
    >>> params = jnp.array([3.0 + 1.0j])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> complex(updates[0].round(3))
    (-0.10000000149011612-0.10000000149011612j)
    """
    name = "split_real_and_imaginary"
    tx = as_inner(name, "inner", inner)

    def init(params: Params) -> SplitRealAndImaginaryState:
        Leaves(params, "params").check(name)
        return SplitRealAndImaginaryState(tx.init(jax.tree.map(_split, params)))

    def update(
        updates: Updates,
        state: SplitRealAndImaginaryState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, SplitRealAndImaginaryState]:
        state = check.state_of(name, SplitRealAndImaginaryState, state)
        Leaves(updates).check(name)
        halves, inner_state = tx.update(
            jax.tree.map(_split, updates),
            state.inner_state,
            jax.tree.map(_split, params),
            **extra_args,
        )
        joined = jax.tree.map(_join, halves, is_leaf=_is_split)
        return joined, SplitRealAndImaginaryState(inner_state)

    return Transformation(init, update, WrapperInfo(name, tx, "inner_state"))


def _split(x: Any) -> Any:
    """A complex array, or its shape, as two real ones; others unchanged."""
    if not jnp.issubdtype(jnp.result_type(x), jnp.complexfloating):
        return x
    if isinstance(x, jax.ShapeDtypeStruct):
        half = jax.eval_shape(jnp.real, x)
        return SplitRealAndImaginaryArrays(half, half)
    return SplitRealAndImaginaryArrays(jnp.real(x), jnp.imag(x))


def _join(x: Any) -> Any:
    return jax.lax.complex(x.real, x.imaginary) if _is_split(x) else x


def _is_split(x: object) -> bool:
    return isinstance(x, SplitRealAndImaginaryArrays)
