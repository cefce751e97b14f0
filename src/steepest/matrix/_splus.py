"""SPlus: sign descent in the eigenbasis of Shampoo's factors.

Frans, Levine and Abbeel, A stable whitening optimizer for efficient neural network
training, 2025, arXiv:2506.07254
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..combine import chain
from ..core import (
    Every,
    gives,
    GradientTransformationExtraArgs,
    Matrix,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import (
    eigenbasis,
    ema,
    first_moment,
    increment,
    iterated_basis,
    limited,
    zero_count,
)
from ..optimizers import adamw, scale_by_sign
from ..transforms import (
    add_decayed_weights,
    ema as mean_of_gradients,
    ema_params,
    scale,
    scale_by_learning_rate,
)
from ._groups import PLAIN, Words
from ._recipe import folded, grouped, in_blocks, NotMatrix, Rest, unchanged
from ._sides import (
    first_bases,
    LONGEST,
    new_factors,
    rotated,
    rotated_back,
    Sides,
    Sums,
    zero_factors,
)
from ._soap_muon import counted

Others = Literal["adam", "sign"]
# The step of other leaves, relative to the learning rate. A matrix of 1000 x 1000 has
# steps of about the same size.
SMALL = 1e-3


class ScaleBySplusState(NamedTuple):
    """State of SPlus: a step count, and five arrays per matrix."""

    count: Int[Array, ""]  # number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    factors: Updates  # (L, R): means of g g^T and g^T g
    bases: Updates  # (Q_L, Q_R): about the eigenvectors of the factors


def splus_formula(
    g: Array, mu: Array, factors: Sides, bases: Sides, *, b1: Real, b2: Real
) -> tuple[Array, Array, Sums, Sides]:
    """The signs of the coordinates of the mean; then `g` enters the factors."""
    g = limited(g)
    mu = ema(mu, g, b1)
    u = rotated_back(jnp.sign(rotated(mu, bases)), bases, size=1.0)
    return u, mu, new_factors(g, factors, b2), bases


def corrected_basis(factors: Array, bases: Array) -> Array:
    """The basis of one side, closer to the eigenvectors of its factor."""
    return iterated_basis(factors, bases)


def exact_basis(factors: Array, bases: Array) -> Array:
    """The eigenvectors of the factor of one side, from scratch."""
    del bases
    return eigenbasis(factors)


@gives("due")
def paper_steps(count: Array, *, frequency: Real) -> tuple[dict[str, Array], Array]:
    """After the first step, and after every `frequency` steps.

    The paper computes the bases at the end of a step, and this at the start of the
    next.
    """
    due = (count == 1) | ((count > 0) & (count % frequency == 0))
    return {"due": due}, increment(count)


@transformation
def scale_by_splus(
    b1: Real = 0.9,
    b2: Real = 0.999,
    mu_dtype: DTypeLike | None = None,
    *,
    frequency: int | None = None,
    rolled: bool = True,
    longest: int = LONGEST,
    words: Words = PLAIN,
) -> GradientTransformationExtraArgs:
    """Take the sign of each coordinate of the mean, in a slowly changing basis.

        mu <- b1 mu + (1 - b1) g
        u   = Q_L sign(Q_L^T mu Q_R) Q_R^T
        L  <- b2 L + (1 - b2) g g^T
        R  <- b2 R + (1 - b2) g^T g
        Q_L <- the Q of the QR decomposition of L Q_L, every `frequency` steps
        Q_R <- the Q of the QR decomposition of R Q_R, every `frequency` steps

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `L` and `R`, in [0, 1).
        mu_dtype: dtype of `mu`; by default that of the params.
        frequency: number of steps between two changes of a basis; by default 10, or 100
            if not `rolled`.
        rolled: whether the matrices take turns, so that all steps take about as long.
            If `False`, all bases change in the same step, as in the paper: they are
            computed from scratch, by `eigh`, after the first step and after every
            `frequency` steps.
        longest: a side with more elements has no basis.
        words: `in` or `out` for each of the last axes, equal words together. The layer
            sums over the axes called `in`; axes without a word index matrices.
    """
    name = "scale_by_splus"
    b1, b2 = check.fraction(name, b1=b1, b2=b2)
    check.dtype(name, mu_dtype=mu_dtype)
    check.flag(name, rolled=rolled)
    if frequency is None:
        frequency = 10 if rolled else 100
    frequency, longest = check.period(name, frequency=frequency, longest=longest)
    when = {"k": "frequency"} if rolled else {"due": "due", "period": "frequency"}
    change = corrected_basis if rolled else exact_basis
    return lift(
        Rule(
            name,
            unchanged,
            ScaleBySplusState,
            memory={
                "mu": first_moment(mu_dtype),
                "factors": zero_factors,
                "bases": first_bases(),
            },
            shared={"count": zero_count},
            numbers={
                "b1": b1,
                "b2": b2,
                "frequency": frequency,
                "one_sided": False,
                "longest": longest,
                "words": words,
            },
            per_step=counted if rolled else paper_steps,
            matrix=Matrix(
                splus_formula,
                folded,
                Every(change, writes=("bases",), sides=True, **when),
            ),
            check_leaf=NotMatrix(len(words), "splus", real=True),
        )
    )


@optimizer
def splus(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    weight_decay: ScalarOrSchedule = 0.01,
    weight_decay_mask: MaskOrFn | None = None,
    mu_dtype: DTypeLike | None = None,
    *,
    frequency: int | None = None,
    rolled: bool = True,
    longest: int = LONGEST,
    block_size: int | None = None,
    ema_decay: Real | None = 0.999,
    stacked: str | None = None,
    routes: Mapping[str, str] | None = None,
    others: Others = "adam",
    adam_learning_rate: ScalarOrSchedule | None = None,
    adam_b1: Real = 0.9,
    adam_b2: Real = 0.999,
    adam_eps: Real = 1e-8,
    adam_weight_decay: ScalarOrSchedule | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
    reshard: str | Sequence[str] | None = None,
    keep_stacks: bool = False,
) -> GradientTransformationExtraArgs:
    """SPlus for the matrices of hidden layers, AdamW for all other leaves.

        p <- p - learning_rate c (u + weight_decay p)       u from `scale_by_splus`
        c  = 2 / (rows + columns)

    The paper uses a learning rate of about 0.2. Evaluate the model at the average of
    the params, `steepest.ema_eval_params(state, params)`, as the paper does: signs do
    not get smaller near a minimum.

    Which leaves are matrices, `stacked` and `routes`: see `muon`.
    `print(steepest.describe(tx, params))` shows the group of each leaf and the reason.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the factors, in [0, 1).
        weight_decay: weight decay coefficient of the matrices, multiplied by the
            learning rate and by `c`.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all but vectors, norms and biases.
        mu_dtype: dtype of the mean; by default that of the params.
        frequency: number of steps between two changes of a basis; by default 10, or 100
            if not `rolled`.
        rolled: whether the matrices take turns, so that all steps take about as long.
            If `False`, all bases change in the same step, and are computed from scratch
            by `eigh`, as in the paper.
        longest: a side with more elements has no basis.
        block_size: cut matrices into blocks with sides of at most this; each block is
            a matrix of its own, but `c` is that of the whole. By default they are not
            cut.
        ema_decay: decay rate of the average of the params, in [0, 1); `None` for no
            average, which saves an array per leaf.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"splus"`, `"adam"`, or a word for each of the last
            axes: `in` for those that the layer sums over, `out` for the others.
        others: the optimizer of all other leaves: `adam`, or `sign`, as in the paper:
            the sign of the mean of the gradients, times 0.001 `learning_rate`. Signs
            move rows of an embedding even if they have had no gradient for long.
        adam_learning_rate: learning rate of AdamW; by default 0.001 `learning_rate`.
        adam_b1: decay rate of AdamW's mean of the gradients, in [0, 1).
        adam_b2: decay rate of AdamW's mean of their squares, in [0, 1).
        adam_eps: `eps` of AdamW.
        adam_weight_decay: weight decay of AdamW; by default `weight_decay`.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. Factors and bases are in float32 or wider. With "int8", "int4" or
            "float8", averages for large matrices are stored in 8 or 4 bits, and bases
            in float16: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
        reshard: names of mesh axes, whose devices share the matrices: each matrix is
            sent to one device and back, once in a step, inside `jax.set_mesh`. By
            default the compiler shards every product. See `keeping`.
        keep_stacks: whether matrices of equal shape share the arrays of the state,
            which saves copies on one GPU. See `keeping`.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.splus(learning_rate=0.2)
    >>> params = {"kernel": jnp.ones((8, 8)), "bias": jnp.ones(8)}
    >>> for line in steepest.describe(tx, params).lines:
    ...     print(line.path, line.shape, *line.groups, line.bytes)
    ['bias'] (8,) adam 96
    ['kernel'] (8, 8) splus 1536
    """
    name = "splus"
    check.choice(name, ("adam", "sign"), others=others)
    rate = check.rate_given(name, learning_rate)

    def matrices(words: Words) -> list[GradientTransformationExtraArgs]:
        return [
            scale_by_splus(
                b1,
                b2,
                mu_dtype,
                frequency=frequency,
                rolled=rolled,
                longest=longest,
                words=words,
            )
        ]

    def rest(decays: MaskOrFn) -> GradientTransformationExtraArgs:
        if others == "sign":
            return chain(
                mean_of_gradients(b1, debias=False, accumulator_dtype=mu_dtype),
                scale_by_sign(),
                add_decayed_weights(weight_decay, decays),
                scale(SMALL),
                scale_by_learning_rate(rate),
            )
        adam = adamw(
            rate if adam_learning_rate is None else adam_learning_rate,
            adam_b1,
            adam_b2,
            adam_eps,
            mu_dtype=mu_dtype,
            weight_decay=weight_decay
            if adam_weight_decay is None
            else adam_weight_decay,
            mask=decays,
        )
        return adam if adam_learning_rate is not None else chain(adam, scale(SMALL))

    tx = grouped(
        name,
        in_blocks(name, matrices, block_size),
        rate,
        weight_decay,
        weight_decay_mask,
        mu_dtype,
        stacked,
        routes,
        Rest(adam_learning_rate, adam_b1, adam_b2, adam_eps, adam_weight_decay),
        last=scale_by_sides,
        others=rest,
    )
    return tx if ema_decay is None else chain(tx, ema_params(ema_decay))


def sides_formula(g: Array, *, words: Words) -> Array:
    """`u = 2 g / (rows + columns)`."""
    return 2 / max(1, sum(folded(g.shape, words=words)[-2:])) * g


def scale_by_sides(words: Words) -> list[GradientTransformationExtraArgs]:
    """Make the steps of long matrices smaller; see `splus`."""
    numbers = {"words": words}
    return [lift(Rule("scale_by_sides", sides_formula, numbers=numbers, kind="whole"))]
