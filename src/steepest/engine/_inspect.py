"""What a transformation is made of, for `describe`, `read` and `metrics`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

import jax
from jaxtyping import PyTree

from ..core import AnyTransformation, OptState, Params, Rule
from ..numerics import before, known_team
from .leaves import Leaves
from .run import layout_of, Link, plan_of, stack_sizes
from .step import WrapperInfo

T = TypeVar("T")
# The numbers to report while a model trains. Schedules are always reported.
_METRICS = ("learning_rate", "weight_decay")
_ALONE = "by the compiler: no other matrix has its shape"


class Shown(NamedTuple):
    """A number of a running optimizer."""

    groups: tuple[str, ...]  # the labels of its groups, outermost first
    name: str
    value: object


def shown(tx: AnyTransformation, state: OptState) -> Iterator[Shown]:
    """The current hyperparameters of `tx`, such as the learning rate.

    Args:
        tx: any transformation.
        state: its state.
    """
    plan = plan_of("shown", "tx", tx)
    places = _places(state)
    for link, mine in zip(plan.links, plan.split(state), strict=True):
        groups = places.get(id(mine), ())
        body = link.body
        if not isinstance(body, Rule):
            info = wrapper_info(body)
            if info is not None:
                for one in shown(info.tx, info.inner(mine)):
                    yield one._replace(groups=(*groups, *one.groups))
            continue
        count = before(mine.count) if "count" in body.shared else None
        for name, x in body.numbers.items():
            if name in body.schedules:
                yield Shown(groups, name, x(count))
            elif name in _METRICS:
                yield Shown(groups, name, x)


def handlers(tx: AnyTransformation, params: Params) -> list[list[str]]:
    """For each leaf, the names of the transformations applied to it, in order.

    Args:
        tx: any transformation.
        params: the params, or their shapes.
    """
    rows = _by_leaf("handlers", tx, params, _inside)
    return [[name for names in row for name in names] for row in rows]


def kept_wide(tx: AnyTransformation, params: Params) -> list[str]:
    """For each leaf, why some of its memory is not stored in few bits.

    Empty for all leaves, if `tx` stores nothing in few bits.

    Args:
        tx: any transformation.
        params: the params, or their shapes.
    """
    texts = []
    for row in _by_leaf("kept_wide", tx, params, _reasons):
        text = ""
        for why in row:
            if why not in text:
                text = ", ".join(filter(None, [text, why]))
        texts.append(text)
    return texts


def resharded(tx: AnyTransformation, params: Params) -> list[str]:
    """For each leaf, whether `reshard` applies to it, or why it does not.

    Empty for leaves without a matrix formula, and if `tx` has no `reshard`.

    Args:
        tx: any transformation.
        params: the params, or their shapes.
    """
    rows = _by_leaf("resharded", tx, params, _resharded)
    return [next(filter(None, reversed(row)), "") for row in rows]


def notes(tx: AnyTransformation, params: Params) -> list[str]:
    """What the wrappers in `tx` have to say about these params.

    Args:
        tx: any transformation.
        params: the params, or their shapes.
    """
    leaves = Leaves(params, "params")
    texts: list[str] = []
    for link in plan_of("notes", "tx", tx).links:
        info = None if isinstance(link.body, Rule) else wrapper_info(link.body)
        if info is None:
            continue
        selected = link.view(leaves).hide(params)
        if info.notes is not None:
            texts += info.notes(selected)
        texts += notes(info.tx, seen_by(info, selected))
    return texts


def _by_leaf(
    name: str,
    tx: AnyTransformation,
    params: Params,
    of: Callable[[Link, Params], Sequence[T]],
) -> list[list[T]]:
    """For each leaf, what `of` says of each link that applies to it, in order.

    Args:
        name: name used in error messages.
        tx: any transformation.
        params: the params, or their shapes.
        of: a function of a link and the leaves that its masks select.
    """
    leaves = Leaves(params, "params")
    rows: list[list[T]] = [[] for _ in leaves.arrays]
    for link in plan_of(name, "tx", tx).links:
        view = link.view(leaves)
        inside = iter(of(link, view.hide(params)))
        for row, selected in zip(rows, view.on, strict=True):
            if selected:
                row.append(next(inside))
    return rows


def _joined(info: WrapperInfo, params: Params, texts: Sequence[str]) -> list[str]:
    """For each leaf, the different texts about the leaves that a wrapper makes of it.

    Args:
        info: information about the wrapper.
        params: the params, or their shapes.
        texts: one for each leaf that the wrapped transformation sees.
    """
    inner, sizes = iter(texts), map(len, pieces(info, params))
    return [", ".join(dict.fromkeys(filter(None, islice(inner, n)))) for n in sizes]


def _reasons(link: Link, params: Params) -> list[str]:
    """For each leaf that the masks of a link select, what `kept_wide` says."""
    body, texts = link.body, [""] * len(Leaves(params).arrays)
    if isinstance(body, Rule):
        storage = link.storage
        if storage is None or not body.memory:
            return texts

        def begin(tree: Params) -> list[PyTree]:
            stored = storage.begin(body, Leaves(tree))
            texts[:] = [x.why if x else "" for x in stored]
            return [x and x.memory for x in stored]

        jax.eval_shape(begin, params)
        return texts
    info = wrapper_info(body)
    if info is None:
        return texts
    return _joined(info, params, kept_wide(info.tx, seen_by(info, params)))


def _resharded(link: Link, params: Params) -> list[str]:
    """For each leaf that the masks of a link select, what `resharded` says."""
    body, arrays = link.body, Leaves(params).arrays
    if isinstance(body, Rule):
        axes = () if body.matrix is None else body.matrix.reshard
        if not axes or not arrays:
            return [""] * len(arrays)
        over = f"over {', '.join(axes)}: one of "
        return [f"{over}{n}" if n > 1 else _ALONE for n in _sizes(link, body, params)]
    info = wrapper_info(body)
    if info is None:
        return [""] * len(arrays)
    return _joined(info, params, resharded(info.tx, seen_by(info, params)))


def _sizes(link: Link, rule: Rule, params: Params) -> list[int]:
    """For each leaf, the number of matrices that the devices share, itself included."""
    leaves = Leaves(params)
    if not rule.stacked:
        axes = () if rule.matrix is None else rule.matrix.reshard
        return stack_sizes(rule, leaves.arrays, known_team(axes, leaves.arrays))
    layout = layout_of(rule, link.storage, leaves)
    sizes = [1] * len(leaves.arrays)
    if layout is not None:
        for s, stack in enumerate(layout.stacks):
            for k in stack:
                sizes[k] = sum(layout.counts(s))
    return sizes


def _inside(link: Link, params: Params) -> list[list[str]]:
    """For each leaf that the masks of a link select, what the link applies to it."""
    body, arrays = link.body, Leaves(params).arrays
    info = None if isinstance(body, Rule) else wrapper_info(body)
    if info is None:
        return [[link.name]] * len(arrays)
    inner = iter(handlers(info.tx, seen_by(info, params)))
    rows = []
    for p, mine in zip(arrays, pieces(info, params), strict=True):
        first, *_ = islice(inner, len(mine))
        names = ", ".join(first)
        shape = getattr(mine[0], "shape", ())
        if shape == getattr(p, "shape", ()):
            rows.append([f"{info.name}({names})"])
        else:  # such as "blocked(scale_by_soap, 256x256)"
            rows.append([f"{info.name}({names}, {'x'.join(map(str, shape[-2:]))})"])
    return rows


def seen_by(info: WrapperInfo, params: Params) -> Params:
    """The params, or their shapes, as the wrapped transformation sees them.

    Args:
        info: information about a wrapper.
        params: the params, or their shapes.
    """
    return params if info.seen is None else info.seen(params)


def pieces(info: WrapperInfo, params: Params) -> list[list[PyTree]]:
    """For each leaf, the leaves that the wrapped transformation sees in its place.

    Args:
        info: information about a wrapper.
        params: the params, or their shapes.
    """
    parts = Leaves(params).treedef.flatten_up_to(seen_by(info, params))
    return [Leaves(part).arrays for part in parts]


def wrapper_info(tx: AnyTransformation) -> WrapperInfo | None:
    """What `tx` wraps; `None` if it is not a wrapper of ours."""
    info = getattr(tx, "info", None)
    return info if isinstance(info, WrapperInfo) else None


def _places(state: OptState) -> Mapping[int, tuple[str, ...]]:
    """For each part of a state, by id: the keys of the dicts on the path to it."""
    places: dict[int, tuple[str, ...]] = {}

    def walk(node: PyTree, keys: tuple[str, ...]) -> None:
        places[id(node)] = keys
        if isinstance(node, Mapping):
            for key, child in node.items():
                walk(child, (*keys, str(key)))
        elif isinstance(node, tuple | list):
            for child in node:
                walk(child, keys)

    walk(state, ())
    return places
