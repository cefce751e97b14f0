"""Groups of leaves, each with a transformation of its own."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from ..core import (
    AnyTransformation,
    GradientTransformationExtraArgs,
    like_optax,
    OptState,
    Params,
    transformation,
)
from ..engine import Mask, masked_plan, plan_of, sequence


@like_optax
class PartitionState(NamedTuple):
    """For each label, the state of its transformation, masked to its leaves."""

    inner_states: Mapping[Hashable, OptState]


class Group(Mask):
    """The leaves with one label."""

    def __init__(
        self,
        name: str,
        label: Hashable,
        chosen: Callable[[Params], Any],
        extra_too: bool,
        reasons: Callable[[Params], list[str]] | None,
    ):
        """Say who they are.

        Args:
            name: name used in error messages.
            label: what they have in common.
            chosen: booleans, of the params.
            extra_too: as for `Mask`.
            reasons: as for `groups`.
        """
        super().__init__(name, chosen, extra_too, "labels")
        self.label = str(label)
        self.reasons = reasons


@transformation
def partition(
    transforms: Mapping[Any, AnyTransformation],
    param_labels: Any,
    *,
    mask_compatible_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Give each leaf to the transformation that its label names.

    The rules of all groups run in one pass over the leaves. A norm is taken over the
    leaves of the group alone. To choose by path, use `route`.

    Args:
        transforms: label -> transformation.
        param_labels: labels in the structure of the params, one for a whole subtree
            where that is enough, or a function that makes them of the params. If that
            has a function `reasons` too, of the params, `describe` shows what it says
            of each leaf.
        mask_compatible_extra_args: whether extra arguments that have the structure of
            the updates are divided too. `grad` always is, and a function of the params,
            `value_fn` or `obj_fn`, becomes one of the params of the group.

    >>> import jax.numpy as jnp, steepest
    >>> groups = {"slow": steepest.sgd(0.1), "fast": steepest.sgd(1.0)}
    >>> tx = steepest.partition(groups, {"w": "slow", "b": "fast"})
    >>> grads = {"w": jnp.array([1.0]), "b": jnp.array([1.0])}
    >>> updates, _ = tx.update(grads, tx.init(grads))
    >>> round(float(updates["w"][0]), 3), float(updates["b"][0])
    (-0.1, -1.0)
    """
    transforms = dict(transforms)
    labels = _labels_for(tuple(transforms), param_labels)
    reasons: Any = getattr(param_labels, "reasons", None)
    reasons = reasons if callable(reasons) else None
    return groups("partition", transforms, labels, mask_compatible_extra_args, reasons)


def groups(
    name: str,
    transforms: dict[Any, AnyTransformation],
    labels: Callable[[Params], Any],
    extra_too: bool,
    reasons: Callable[[Params], list[str]] | None = None,
) -> GradientTransformationExtraArgs:
    """`partition`, in the voice of another.

    Args:
        name: name used in error messages.
        transforms: label -> transformation.
        labels: makes the labels of the params; each has its transformation.
        extra_too: whether extra arguments like the updates are divided too.
        reasons: for each leaf of the params, why it has its label: for `describe`.
    """
    plans = []
    for label, tx in transforms.items():
        mask = Group(name, label, _chosen(labels, label), extra_too, reasons)
        plans.append(masked_plan(mask, plan_of(name, f"transforms[{label!r}]", tx)))

    def apart(state: OptState) -> Sequence[OptState]:
        found = getattr(state, "inner_states", None)
        if not isinstance(found, Mapping) or set(found) != set(transforms):
            has = sorted(map(repr, found)) if isinstance(found, Mapping) else "nothing"
            raise ValueError(
                f"{name}: the state has inner states for {has}, expected a "
                f"PartitionState for {sorted(map(repr, transforms))}. Make the state "
                "with this transformation's own `init`."
            )
        return [found[label] for label in transforms]

    def together(states: list[OptState]) -> PartitionState:
        return PartitionState(dict(zip(transforms, states, strict=True)))

    return sequence(plans, apart, together).pair


def _labels_for(known: tuple[Hashable, ...], param_labels: Any) -> Callable[..., Any]:
    """`params -> labels`, each of which has its transformation."""
    leaves = jax.tree.leaves(param_labels)
    # A module may be callable, and yet be a tree of labels.
    make = callable(param_labels) and not (leaves and all(x in known for x in leaves))

    def labels(params: Params) -> Any:
        tree = param_labels(params) if make else param_labels
        if all(label in known for label in jax.tree.leaves(tree)):
            return tree
        for path, label in jax.tree_util.tree_leaves_with_path(tree):
            if label not in known:
                where = jax.tree_util.keystr(path) or "(the tree itself)"
                raise ValueError(
                    f"partition: leaf {where} has the label {label!r}, expected one of "
                    f"{list(known)}. Add a transformation for it, or use "
                    "`set_to_zero()` to freeze it."
                )
        return tree

    return labels


def _chosen(labels: Callable[[Params], Any], mine: Hashable) -> Callable[..., Any]:
    """`params -> mask`: the leaves with this label."""
    return lambda params: jax.tree.map(lambda label: label == mine, labels(params))
