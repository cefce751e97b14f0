"""Experimental features, which may still change."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from . import aggregating as aggregating
