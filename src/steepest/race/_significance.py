"""Tests of significance.

Student, The probable error of a mean, 1908
Welch, The generalization of Student's problem when several different population
variances are involved, 1947
Holm, A simple sequentially rejective multiple test procedure, 1979
"""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

PAIRED = 5  # seeds from which the test is paired
_ROUNDING = 1e-6  # of float32, in differences of values of size 1


class Test(NamedTuple):
    """The result of a test.

    Attributes:
        p: the two-sided p-value; `None` if there was nothing to test.
        paired: whether it compared the two values of each seed.
    """

    p: float | None
    paired: bool = False


def compare(a: np.ndarray, b: np.ndarray, shared: bool = True) -> Test:
    """Test whether two means are equal.

    With the same seeds, and at least five of them, this is the paired t-test: what a
    seed does to both optimizers cancels. With fewer it is Welch's test: a paired test
    of three differences has two degrees of freedom, and would miss differences that
    Welch's test finds. Welch's test remains valid for shared seeds; it only becomes
    more cautious. If all differences happen to be equal, as for accuracies on few
    images, a paired test would take them as proof, so Welch's test is used.

    Args:
        a: one value per seed.
        b: those of another optimizer.
        shared: whether both ran with the same seeds, in the same order.

    >>> import numpy as np
    >>> test = compare(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.5, 6.0]))
    >>> round(test.p, 4), test.paired
    (0.0192, False)
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if min(len(a), len(b)) < 2 or not np.isfinite([*a, *b]).all():
        return Test(None)
    from scipy import stats  # takes half a second to import

    size = np.abs([*a, *b]).max() or 1.0
    a, b = a / size, b / size  # the squares of tiny values would underflow
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # about equal values
        if shared and len(a) == len(b) >= PAIRED and np.ptp(a - b) > _ROUNDING:
            _, p = stats.ttest_rel(a, b)
            return Test(float(np.asarray(p)), paired=True)
        if np.ptp(a) == np.ptp(b) == 0:
            return Test(1.0 if a[0] == b[0] else 0.0)
        _, p = stats.ttest_ind(a, b, equal_var=False)
        return Test(float(np.asarray(p)))


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Correct p-values for the number of tests, by Holm's method.

        p(k) <- max(p(k - 1), min(1, (n - k + 1) p(k))),   p(1) <= p(2) <= ...

    Args:
        ps: one p-value per test; `None` where there was no test.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    corrected: list[float | None] = [None] * len(ps)
    order = sorted((p, k) for k, p in enumerate(ps) if p is not None)
    least = 0.0
    for done, (p, k) in enumerate(order):
        least = max(least, min(1.0, (len(order) - done) * p))
        corrected[k] = least
    return corrected
