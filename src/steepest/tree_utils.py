"""The functions of `tree`, by the names that Optax gives them here."""

import typing as _typing

from .core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(
    globals(), deprecated="steepest.tree._deprecated"
):
    from .tree import (
        add as tree_add,
        add_scale as tree_add_scale,
        allclose as tree_allclose,
        batch_shape as tree_batch_shape,
        bias_correction as tree_bias_correction,
        cast as tree_cast,
        cast_like as tree_cast_like,
        clip as tree_clip,
        conj as tree_conj,
        div as tree_div,
        dtype as tree_dtype,
        full_like as tree_full_like,
        get as tree_get,
        get_all_with_path as tree_get_all_with_path,
        map_params as tree_map_params,
        max as tree_max,
        min as tree_min,
        mul as tree_mul,
        NamedTupleKey as NamedTupleKey,
        norm as tree_norm,
        ones_like as tree_ones_like,
        random_like as tree_random_like,
        real as tree_real,
        scale as tree_scale,
        set as tree_set,
        size as tree_size,
        split_key_like as tree_split_key_like,
        sub as tree_sub,
        sum as tree_sum,
        unwrap_random_key_data as tree_unwrap_random_key_data,
        update_infinity_moment as tree_update_infinity_moment,
        update_moment as tree_update_moment,
        update_moment_per_elem_norm as tree_update_moment_per_elem_norm,
        vdot as tree_vdot,
        where as tree_where,
        zeros_like as tree_zeros_like,
    )

if _typing.TYPE_CHECKING:  # else any name would pass, and none be known
    from functools import partial

    from .tree import add_scale as tree_add_scalar_mul, scale as tree_scalar_mul

    tree_l1_norm = partial(tree_norm, ord=1)
    tree_l2_norm = partial(tree_norm, ord=2)
    tree_linf_norm = partial(tree_norm, ord="inf")
