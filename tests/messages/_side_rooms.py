"""Bad calls of numerics, microbatching, perturbations, projections, and the rest."""

import jax.numpy as jnp

import steepest
from steepest import (
    assignment,
    microbatching,
    perturbations,
    projections,
    second_order,
)

from ._bad import Bad, params

_COMPLEX = {"w": jnp.array([1j])}
_LENGTH = jnp.ones(4)
_KEY = "is a int, expected one random key. Make it with `jax.random.key(0)`"
_FUNCTION = "is a int, expected a function."


def _vector(p, x, y):
    """A loss that is not a scalar."""
    del x, y
    return p


def _scale(who: str, wanted: str = "of at least 0") -> str:
    return f"{who}: scale is -1.0, expected a number {wanted}."


def _square(who: str, name: str = "matrix") -> str:
    return (
        f"{who}: {name} has shape (2, 3), expected a square matrix. Map over several "
        "matrices with `jax.vmap`."
    )


_SIZE = "of at least 0 and below infinity"
BAD = {
    "assignment.base_hungarian_algorithm": Bad(
        lambda: assignment.base_hungarian_algorithm(jnp.array([[1j]])),
        TypeError,
        "base_hungarian_algorithm: cost_matrix is complex64, expected real numbers.",
    ),
    "assignment.hungarian_algorithm": Bad(
        lambda: assignment.hungarian_algorithm(_LENGTH),
        ValueError,
        "hungarian_algorithm: cost_matrix has shape (4,), expected a matrix. Map over "
        "several matrices with `jax.vmap`.",
    ),
    "matrix_inverse_pth_root": Bad(
        lambda: steepest.matrix_inverse_pth_root(jnp.eye(2), 0),
        ValueError,
        "matrix_inverse_pth_root: p is 0, expected a number that is whole and at "
        "least 1.",
    ),
    "microbatch": Bad(
        lambda: steepest.microbatch(jnp.sum, 0, 3)(_LENGTH),
        ValueError,
        "microbatch: the batch has 4 examples, which is not divisible by "
        "microbatch_size, 3. Pad the batch, or choose another size.",
    ),
    "microbatching.AccumulationType": Bad(
        lambda: microbatching.AccumulationType("sum"),
        ValueError,
        "AccumulationType: got 'sum', expected one of: MEAN, SUM, RUNNING_MEAN, "
        "CONCAT. Write `AccumulationType.SUM`.",
    ),
    "microbatching.Accumulator": Bad(
        lambda: microbatching.Accumulator(0, jnp.add, jnp.add, jnp.sum),
        TypeError,
        f"Accumulator: init {_FUNCTION}",
    ),
    "microbatching.micro_grad": Bad(
        lambda: microbatching.micro_grad(jnp.multiply)(1.0, jnp.ones((4, 2))),
        TypeError,
        "micro_grad: fun returns shape (1, 2), expected one number. Return the sum or "
        "the mean of a loss.",
    ),
    "microbatching.micro_vmap": Bad(
        lambda: microbatching.micro_vmap(jnp.sum, microbatch_size=0),
        ValueError,
        "micro_vmap: microbatch_size is 0, expected a number that is whole and at "
        "least 1.",
    ),
    "microbatching.reshape_batch_axis": Bad(
        lambda: microbatching.reshape_batch_axis({"x": _LENGTH}, 3),
        TypeError,
        "reshape_batch_axis: leaf ['x'] has shape (4,), expected an axis 0 whose size "
        "is divisible by 3.",
    ),
    "multi_normal": Bad(
        lambda: steepest.multi_normal(jnp.ones(2), jnp.ones(3)),
        ValueError,
        "multi_normal: loc has shape (2,) and log_scale has shape (3,), expected "
        "shapes that broadcast.",
    ),
    "nnls": Bad(
        lambda: steepest.nnls(jnp.ones((2, 3)), jnp.ones(3), 10),
        ValueError,
        "nnls: A has shape (2, 3) and b has shape (3,), expected shapes (m, n) and "
        "(m,) or (m, k). Map over several problems with `jax.vmap`.",
    ),
    "perturbations.Gumbel": Bad(
        lambda: perturbations.Gumbel().sample(0, (2,)),
        TypeError,
        f"Gumbel.sample: key {_KEY}",
    ),
    "perturbations.Normal": Bad(
        lambda: perturbations.Normal().sample(0, (2,)),
        TypeError,
        f"Normal.sample: key {_KEY}",
    ),
    "perturbations.make_perturbed_fun": Bad(
        lambda: perturbations.make_perturbed_fun(
            jnp.argmax, noise=perturbations.Gumbel
        ),
        TypeError,
        (
            "make_perturbed_fun: noise is <class",
            "Gumbel'>, expected an object with `sample` and `log_prob`, such as "
            "`Gumbel()` or `Normal()`.",
        ),
    ),
    "power_iteration": Bad(
        lambda: steepest.power_iteration(jnp.ones((2, 3))),
        ValueError,
        _square("power_iteration"),
    ),
    "projections.projection_box": Bad(
        lambda: projections.projection_box(params(), 1.0, 0.0),
        ValueError,
        "projection_box: lower is 1.0 and upper is 0.0, expected lower <= upper.",
    ),
    "projections.projection_halfspace": Bad(
        lambda: projections.projection_halfspace(params(), {"w": 1.0}, 0.0),
        ValueError,
        "projection_halfspace: leaf ['b'] is in the x and not in the a. Pass trees of "
        "the same structure.",
    ),
    "projections.projection_hypercube": Bad(
        lambda: projections.projection_hypercube(params(), -1.0),
        ValueError,
        _scale("projection_hypercube"),
    ),
    "projections.projection_hyperplane": Bad(
        lambda: projections.projection_hyperplane(params(), params(), float("inf")),
        ValueError,
        "projection_hyperplane: b is inf, expected a number that is finite.",
    ),
    "projections.projection_l1_ball": Bad(
        lambda: projections.projection_l1_ball(params(), -1.0),
        ValueError,
        _scale("projection_l1_ball"),
    ),
    "projections.projection_l1_sphere": Bad(
        lambda: projections.projection_l1_sphere(params(), -1.0),
        ValueError,
        _scale("projection_l1_sphere", _SIZE),
    ),
    "projections.projection_l2_ball": Bad(
        lambda: projections.projection_l2_ball(params(), -1.0),
        ValueError,
        _scale("projection_l2_ball"),
    ),
    "projections.projection_l2_sphere": Bad(
        lambda: projections.projection_l2_sphere(params(), -1.0),
        ValueError,
        _scale("projection_l2_sphere", _SIZE),
    ),
    "projections.projection_linf_ball": Bad(
        lambda: projections.projection_linf_ball(params(), jnp.ones(3)),
        TypeError,
        "projection_linf_ball: leaf ['b'] has shape (2,) in the tree and scale has "
        "shape (3,), expected shapes that broadcast.",
    ),
    "projections.projection_non_negative": Bad(
        lambda: projections.projection_non_negative(_COMPLEX),
        ValueError,
        "projection_non_negative: leaf ['w'] of the tree is complex64, expected real "
        "numbers.",
    ),
    "projections.projection_simplex": Bad(
        lambda: projections.projection_simplex({}),
        IndexError,
        "projection_simplex: the tree has no entries, expected at least one.",
    ),
    "projections.projection_vector": Bad(
        lambda: projections.projection_vector(_LENGTH, jnp.ones(3)),
        TypeError,
        "projection_vector: leaf (the tree itself) has shape (4,) in the x and (3,) "
        "in the a, expected leaves of the same shape.",
    ),
    "safe_increment": Bad(
        lambda: steepest.safe_increment(True),
        ValueError,
        "safe_increment: count has dtype bool, expected an integer or floating dtype. "
        "Begin the count with `jnp.zeros([], jnp.int32)`.",
    ),
    "safe_int32_increment": Bad(
        lambda: steepest.safe_int32_increment("3"),
        TypeError,
        "safe_int32_increment: count is a str, expected an array of numbers.",
    ),
    "safe_norm": Bad(
        lambda: steepest.safe_norm(_LENGTH, 0.0, ord="fro"),
        ValueError,
        "safe_norm: ord is 'fro', axis is None and x has shape (4,), expected "
        "arguments that `jnp.linalg.norm` accepts.",
    ),
    "safe_root_mean_squares": Bad(
        lambda: steepest.safe_root_mean_squares(_LENGTH, float("nan")),
        ValueError,
        "safe_root_mean_squares: min_rms is nan, expected a number that is not NaN.",
    ),
    "second_order.fisher_diag": Bad(
        lambda: second_order.fisher_diag(_vector, _LENGTH, None, None),
        TypeError,
        "fisher_diag: negative_log_likelihood returns shape (4,), expected one "
        "number. Return the sum or the mean of a loss.",
    ),
    "second_order.hessian_diag": Bad(
        lambda: second_order.hessian_diag(_vector, {"n": 3}, None, None),
        TypeError,
        "hessian_diag: leaf ['n'] of the params is a int, expected real or complex "
        "numbers, to differentiate with respect to them. Convert it with "
        "`.astype(float)`, or leave it out.",
    ),
    "second_order.hvp": Bad(
        lambda: second_order.hvp(_vector, jnp.ones(3), _LENGTH, None, None),
        ValueError,
        "hvp: v has shapes [(3,)], expected a tree like the params, with shapes "
        "[(4,)], or one vector of 4 numbers.",
    ),
}

# Functions that accept anything, and why.
TAKES_ANYTHING: dict[str, str] = {}
