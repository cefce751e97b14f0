"""Groups of leaves, chosen by where they stand in the tree."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from ..core import (
    AnyTransformation,
    GradientTransformationExtraArgs,
    Params,
    transformation,
)
from ..engine import frozen
from ..tree import as_patterns, first_matches, key_paths
from ._partition import groups

_MANY = 3  # unmatched leaves that are named; the others are counted


@transformation
def route(
    transforms: Mapping[str, AnyTransformation | None],
    *,
    mask_compatible_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Give each leaf to the transformation of the first pattern found in its path.

        route({
            "embed|head": adamw(1e-3),
            "bias|scale": adamw(1e-3, weight_decay=0.0),
            "teacher": None,
            ".*": muon(0.02),
        })

    A path is the keys that lead to a leaf, joined by `/`: `encoder/0/kernel`, where
    `encoder` is a key of a dict or the attribute of a module, and `0` a place in a
    list; `tree.key_paths(params)` shows them all. A pattern may be found anywhere in
    it, as by `re.search`: `^` and `$` stand for its ends. The patterns are tried in
    their order, so `".*"` stands last. A leaf that none of them finds is an error.

    It is a `partition`, with the patterns for labels: the rules of all groups run in
    one pass, and the state is a `PartitionState`.

    Args:
        transforms: pattern -> transformation. `None` freezes the leaves: they do not
            move, whatever follows in a chain, do not decay, and take no memory.
        mask_compatible_extra_args: as for `partition`.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.route({"bias": None, ".*": steepest.sgd(0.5)})
    >>> params = {"dense": {"kernel": jnp.ones(1), "bias": jnp.ones(1)}}
    >>> updates, _ = tx.update(params, tx.init(params), params)
    >>> float(updates["dense"]["kernel"][0]), float(updates["dense"]["bias"][0])
    (-0.5, 0.0)
    """
    if not isinstance(transforms, Mapping):
        raise TypeError(
            f"route: transforms is a {type(transforms).__name__}, expected a dict of "
            'patterns and their transformations, such as `{".*": adam(1e-3)}`.'
        )
    if not transforms:
        raise ValueError(
            "route: there are no patterns, expected at least one. For all leaves, "
            'call `route({".*": tx})`.'
        )
    names = list(transforms)
    patterns = as_patterns("route", names)

    def labels(params: Params) -> Any:
        found = first_matches(patterns, params)
        if None in found:
            raise _unmatched(found, key_paths(params), names)
        chosen = [names[k] for k in found if k is not None]
        return jax.tree.structure(params).unflatten(chosen)

    parts = {name: frozen() if tx is None else tx for name, tx in transforms.items()}
    return groups("route", parts, labels, mask_compatible_extra_args)


def _unmatched(
    found: Sequence[int | None], paths: list[str], names: list[str]
) -> ValueError:
    """The error for leaves that no pattern finds."""
    lost = [path for path, k in zip(paths, found, strict=True) if k is None]
    shown = ", ".join(path or "(the tree itself)" for path in lost[:_MANY])
    more = f" and {len(lost) - _MANY} more" if len(lost) > _MANY else ""
    return ValueError(
        f"route: no pattern is found in the path of {shown}{more}; the patterns are "
        f'{names}. Add `".*"` as the last one, for all the rest; its value `None` '
        "freezes them."
    )
