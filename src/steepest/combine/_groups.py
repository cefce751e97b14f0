"""Which group of a `partition` each leaf is in, for those who look from outside."""

from ..core import AnyTransformation, Params, Rule
from ..engine import Leaves, plan_of, wrapper_info
from ._partition import Group

Found = tuple[tuple[str, ...], str]  # labels, outermost first; why it has the last one


def groups_of(tx: AnyTransformation, params: Params) -> list[Found]:
    """For each leaf, also a `None`, its groups, and why it is in the last of them.

    Args:
        tx: any transformation.
        params: the params, or their shapes.
    """
    leaves = Leaves(params, "params")
    found: list[Found] = [((), "")] * len(leaves.arrays)
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
                # The first that says most: later links of a group say the same.
                if len(labels) + len(more) > len(found[k][0]):
                    found[k] = (*labels, *more), why or mine_why
    return found


def _reasons(groups: list[Group], params: Params) -> list[str]:
    """For each array that the innermost group has, why."""
    known = [group.reasons for group in groups if group.reasons is not None]
    return known[-1](params) if known else []
