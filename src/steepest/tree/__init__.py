"""Functions of pytrees."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._arithmetic import (
        add as add,
        add_scale as add_scale,
        clip as clip,
        conj as conj,
        div as div,
        mul as mul,
        real as real,
        scale as scale,
        sub as sub,
        where as where,
    )
    from ._casts import (
        batch_shape as batch_shape,
        cast as cast,
        cast_like as cast_like,
        dtype as dtype,
        full_like as full_like,
        ones_like as ones_like,
        zeros_like as zeros_like,
    )
    from ._differentiable import differentiable as differentiable
    from ._gradient import scale_gradient as scale_gradient
    from ._map import map_numbers as map_numbers, map_trees as map_trees
    from ._matching import (
        as_patterns as as_patterns,
        first_matches as first_matches,
        matching as matching,
        not_matching as not_matching,
        Patterns as Patterns,
    )
    from ._moments import (
        bias_correction as bias_correction,
        update_infinity_moment as update_infinity_moment,
        update_moment as update_moment,
        update_moment_per_elem_norm as update_moment_per_elem_norm,
    )
    from ._names import Named as Named, named as named
    from ._params import map_params as map_params
    from ._paths import (
        first_difference as first_difference,
        key_paths as key_paths,
        leaf_paths as leaf_paths,
        owner_of as owner_of,
        values_by_keys as values_by_keys,
    )
    from ._random import (
        random_like as random_like,
        split_key_like as split_key_like,
        unwrap_random_key_data as unwrap_random_key_data,
    )
    from ._reductions import (
        allclose as allclose,
        global_norm as global_norm,
        max as max,
        min as min,
        norm as norm,
        size as size,
        sum as sum,
        vdot as vdot,
    )
    from ._state import (
        get as get,
        get_all_with_path as get_all_with_path,
        NamedTupleKey as NamedTupleKey,
        names_in as names_in,
        set as set,
    )
