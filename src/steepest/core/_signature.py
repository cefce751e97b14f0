"""The names in the signatures of formulas, and calls by name."""

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Names(NamedTuple):
    """The names of the arguments of a function."""

    arrays: tuple[str, ...]  # its positional arguments
    numbers: tuple[str, ...]  # its keyword-only arguments
    optional: frozenset[str]  # of both, those that have a default

    @property
    def all(self) -> tuple[str, ...]:
        """Arrays and numbers."""
        return self.arrays + self.numbers


@lru_cache(maxsize=1024)
def names_of(f: Callable[..., object]) -> Names:
    """The names of the arguments of `f`.

    Args:
        f: a formula, or another function of a rule.
    """
    parameters = inspect.signature(f).parameters.values()
    arrays = tuple(x.name for x in parameters if x.kind is not x.KEYWORD_ONLY)
    numbers = tuple(x.name for x in parameters if x.kind is x.KEYWORD_ONLY)
    optional = frozenset(x.name for x in parameters if x.default is not x.empty)
    return Names(arrays, numbers, optional)


def call_by_name(f: Callable[..., T], have: Mapping[str, object]) -> T:
    """Call `f` with the values that its signature names.

    Args:
        f: a function of a rule.
        have: all available values, by name.
    """
    arrays, numbers, optional = names_of(f)
    given = {k: have[k] for k in numbers if k in have or k not in optional}
    return f(*(have[k] for k in arrays if k in have or k not in optional), **given)
