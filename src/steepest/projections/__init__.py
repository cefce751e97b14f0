"""Projections of trees onto sets: the nearest point of the set.

Inside `jax.shard_map` they see one device's shard: project where the trees are whole.
"""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._box import (
        projection_box as projection_box,
        projection_hypercube as projection_hypercube,
        projection_linf_ball as projection_linf_ball,
        projection_non_negative as projection_non_negative,
    )
    from ._l1 import (
        projection_l1_ball as projection_l1_ball,
        projection_l1_sphere as projection_l1_sphere,
        projection_simplex as projection_simplex,
    )
    from ._l2 import (
        projection_l2_ball as projection_l2_ball,
        projection_l2_sphere as projection_l2_sphere,
    )
    from ._planes import (
        projection_halfspace as projection_halfspace,
        projection_hyperplane as projection_hyperplane,
        projection_vector as projection_vector,
    )
