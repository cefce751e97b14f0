"""Lion.

Chen et al., Symbolic discovery of optimization algorithms, 2023, arXiv:2302.06675
"""

from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from ..combine import chain
from ..core import (
    choice,
    dtype,
    fraction,
    GradientTransformationExtraArgs,
    like_optax,
    measurable,
    only_real,
    Real,
    Rule,
    ScalarOrSchedule,
    Step,
    transformation,
    Updates,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import ema, first_moment, increment, zero_count
from ..transforms import add_decayed_weights
from ._descend import descend


@like_optax
class ScaleByLionState(NamedTuple):
    """What Lion remembers: a count for the tree, one array for each leaf."""

    count: Int[Array, ""]
    mu: Updates  # mean of g, in `mu_dtype`


@transformation
def scale_by_lion(
    b1: Real = 0.9,
    b2: Real = 0.99,
    mu_dtype: Any = None,
    *,
    mode: Literal["hard", "smooth", "refined"] = "hard",
    smooth_beta: Real = 1.0,
) -> GradientTransformationExtraArgs:
    """The sign of a mean of the gradient, in which the last one weighs more.

        c   = b1 mu + (1 - b1) g
        mu <- b2 mu + (1 - b2) g
        u   = sign(c)

    Args:
        b1: the weight of `mu` in `c`, in [0, 1).
        b2: how slowly `mu` forgets, in [0, 1).
        mu_dtype: the dtype `mu` is kept in; by default that of the params.
        mode: what the sign is: `hard`, `sign(c)`; `smooth`, `tanh(smooth_beta c)`;
            `refined`, `c` clipped to [-1, 1].
        smooth_beta: how steep the smooth sign is.
    """
    b1, b2 = fraction("scale_by_lion", b1=b1, b2=b2)
    (smooth_beta,) = measurable.must("scale_by_lion", smooth_beta=smooth_beta)
    dtype("scale_by_lion", mu_dtype=mu_dtype)
    signs = {
        "hard": jnp.sign,
        "smooth": lambda c: jnp.tanh(smooth_beta * c),
        "refined": lambda c: jnp.clip(c, -1, 1),
    }
    choice("scale_by_lion", signs, mode=mode)
    sign = signs[mode]

    def prepare(step: Step, count: Array) -> tuple[dict[str, Array], Array]:
        return {}, increment(count)

    def leaf(n: Any, g: Array, p: Array | None, mu: Array) -> tuple[Array, Array]:
        return sign(ema(mu, g, b1)), ema(mu, g, b2)

    def leaf_in_place(n: Any, g: Array, p: Any, mu: Array) -> tuple[Array, Array]:
        # The same `c`, of the new `mu`: the old one is not read after it has been
        # overwritten, so XLA need not copy it (40M params on a CPU: half the time).
        mu = ema(mu, g, b2)
        share = b1 / b2
        return sign(share * mu + ((1 - b1) - share * (1 - b2)) * g), mu

    divisible = isinstance(b2, int | float) and b2 > 0
    # With b1 = 1, c is the old mu. The other form rounds, and where mu is 0 the sign of
    # that would be taken.
    divisible &= not (isinstance(b1, int | float) and b1 == 1)

    return lift(
        Rule(
            "scale_by_lion",
            ScaleByLionState,
            leaf_in_place if divisible else leaf,
            remember={"mu": first_moment(mu_dtype)},
            shared={"count": zero_count},
            prepare=prepare,
            refuse=only_real if mode == "refined" else None,
        )
    )


@optimizer
def lion(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.99,
    mu_dtype: Any = None,
    weight_decay: ScalarOrSchedule = 1e-3,
    mask: MaskOrFn | None = None,
    *,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Lion: `p <- p - learning_rate (u + weight_decay p)`, `u` from `scale_by_lion`.

    Every weight moves by the learning rate: take it 3 to 10 times smaller than for
    AdamW, and the weight decay as much larger.

    Args:
        learning_rate: a number, or a function of the count.
        b1, b2, mu_dtype: as for `scale_by_lion`.
        weight_decay: the pull towards zero; the learning rate multiplies it too.
        mask: which leaves decay, as for `masked`; by default all.
        memory_dtype, keep_count: as for `keeping`.

    >>> import steepest
    >>> tx = steepest.lion(learning_rate=0.1, weight_decay=0.0)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    return chain(
        scale_by_lion(b1, b2, mu_dtype),
        add_decayed_weights(weight_decay, mask),
        descend("lion", learning_rate),
    )
