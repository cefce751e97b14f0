"""A fuzzer: random expressions, built with Optax and with steepest, and compared.

    python -m tests.fuzz 5000 --seed 1

prints the number of compared expressions and every difference, reduced to a small
example: a call of `check` that can be pasted.
"""

from ._compare import difference as difference
from ._expression import build as build, Call as Call, Name as Name
from ._fuzz import fuzz as fuzz
from ._problems import Problem as Problem


def check(expression: Call, problem: Problem) -> None:
    """Raise an error if the libraries differ; it says where."""
    what = difference(expression, problem)
    assert what is None, what
