"""Make discontinuous functions smooth by adding noise to their input."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._make_perturbed_fun import make_perturbed_fun as make_perturbed_fun
    from ._noise import Gumbel as Gumbel, Normal as Normal
