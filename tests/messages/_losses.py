"""Bad calls of losses."""

import jax.numpy as jnp

import steepest
from steepest import losses

from ._bad import Bad

_X = jnp.ones((2, 3))  # scores of two examples for three classes
_L = jnp.array([0, 2])  # their class indices
_LOGITS = jnp.ones((1, 4, 3)), jnp.zeros((1, 4))
_LABELS = jnp.ones((1, 2), int), jnp.zeros((1, 2))
_FLOATING = "has dtype int32, expected a floating dtype. Convert it with "
_HOT = "`jax.nn.one_hot`."
_INDICES = (
    "labels have dtype int32 and shape (2,), one class index for each example, "
    "expected probabilities for logits of shape (2, 3). Use "
    "`softmax_cross_entropy_with_integer_labels` for indices. Convert class indices to "
    f"probabilities with {_HOT}"
)
_HOT_LABELS = (
    "labels have shape (2, 3) and scores have shape (2, 3), expected labels of shape "
    "(2,): class indices. Take the `argmax` of one-hot labels."
)


def _shapes(first: str, second: str, wanted: str = "shapes that broadcast") -> str:
    found = f"{first} has shape (2, 3) and {second} has shape (2,)"
    return f"{found}, expected {wanted}."


BAD = {
    "convex_kl_divergence": Bad(
        lambda: steepest.convex_kl_divergence(_X, _L),
        TypeError,
        f"convex_kl_divergence: targets {_FLOATING}`.astype(float)`, or class indices "
        f"with {_HOT}",
    ),
    "cosine_distance": Bad(
        lambda: steepest.cosine_distance(_X, _X, epsilon=-1e-8),
        steepest.UnusualValueWarning,
        "cosine_distance: epsilon is -1e-08, but is usually a number of at least 0. "
        "The value is used.",
    ),
    "cosine_similarity": Bad(
        lambda: steepest.cosine_similarity(_X, _X, axis=2),
        ValueError,
        "cosine_similarity: axis is 2, and the array has 2 dimensions, expected one "
        "from -2 to 1.",
    ),
    "ctc_loss": Bad(
        lambda: steepest.ctc_loss(*_LOGITS, *_LABELS, blank_id=3),
        ValueError,
        "ctc_loss: blank_id is 3, expected a whole number from 0 to 2: there are 3 "
        "classes.",
    ),
    "ctc_loss_with_forward_probs": Bad(
        lambda: steepest.ctc_loss_with_forward_probs(*_LABELS, *_LOGITS),
        ValueError,
        "ctc_loss_with_forward_probs: the shapes are logits (1, 2), logit_paddings "
        "(1, 2), labels (1, 4, 3), label_paddings (1, 4), expected logits [batch, "
        "times, classes] and labels [batch, labels].",
    ),
    "generalized_kl_divergence": Bad(
        lambda: steepest.generalized_kl_divergence(_X, _X[:, 0]),
        ValueError,
        f"generalized_kl_divergence: {_shapes('log_predictions', 'targets')}",
    ),
    "hinge_loss": Bad(
        lambda: steepest.hinge_loss(_X, _X[:, 0]),
        ValueError,
        f"hinge_loss: {_shapes('predictor_outputs', 'targets')}",
    ),
    "huber_loss": Bad(
        lambda: steepest.huber_loss(_X, _X, delta=-1.0),
        steepest.UnusualValueWarning,
        "huber_loss: delta is -1.0, but is usually a number of at least 0. The value "
        "is used.",
    ),
    "kl_divergence": Bad(
        lambda: steepest.kl_divergence(_X, _X, where=_X),
        ValueError,
        "kl_divergence: where has dtype float32, expected booleans. Pass `where != 0`.",
    ),
    "l2_loss": Bad(
        lambda: steepest.l2_loss(_X, _X[:, 0]),
        ValueError,
        f"l2_loss: {_shapes('predictions', 'targets', 'equal shapes')}",
    ),
    "log_cosh": Bad(
        lambda: steepest.log_cosh([1.0, 2.0], _X),
        TypeError,
        "log_cosh: predictions is a list, expected an array of real numbers. Convert "
        "it with `jnp.asarray`.",
    ),
    "losses.binary_dice_loss": Bad(
        lambda: losses.binary_dice_loss(_X, _X + 1, apply_sigmoid=False, smooth=-1.0),
        steepest.UnusualValueWarning,
        "binary_dice_loss: smooth is -1.0, but is usually a number of at least 0. The "
        "value is used.",
    ),
    "losses.dice_loss": Bad(
        lambda: losses.dice_loss(_X, _X, reduction="average"),
        ValueError,
        "dice_loss: reduction is 'average', expected one of: mean, sum, none.",
    ),
    "losses.kl_divergence_with_log_targets": Bad(
        lambda: losses.kl_divergence_with_log_targets(_X, jnp.ones((2, 3), int)),
        TypeError,
        f"kl_divergence_with_log_targets: log_targets {_FLOATING}`.astype(float)`.",
    ),
    "losses.make_fenchel_young_loss": Bad(
        lambda: losses.make_fenchel_young_loss(lambda x: x)(_X, _X),
        ValueError,
        "make_fenchel_young_loss: max_fun returns shape (3,) for scores of shape "
        "(3,), expected one number.",
    ),
    "losses.multiclass_generalized_dice_loss": Bad(
        lambda: losses.multiclass_generalized_dice_loss(_X, _L),
        ValueError,
        "multiclass_generalized_dice_loss: "
        f"{_shapes('predictions', 'targets', 'equal shapes')}",
    ),
    "losses.multiclass_hinge_loss": Bad(
        lambda: losses.multiclass_hinge_loss(_X, _X),
        ValueError,
        f"multiclass_hinge_loss: {_HOT_LABELS}",
    ),
    "losses.multiclass_perceptron_loss": Bad(
        lambda: losses.multiclass_perceptron_loss(_X, _X),
        ValueError,
        f"multiclass_perceptron_loss: {_HOT_LABELS}",
    ),
    "losses.multiclass_sparsemax_loss": Bad(
        lambda: losses.multiclass_sparsemax_loss(_X, _X),
        TypeError,
        "multiclass_sparsemax_loss: labels has dtype float32, expected an integer "
        "dtype: class indices, from 0. Take the `argmax` of one-hot labels.",
    ),
    "losses.perceptron_loss": Bad(
        lambda: losses.perceptron_loss(_X, _X[:, 0]),
        ValueError,
        f"perceptron_loss: {_shapes('predictor_outputs', 'targets', 'equal shapes')}",
    ),
    "losses.poly_loss_cross_entropy": Bad(
        lambda: losses.poly_loss_cross_entropy(_X, _L),
        TypeError,
        "poly_loss_cross_entropy: labels has dtype int32, expected a floating dtype. "
        "Convert class indices to probabilities with `jax.nn.one_hot`.",
    ),
    "losses.ranking_softmax_loss": Bad(
        lambda: losses.ranking_softmax_loss(_X, _X, reduce_fn="mean"),
        TypeError,
        "ranking_softmax_loss: reduce_fn is a str, expected a function.",
    ),
    "losses.sparsemax_loss": Bad(
        lambda: losses.sparsemax_loss(_X, _L),
        ValueError,
        f"sparsemax_loss: {_shapes('logits', 'labels')}",
    ),
    "losses.triplet_margin_loss": Bad(
        lambda: losses.triplet_margin_loss(_X, _X, _X, norm_degree=0),
        ValueError,
        "triplet_margin_loss: norm_degree is 0, expected a number above 0 and below "
        "infinity.",
    ),
    "ntxent": Bad(
        lambda: steepest.ntxent(_X, _L, temperature=0.0),
        ValueError,
        "ntxent: temperature is 0.0, expected a number above 0.",
    ),
    "safe_softmax_cross_entropy": Bad(
        lambda: steepest.safe_softmax_cross_entropy(_X, _L),
        ValueError,
        f"safe_softmax_cross_entropy: {_INDICES}",
    ),
    "sigmoid_binary_cross_entropy": Bad(
        lambda: steepest.sigmoid_binary_cross_entropy(_L, _X),
        TypeError,
        "sigmoid_binary_cross_entropy: logits has dtype int32 and labels has dtype "
        "float32, as if they were swapped. Call `sigmoid_binary_cross_entropy(logits, "
        "labels)`, with logits of a floating dtype.",
    ),
    "sigmoid_focal_loss": Bad(
        lambda: steepest.sigmoid_focal_loss(_X, _X, alpha=-1.0),
        steepest.UnusualValueWarning,
        "sigmoid_focal_loss: alpha is -1.0, but is usually a number in [0, 1]. The "
        "value is used.",
    ),
    "smooth_labels": Bad(
        lambda: steepest.smooth_labels(_X, 1.5),
        steepest.UnusualValueWarning,
        "smooth_labels: alpha is 1.5, but is usually a number in [0, 1]. The value is "
        "used.",
    ),
    "softmax_cross_entropy": Bad(
        lambda: steepest.softmax_cross_entropy(_X, _L),
        ValueError,
        f"softmax_cross_entropy: {_INDICES}",
    ),
    "softmax_cross_entropy_with_integer_labels": Bad(
        lambda: steepest.softmax_cross_entropy_with_integer_labels(_X, _X),
        TypeError,
        "softmax_cross_entropy_with_integer_labels: labels has dtype float32, "
        "expected an integer dtype: class indices, from 0. Use "
        "`softmax_cross_entropy` for probabilities.",
    ),
    "squared_error": Bad(
        lambda: steepest.squared_error(_X, 1.0),
        ValueError,
        "squared_error: predictions has shape (2, 3) and targets has shape (), "
        "expected equal shapes.",
    ),
}

# Functions that accept anything, and why.
TAKES_ANYTHING: dict[str, str] = {}
