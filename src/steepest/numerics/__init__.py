"""Functions of one array. No pytrees, no state."""

from ._moments import (
    abs_sq as abs_sq,
    debias as debias,
    ema as ema,
    first_moment as first_moment,
    increment as increment,
    second_moment as second_moment,
    zero_count as zero_count,
)
from ._norms import root as root, sum_of_squares as sum_of_squares
from ._precision import is_inexact as is_inexact, wide_dtype as wide_dtype
