"""Functions of pytrees."""

from ._paths import first_difference as first_difference, leaf_paths as leaf_paths
