"""Functions of one array. No pytrees, no state."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._adam_family import (
        bias_corrections as bias_corrections,
        nesterov_corrections as nesterov_corrections,
        nesterov_mean as nesterov_mean,
        spread as spread,
    )
    from ._axes import (
        as_matrices as as_matrices,
        Axes as Axes,
        axes_of as axes_of,
        from_matrices as from_matrices,
    )
    from ._codes import (
        Coded as Coded,
        encode as encode,
        is_coded as is_coded,
        read_twice as read_twice,
    )
    from ._cond import cond_under_vmap as cond_under_vmap
    from ._corrected import Corrected as Corrected
    from ._devices import (
        any_over as any_over,
        by_split as by_split,
        max_over as max_over,
        parts_over as parts_over,
        split_over as split_over,
        sum_of_leaves as sum_of_leaves,
        sum_over as sum_over,
        varying as varying,
    )
    from ._dither import dither as dither, seeds as seeds
    from ._eigenbasis import (
        eigenbasis as eigenbasis,
        inverse_cholesky as inverse_cholesky,
        iterated_basis as iterated_basis,
        orthonormal as orthonormal,
        rotated_basis as rotated_basis,
    )
    from ._gram import (
        gram_newton_schulz as gram_newton_schulz,
        orthogonal as orthogonal,
        quick_dtype as quick_dtype,
    )
    from ._half import at_least_float32 as at_least_float32, promoted as promoted
    from ._in_place import (
        can_replace as can_replace,
        replaced as replaced,
        Window as Window,
    )
    from ._init import (
        copy_of as copy_of,
        number_or_schedule as number_or_schedule,
        scalar as scalar,
        wide_moment as wide_moment,
    )
    from ._inverse_root import matrix_inverse_pth_root as matrix_inverse_pth_root
    from ._irregular import irregular_turn as irregular_turn
    from ._kernels import on_cuda as on_cuda
    from ._keys import key_from as key_from
    from ._lengths import (
        length as length,
        norms as norms,
        norms_along as norms_along,
        rms as rms,
        squares as squares,
    )
    from ._matmul import (
        between_bases as between_bases,
        exact_gram as exact_gram,
        exact_product as exact_product,
        product_error as product_error,
        rounded_gram as rounded_gram,
        rounded_product as rounded_product,
        rounded_times as rounded_times,
        rounded_to_half as rounded_to_half,
        times_rounded as times_rounded,
    )
    from ._moments import (
        abs_sq as abs_sq,
        before as before,
        debias as debias,
        ema as ema,
        first_moment as first_moment,
        holding as holding,
        increment as increment,
        is_chosen as is_chosen,
        second_moment as second_moment,
        Values as Values,
        values_of as values_of,
        zero_count as zero_count,
        Zeros as Zeros,
    )
    from ._nnls import nnls as nnls
    from ._normal import multi_normal as multi_normal, MultiNormal as MultiNormal
    from ._norms import (
        cube_root as cube_root,
        gradient_norm_squared as gradient_norm_squared,
        root as root,
        sum_of_squares as sum_of_squares,
    )
    from ._parts import by_parts as by_parts
    from ._polar import (
        newton_schulz as newton_schulz,
        polar as polar,
        PRECONDITIONINGS as PRECONDITIONINGS,
    )
    from ._polynomials import (
        COEFFICIENTS as COEFFICIENTS,
        Coefficients as Coefficients,
        coefficients_of as coefficients_of,
        Polynomials as Polynomials,
        polynomials as polynomials,
    )
    from ._power_iteration import power_iteration as power_iteration
    from ._precision import (
        is_inexact as is_inexact,
        limited as limited,
        wide_dtype as wide_dtype,
    )
    from ._products import inner as inner, quotient as quotient
    from ._rounding import rounded as rounded
    from ._safe import (
        safe_increment as safe_increment,
        safe_int32_increment as safe_int32_increment,
        safe_norm as safe_norm,
        safe_root_mean_squares as safe_root_mean_squares,
    )
    from ._sharding import (
        replicated as replicated,
        replicated_near as replicated_near,
        reshaped as reshaped,
        sharded_like as sharded_like,
        sharded_near as sharded_near,
        sliced as sliced,
    )
    from ._simplex import simplex as simplex
    from ._spectral import (
        more_symmetric as more_symmetric,
        spectral_norm as spectral_norm,
    )
    from ._split import (
        at_random as at_random,
        correction_dtype as correction_dtype,
        is_half as is_half,
        joined as joined,
        landed as landed,
        split as split,
        way as way,
        with_bits as with_bits,
    )
    from ._sums import (
        columns_sum as columns_sum,
        leafwise_ema as leafwise_ema,
        rows_sum as rows_sum,
        Sum as Sum,
        WeightedSum as WeightedSum,
    )
    from ._teams import (
        cond_in as cond_in,
        divided as divided,
        known_team as known_team,
        Team as Team,
        team_of as team_of,
    )
    from ._tiles import (
        fits as fits,
        in_tiles as in_tiles,
        is_in_few_bits as is_in_few_bits,
        on_gpu as on_gpu,
    )
    from ._xla import (
        after as after,
        before_its_parts as before_its_parts,
        computed_again as computed_again,
        computed_once as computed_once,
        inlined as inlined,
        joins_rows as joins_rows,
        largest as largest,
        members as members,
        most_in_chain as most_in_chain,
        most_in_stack as most_in_stack,
        most_kept as most_kept,
        read_again as read_again,
        set_apart as set_apart,
        short_programs as short_programs,
        slope_if as slope_if,
        sqrt_or_zero as sqrt_or_zero,
        stored as stored,
        unknown as unknown,
    )
