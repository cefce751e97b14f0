"""Groups of leaves, each with its own transformation."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
from jaxtyping import PyTree

from ..core import (
    AnyTransformation,
    called_by_user,
    GradientTransformationExtraArgs,
    like_optax,
    OptState,
    Params,
    transformation,
)
from ..engine import Mask, masked_plan, plan_of, sequence

Reasons: TypeAlias = Callable[[Params], list[str]]  # why each leaf has its label


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
        chosen: Callable[[Params], PyTree],
        extra_too: bool,
        reasons: Reasons | None,
    ):
        """Define a group.

        Args:
            name: name used in error messages.
            label: the label of its leaves.
            chosen: a function from the params to the mask of the group.
            extra_too: as for `Mask`.
            reasons: as for `groups`.
        """
        super().__init__(name, chosen, extra_too, "labels")
        self.label = str(label)
        self.reasons = reasons


@transformation
def partition(
    transforms: Mapping[Any, AnyTransformation],
    param_labels: PyTree | Callable[[Params], PyTree],
    *,
    mask_compatible_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Apply to each leaf the transformation with its label.

    The rules of all groups run in one pass over the leaves. Norms are taken over the
    leaves of one group. To select leaves by path, use `route`.

    Args:
        transforms: label -> transformation.
        param_labels: labels in the structure of the params, where one label may stand
            for a whole subtree, or a function from the params to such labels. If the
            function has an attribute `reasons`, a function from the params to a reason
            for each leaf, `describe` shows these reasons.
        mask_compatible_extra_args: whether to split extra arguments that have the
            structure of the updates. `grad` is always split, and the functions
            `value_fn` and `obj_fn` become functions of the group's params.

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
    reasons: Reasons | None = getattr(param_labels, "reasons", None)
    reasons = reasons if callable(reasons) else None
    return groups("partition", transforms, labels, mask_compatible_extra_args, reasons)


def groups(
    name: str,
    transforms: Mapping[Any, AnyTransformation],
    labels: Callable[[Params], PyTree],
    extra_too: bool,
    reasons: Reasons | None = None,
) -> GradientTransformationExtraArgs:
    """`partition`, for any transformation that is built on it.

    Args:
        name: name used in error messages.
        transforms: label -> transformation.
        labels: params -> labels, each of which has a transformation.
        extra_too: whether to split extra arguments with the structure of the updates.
        reasons: params -> why each leaf has its label, for `describe`.
    """
    plans, caller = [], called_by_user(name)
    for label, tx in transforms.items():
        mask = Group(name, label, _chosen(labels, label), extra_too, reasons)
        plans.append(masked_plan(mask, plan_of(name, f"transforms[{label!r}]", tx)))

    def apart(state: OptState) -> Sequence[OptState]:
        states = getattr(state, "inner_states", None)
        if not isinstance(states, Mapping) or set(states) != set(transforms):
            got = f"is a {type(state).__name__}"
            if isinstance(states, Mapping):
                got = f"has the labels {sorted(map(repr, states))}"
            raise ValueError(
                f"{caller}: the state {got}, expected a PartitionState with the labels "
                f"{sorted(map(repr, transforms))}. Make the state with this "
                "transformation's own `init`."
            )
        return [states[label] for label in transforms]

    def together(states: list[OptState]) -> PartitionState:
        return PartitionState(dict(zip(transforms, states, strict=True)))

    return sequence(plans, apart, together).pair


def _labels_for(
    known: tuple[Hashable, ...], param_labels: PyTree | Callable[[Params], PyTree]
) -> Callable[[Params], PyTree]:
    """`params -> labels`, after a check that each label has a transformation."""
    leaves = jax.tree.leaves(param_labels)
    # A module may be callable and still be a tree of labels.
    make = callable(param_labels) and not (leaves and all(x in known for x in leaves))

    def labels(params: Params) -> PyTree:
        tree = param_labels(params) if make else param_labels
        if all(label in known for label in jax.tree.leaves(tree)):
            return tree
        for path, label in jax.tree_util.tree_leaves_with_path(tree):
            if label not in known:
                where = jax.tree_util.keystr(path) or "(the tree itself)"
                raise ValueError(
                    f"partition: leaf {where} has the label {label!r}, expected one of "
                    f"{list(known)}. Add a transformation for that label; "
                    "`set_to_zero()` freezes its leaves."
                )
        return tree

    return labels


def _chosen(
    labels: Callable[[Params], PyTree], mine: Hashable
) -> Callable[[Params], PyTree]:
    """`params -> mask`, true for the leaves with this label."""
    return lambda params: jax.tree.map(lambda label: label == mine, labels(params))
