"""Transformations made of transformations."""

from ._chain import chain as chain, named_chain as named_chain
from ._lookahead import (
    lookahead as lookahead,
    LookaheadParams as LookaheadParams,
    LookaheadState as LookaheadState,
)
from ._masked import masked as masked
