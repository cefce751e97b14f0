"""The built-in problems, by name."""

from collections.abc import Callable

from .._problem import Problem
from ._bytes import bytes_, small_bytes
from ._digits import digits
from ._hebbian import hebbian
from ._least_squares import least_squares
from ._rosenbrock import rosenbrock

DEFAULT = "small_bytes"
EMBEDDED: dict[str, Callable[[], Problem]] = {
    "small_bytes": small_bytes,
    "digits": digits,
    "bytes": bytes_,
    "rosenbrock": rosenbrock,
    "least_squares": least_squares,
    "hebbian": hebbian,
}


def known() -> dict[str, str]:
    """The names of the built-in problems, with one line about each.

    >>> list(known())
    ['small_bytes', 'digits', 'bytes', 'rosenbrock', 'least_squares', 'hebbian']
    """
    return {name: (f.__doc__ or "").splitlines()[0] for name, f in EMBEDDED.items()}
