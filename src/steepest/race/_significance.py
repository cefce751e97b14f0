"""Tests of significance.

Welch, The generalization of Student's problem when several different population
variances are involved, 1947
Holm, A simple sequentially rejective multiple test procedure, 1979
"""

from collections.abc import Sequence

import jax
import numpy as np


def welch(a: np.ndarray, b: np.ndarray) -> float | None:
    """The two-sided p-value of Welch's test that two means are equal.

        t  = (mean(a) - mean(b)) / sqrt(x + y),   x = var(a) / n,  y = var(b) / m
        nu = (x + y)^2 / (x^2 / (n - 1) + y^2 / (m - 1))
        p  = I(nu / (nu + t^2); nu / 2, 1 / 2)

    The test is not paired, though optimizers share seeds: if three paired differences
    happened to be equal, as for accuracies on few images, they would look like proof.

    Args:
        a: one value per seed.
        b: those of another optimizer.

    >>> import numpy as np
    >>> round(welch(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.5, 6.0])), 4)
    0.0192
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if min(len(a), len(b)) < 2 or not np.isfinite([*a, *b]).all():
        return None
    x, y = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    far = a.mean() - b.mean()
    if x + y == 0:
        return 1.0 if far == 0 else 0.0
    x, y, t2 = x / (x + y), y / (x + y), far**2 / (x + y)  # no underflow
    nu = 1 / (x**2 / (len(a) - 1) + y**2 / (len(b) - 1))
    return float(jax.scipy.special.betainc(nu / 2, 0.5, nu / (nu + t2)))


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
