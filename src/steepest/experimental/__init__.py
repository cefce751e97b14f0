"""What may still change."""

from . import aggregating as aggregating
