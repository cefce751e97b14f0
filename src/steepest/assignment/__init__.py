"""Assignment problems: matchings of minimum cost."""

from ._hungarian_algorithm import (
    base_hungarian_algorithm as base_hungarian_algorithm,
    hungarian_algorithm as hungarian_algorithm,
)
