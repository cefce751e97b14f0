"""Errors of losses: shapes, dtypes, axes, the wrong kind of labels, numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest import losses

from ..unusual import ODD

nan, inf = float("nan"), float("inf")
X = jnp.ones((3, 3))
L = jnp.arange(3)
Z = jnp.full((3, 3), 1j)
CTC = jnp.ones((1, 4, 3)), jnp.zeros((1, 4)), jnp.ones((1, 2), int), jnp.zeros((1, 2))
NUMBERS = {
    "sigmoid_focal_loss": (
        (X, X),
        {"alpha": [-0.1, 1.1, nan, "a"], "gamma": [-1, nan]},
    ),
    "poly_loss_cross_entropy": ((X, X), {"epsilon": [nan, inf, "a", None]}),
    "cosine_distance": ((X, X), {"epsilon": [-1.0, nan, "a"]}),
    "huber_loss": ((X, X), {"delta": [-1.0, np.float32(-1), nan, "a", 1j]}),
    "dice_loss": ((X, X), {"smooth": [-1.0, nan], "alpha": [-1], "beta": [-1, None]}),
    "ntxent": ((X, L), {"temperature": [0, -1.0, nan, "a"]}),
    "triplet_margin_loss": (
        (X, X, X),
        {"norm_degree": [0, -1, inf, "a"], "margin": [-1.0, nan], "eps": [-1.0, "a"]},
    ),
    "smooth_labels": ((X,), {"alpha": [-0.1, 1.1, nan, "a"]}),
    "ctc_loss": (CTC, {"blank_id": [-1, 1.5, "a"], "log_epsilon": [0.0, 1.0, nan]}),
}
ROWS = [
    (name, args, {option: x}, f"{name}: {option} is ")
    for name, (args, options) in NUMBERS.items()
    for option, values in options.items()
    for x in values
]
SHARED = [
    (
        "hinge_loss",
        (Z, X),
        {},
        "predictor_outputs is complex, expected real numbers.",
    ),
    ("l2_loss", (X, Z), {}, "targets is complex, expected real numbers. Take"),
    (
        "squared_error",
        (None,),
        {},
        "predictions is a NoneType, expected an array of real",
    ),
    (
        "log_cosh",
        (np.array(["a"]),),
        {},
        "predictions has dtype <U1, expected an array of",
    ),
    (
        "log_cosh",
        (jax.random.key(0),),
        {},
        "predictions has dtype key<fry>, expected an",
    ),
    ("kl_divergence", (X, X), {"axis": "a"}, "axis is 'a', expected a whole number, a"),
    ("cosine_similarity", (X, X), {"epsilon": jnp.ones(5)}, "epsilon has shape (5,)"),
    (
        "ntxent",
        (X, L),
        {"temperature": jnp.ones(5)},
        "temperature has shape (5,), expected",
    ),
    (
        "softmax_cross_entropy",
        (X, L),
        {},
        "labels have dtype int32 and shape (3,), one",
    ),
    ("softmax_cross_entropy", (X, L), {"axis": 0}, "labels have dtype int32 and shape"),
    ("softmax_cross_entropy", (X, 1), {}, "labels have dtype int32 and shape (), one"),
    ("multiclass_hinge_loss", (X, X), {}, "labels have shape (3, 3) and scores have"),
    (
        "multiclass_hinge_loss",
        (X, jnp.eye(3, dtype=int)),
        {},
        "labels have shape (3, 3)",
    ),
    (
        "multiclass_hinge_loss",
        (X[0], X[0]),
        {},
        "labels have shape (3,) and scores have",
    ),
    (
        "multiclass_sparsemax_loss",
        (X[:, :0], L),
        {},
        "scores have shape (3, 0), expected at",
    ),
    (
        "ranking_softmax_loss",
        (X, X),
        {"reduce_fn": 3},
        "reduce_fn is a int, expected a",
    ),
    (
        "make_fenchel_young_loss",
        (3,),
        {},
        "max_fun is a int, expected a function.",
    ),
]
ROWS += [
    (name, args, options, f"{name}: {message}")
    for name, args, options, message in SHARED
]


@pytest.mark.parametrize(
    "name, args, options, message",
    ROWS,
    ids=[f"{k} {row[3]}" for k, row in enumerate(ROWS)],
)
def test_bad_arguments_are_refused(name, args, options, message, as_users_do):
    with pytest.raises((TypeError, *ODD, IndexError)) as caught:
        getattr(losses, name)(*args, **options)
    assert str(caught.value).startswith(message)


def test_valid_arguments_are_not_refused():
    """Valid calls that look like mistakes."""
    hot = jnp.eye(3, dtype=int)
    soft = losses.softmax_cross_entropy
    np.testing.assert_array_equal(soft(X, hot), soft(X, hot.astype(float)))
    one = soft(jnp.ones((2, 3)), hot[0])  # one label for all examples
    np.testing.assert_array_equal(one, soft(jnp.ones((2, 3)), jnp.stack([hot[0]] * 2)))
    many = losses.multiclass_hinge_loss(X[0], L)  # one row of scores for all labels
    np.testing.assert_array_equal(many, [1.0, 1.0, 1.0])
    assert losses.huber_loss(X, X, delta=0.0).shape == X.shape
    assert losses.triplet_margin_loss(X, X, X, margin=0.0, eps=0.0).shape == (3,)


SWAPPED = {
    "softmax_cross_entropy_with_integer_labels": "logits",
    "softmax_cross_entropy": "logits",
    "safe_softmax_cross_entropy": "logits",
    "poly_loss_cross_entropy": "logits",
    "sigmoid_binary_cross_entropy": "logits",
    "sigmoid_focal_loss": "logits",
    "ranking_softmax_loss": "logits",
    "multiclass_hinge_loss": "scores",
    "multiclass_perceptron_loss": "scores",
    "multiclass_sparsemax_loss": "scores",
    "ntxent": "embeddings",
}


@pytest.mark.parametrize("name", SWAPPED)
@pytest.mark.parametrize("many", [True, False], ids=["many", "one"])
def test_class_indices_in_place_of_scores_are_an_error_about_the_order(name, many):
    """Optax's hinge and perceptron losses broadcast them."""
    labels, scores = (L, X) if many else (L[0], X[0])
    first = SWAPPED[name]
    says = f"{name}: {first} has dtype int32 and labels has dtype float32, as if they "
    says += f"were swapped. Call `{name}({first}, labels)`, with {first} of a float"
    with pytest.raises((TypeError, ValueError)) as caught:
        getattr(losses, name)(labels, scores)
    assert says in str(caught.value)
