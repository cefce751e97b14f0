"""Curvature: Hessian-vector products, and diagonals."""

from ._curvature import (
    fisher_diag as fisher_diag,
    hessian_diag as hessian_diag,
    hvp as hvp,
)
