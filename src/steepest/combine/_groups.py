"""Which groups of `partition` each leaf is in."""

from ..core import AnyTransformation, Params, Rule
from ..engine import Leaves, plan_of, wrapper_info
from ._partition import Group

Membership = tuple[tuple[str, ...], str]  # labels, outermost first; why the last one


def groups_of(tx: AnyTransformation, params: Params) -> list[Membership]:
    """For each leaf, including `None`, its groups, and why it is in the innermost one.

    Args:
        tx: any transformation.
        params: the params, or their shapes.
    """
    leaves = Leaves(params, "params")
    groups: list[Membership] = [((), "")] * len(leaves.arrays)
    for link in plan_of("groups_of", "tx", tx).links:
        mine = [mask for mask in link.masks if isinstance(mask, Group)]
        view = link.view(leaves)
        hidden = view.hide(params)
        info = None if isinstance(link.body, Rule) else wrapper_info(link.body)
        inside = iter(groups_of(info.tx, hidden) if info else ())
        reasons = iter(_reasons(mine, hidden))
        labels = tuple(mask.label for mask in mine)
        for k, (p, seen) in enumerate(zip(leaves.arrays, view.on, strict=True)):
            if seen:
                more, why = next(inside, ((), ""))
                mine_why = "" if p is None else next(reasons, "")
                # Keep the first of the longest: later links of a group repeat it.
                if len(labels) + len(more) > len(groups[k][0]):
                    groups[k] = (*labels, *more), why or mine_why
    return groups


def _reasons(groups: list[Group], params: Params) -> list[str]:
    """For each array of the innermost group, why it is there."""
    known = [group.reasons for group in groups if group.reasons is not None]
    return known[-1](params) if known else []
