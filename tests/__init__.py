"""The tests; `checked` is their type checker, named in `pyproject.toml`."""

from ._typechecker import checked as checked, jaxtyped as jaxtyped
