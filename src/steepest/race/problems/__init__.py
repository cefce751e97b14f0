"""The built-in problems, and loading a problem by name."""

import typing as _typing

from steepest.core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._bytes import bytes_ as bytes_, small_bytes as small_bytes
    from ._digits import digits as digits
    from ._hebbian import hebbian as hebbian
    from ._known import DEFAULT as DEFAULT, known as known
    from ._least_squares import least_squares as least_squares
    from ._load import load as load
    from ._rosenbrock import rosenbrock as rosenbrock
