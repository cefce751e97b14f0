"""Conversion to and from Optax, torch and JSON."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._config import from_config as from_config, to_config as to_config
    from ._install import install_as_optax as install_as_optax
    from ._optax import from_optax as from_optax, to_optax as to_optax
    from ._torch import from_torch as from_torch, to_torch as to_torch
