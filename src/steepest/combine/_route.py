"""Groups of leaves, selected by their paths in the tree."""

from collections.abc import Mapping, Sequence

import jax
from jaxtyping import PyTree

from ..core import (
    AnyTransformation,
    GradientTransformationExtraArgs,
    Params,
    transformation,
)
from ..engine import frozen
from ..tree import as_patterns, first_matches, key_paths
from ._partition import groups

_MANY = 3  # error messages name this many unmatched leaves, and count the others


@transformation
def route(
    transforms: Mapping[str, AnyTransformation | None],
    *,
    mask_compatible_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Apply to each leaf the transformation of the first pattern that matches its path.

        route({
            "embed|head": adamw(1e-3),
            "bias|scale": adamw(1e-3, weight_decay=0.0),
            "teacher": None,
            ".*": muon(0.02),
        })

    A path is the keys of a leaf joined by `/`, such as `encoder/0/kernel`, where
    `encoder` is a key of a dict or an attribute of a module, and `0` an index of a
    list; `tree.key_paths(params)` lists all paths. A pattern may match anywhere in the
    path, as with `re.search`; use `^` and `$` for its ends. The patterns are tried in
    order, so put `".*"` last. A leaf that no pattern matches is an error.

    This is a `partition` with the patterns as labels: the rules of all groups run in
    one pass, and the state is a `PartitionState`.

    Args:
        transforms: pattern -> transformation. `None` freezes the leaves: they do not
            move, whatever follows in a chain, do not decay, and take no memory.
        mask_compatible_extra_args: whether to split extra arguments that have the
            structure of the updates. `grad` is always split, and the functions
            `value_fn` and `obj_fn` become functions of the group's params.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.route({"bias": None, ".*": steepest.sgd(0.5)})
    >>> params = {"dense": {"kernel": jnp.ones(1), "bias": jnp.ones(1)}}
    >>> updates, _ = tx.update(params, tx.init(params), params)
    >>> float(updates["dense"]["kernel"][0]), float(updates["dense"]["bias"][0])
    (-0.5, 0.0)
    """
    if not isinstance(transforms, Mapping):
        raise TypeError(
            f"route: transforms is a {type(transforms).__name__}, expected a dict from "
            'patterns to transformations, such as `{".*": adam(1e-3)}`.'
        )
    if not transforms:
        raise ValueError(
            "route: got no patterns, expected at least one. To select all leaves, call "
            '`route({".*": tx})`.'
        )
    names = list(transforms)
    patterns = as_patterns("route", names)

    def labels(params: Params) -> PyTree:
        matches = first_matches(patterns, params)
        if None in matches:
            raise _unmatched(matches, key_paths(params), names)
        chosen = [names[k] for k in matches if k is not None]
        return jax.tree.structure(params).unflatten(chosen)

    parts = {name: frozen() if tx is None else tx for name, tx in transforms.items()}
    return groups("route", parts, labels, mask_compatible_extra_args)


def _unmatched(
    matches: Sequence[int | None], paths: list[str], names: list[str]
) -> ValueError:
    """The error for leaves that no pattern matches."""
    lost = [path for path, k in zip(paths, matches, strict=True) if k is None]
    shown = ", ".join(path or "(the tree itself)" for path in lost[:_MANY])
    more = f" and {len(lost) - _MANY} more" if len(lost) > _MANY else ""
    return ValueError(
        f"route: no pattern matches {shown}{more}; the patterns are {names}. Add "
        '`".*"` as the last pattern for all other leaves, with `None` to freeze them.'
    )
