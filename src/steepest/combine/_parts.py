"""The names of the transformations that another one is made of."""

from ..core import AnyTransformation, Rule
from ..engine import plan_of, wrapper_info

RATE = "scale_by_learning_rate"


def names_in(tx: AnyTransformation) -> list[str]:
    """The names of the parts of `tx` in order, also inside wrappers.

    Args:
        tx: any transformation. One of another library is a single part.
    """
    names: list[str] = []
    for link in plan_of("names_in", "tx", tx).links:
        info = None if isinstance(link.body, Rule) else wrapper_info(link.body)
        names += [link.name] if info is None else names_in(info.tx)
    return names
