"""Experimental features, which may still change."""

from . import aggregating as aggregating
