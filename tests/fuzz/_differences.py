"""Intended differences between steepest and Optax: data, each with its reason.

With a `path`, only the values at that path are not compared; without one, the whole
expression is not.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ._problems import DTYPES, GRADIENTS, Problem, TREES

HALF = "bfloat16", "float16"
COMPLEX = ("complex64",)


@dataclass(frozen=True)
class Known:
    """An intended difference."""

    reason: str  # in docs/from-optax.md
    text: str  # a regular expression, searched for in the expression
    dtypes: Sequence[str] = tuple(DTYPES)
    trees: Sequence[str] = tuple(TREES)
    gradients: Sequence[str] = GRADIENTS  # applies to these kinds of gradients
    path: str | None = None  # a regular expression

    def holds(self, text: str, problem: Problem) -> bool:
        """Whether it explains a difference here."""
        here = problem.dtype in self.dtypes and problem.tree in self.trees
        here = here and not set(self.gradients).isdisjoint(problem.gradients)
        return here and re.search(self.text, text) is not None


# Transformations that store the initial params.
_FROM_HERE = (
    "cocob|sam|schedule_free|mechanize|dog|dowg|prodigy|dadapt|distance|galore|madgrad"
)

# Transformations that store no mean of the gradients.
_FORGETFUL = "|".join(
    "chain named_chain masked partition multi_transform flatten apply_if_finite "
    "conditionally_mask conditionally_transform identity scale sgd sign_sgd clip "
    "scale_by_schedule scale_by_learning_rate scale_by_sign add_decayed_weights "
    "clip_by_global_norm set_to_zero zero_nans keep_params_nonnegative user.[a-z_]* "
    "[a-z_]*_schedule exponential_decay join_schedules centralize".split()
)

KNOWN = [
    Known(
        "second moments and inner products of complex numbers: |g|^2 and Re(conj(g) p)",
        "adadelta|simplified_ademamix|dadapt_adamw|prodigy|distance_over_gradients"
        "|mechanize|momo|madgrad",
        COMPLEX,
    ),
    Known(
        "`cocob` bets on the real and the imaginary part separately",
        "cocob",
        COMPLEX,
        path=r"^(?!.*cumulative_gradients)",  # everything else
    ),
    Known(
        "complex NaN are NaN: Optax orders them, and its maximum may drop them",
        "adamax|amsgrad",
        COMPLEX,
    ),
    Known(
        "`flatten` gives a real leaf a real update, also next to complex ones",
        "flatten.*nois",
        COMPLEX,
    ),
    Known("Muon and GaLore conjugate complex matrices", "muon|galore", COMPLEX),
    Known(
        "the projector of a leaf that is not projected has shape (1, 1)",
        "galore",
        path=r"projector",
    ),
    Known(
        "`MultiSteps` keeps the imaginary part, which Optax drops",
        "multi_steps",
        COMPLEX,
    ),
    Known(
        "half-precision gradients are accumulated as a sum, for an exact mean",
        "multi_steps",
        HALF,
        path=r"\.acc_grads",
    ),
    Known(
        "random numbers are drawn in the dtype of the leaf: not those of float32",
        "add_noise|noisy_sgd",
        HALF,
    ),
    Known(
        "the state of integer leaves is float: in Optax it starts as integers, and "
        "squares stay integers",
        rf"(Call|Name)\('(?!({_FORGETFUL})')",  # anything else
        ("int32",),
    ),
    Known(
        "these pass on extra arguments too",
        r"(multi_steps|lookahead|split_real).*user\.low",
    ),
    Known(
        "`adapt_lower_bound` does not change the bound after a zero gradient",
        "momo.*adapt_lower_bound",
    ),
    Known(
        "`lookahead` resets to `init` of the synchronized params",
        rf"lookahead.*({_FROM_HERE}).*True\)$",
    ),
    Known(
        "`rprop` compares signs: zero times infinity is not a change of sign",
        "rprop",
        gradients=("inf",),
    ),
    Known(
        "a scalar stays a scalar",
        "distance_over_gradients",
        trees=("layers", "holes", "scalar"),
    ),
]


def expected(expression: Any, problem: Problem) -> list[Known]:
    """The intended differences for this case."""
    return [known for known in KNOWN if known.holds(repr(expression), problem)]


def is_expected(known: Sequence[Known], path: str) -> bool:
    """Whether a difference at this path is intended."""
    return any(one.path is not None and re.search(one.path, path) for one in known)
