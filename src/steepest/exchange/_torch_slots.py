"""The parameters of a torch optimizer, and the leaf of the params each belongs to."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import permutations
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..core import Params
from ..engine import Leaves
from ..tree import key_paths

# A path for each parameter in torch's order, or torch's names or indices -> paths.
Names: TypeAlias = Mapping[Any, str | None] | Sequence[str | None]
# Patterns for paths; in a mapping, with the order of torch's axes in the leaf.
Transpose: TypeAlias = str | Sequence[str] | Mapping[str, Sequence[int] | None]

_EXAMPLE = 'such as `{"fc.weight": "fc/kernel", "fc.bias": "fc/bias"}`'


class Slot(NamedTuple):
    """A parameter of a torch optimizer."""

    key: object  # its key in the `state` of the state dict
    title: str  # its name in error messages
    group: Mapping[str, Any]  # its param group
    memory: Mapping[str, Any]  # what torch keeps for it; empty before its first step
    leaf: int  # the index of its leaf, where `None` counts as a leaf
    path: str  # the path of its leaf
    shape: tuple[int, ...]  # the shape of its leaf
    axes: tuple[int, ...]  # leaf = transpose(torch's array, axes)


def slots(
    name: str,
    state_dict: object,
    params: Params,
    names: Names | None,
    transpose: Transpose | None,
) -> list[Slot]:
    """One slot for each parameter that has a leaf, in torch's order.

    Args:
        name: name used in error messages.
        state_dict: the state dict of one torch optimizer.
        params: the params.
        names: as for `from_torch`.
        transpose: as for `from_torch`.
    """
    groups, memory = _parts(name, state_dict)
    leaves = Leaves(params, "params")
    here = [k for k, p in enumerate(leaves.arrays) if p is not None]
    paths = dict(zip(key_paths(params), here, strict=True))
    rows = [
        (key, label, group)
        for group in groups
        for key, label in zip(group["params"], _labels(group), strict=False)
    ]
    axes = _axes(name, transpose, {p: np.shape(leaves.arrays[paths[p]]) for p in paths})
    result: list[Slot] = []
    for k, path in enumerate(_paths(name, names, rows, list(paths))):
        if path is None:
            continue
        key, label, group = rows[k]
        shape = np.shape(leaves.arrays[paths[path]])
        mine = memory.get(key, memory.get(str(key), {}))
        title = f"{key}" if label is None else f"{key} ({label!r})"
        result.append(
            Slot(key, title, group, mine, paths[path], path, shape, axes[path])
        )
    return result


def by_leaf(name: str, all_slots: list[Slot]) -> dict[int, Slot]:
    """The slot of each leaf.

    Args:
        name: name used in error messages.
        all_slots: the slots of one optimizer or of several.
    """
    slot_of: dict[int, Slot] = {}
    for slot in all_slots:
        if slot.leaf in slot_of:
            raise ValueError(
                f"{name}: names gives {slot.path!r} to several parameters of torch, "
                "expected each path once."
            )
        slot_of[slot.leaf] = slot
    return slot_of


def read(name: str, slot: Slot, key: str) -> np.ndarray:
    """One array of torch's memory, in the axes of the leaf.

    Args:
        name: name used in error messages.
        slot: the parameter.
        key: such as `exp_avg`.
    """
    x = as_numpy(name, f"{key} of parameter {slot.title}", slot.memory[key])
    if x.ndim == len(slot.axes) and _permuted(x.shape, slot.axes) == slot.shape:
        return x.transpose(slot.axes)
    plain = slot.axes == tuple(range(len(slot.shape)))
    turned = "" if plain else f" and transpose gives the axes {slot.axes}"
    raise ValueError(
        f"{name}: leaf {slot.path!r} has shape {slot.shape}, but torch's parameter "
        f"{slot.title} has shape {x.shape}{turned}. {_advice(slot, x.shape)}"
    )


def written(slot: Slot, x: np.ndarray) -> np.ndarray:
    """An array in the axes of the leaf, as torch has it: the inverse of `read`."""
    back = np.argsort(slot.axes) if slot.axes else ()
    # NumPy has no bfloat16 of its own, and torch reads none of others'.
    x = x if x.dtype.type in _TORCH_READS else x.astype(np.float32)
    return np.array(x.transpose(tuple(int(k) for k in back)), order="C")


_TORCH_READS = (np.float16, np.float32, np.float64, np.complex64, np.complex128)


def as_numpy(name: str, what: str, x: Any) -> np.ndarray:
    """A tensor, an array, a number or nested lists of numbers, as a NumPy array.

    Args:
        name: name used in error messages.
        what: what it is, for error messages.
        x: the value. A tensor is anything with `detach`, `cpu` and `numpy`.
    """
    if hasattr(x, "detach") and hasattr(x, "numpy"):
        x = x.detach().cpu()
        if str(x.dtype).startswith(("torch.bfloat16", "torch.float8")):
            x = x.float()  # NumPy has no such dtype
        x = x.numpy()
    try:
        array = np.asarray(x)
        # The dtypes of ml_dtypes, such as bfloat16, are of kind "V".
        known = array.dtype.kind in "biufcV"
    except ValueError:  # lists of different lengths
        known, array = False, np.zeros(())
    if not known:
        raise TypeError(
            f"{name}: {what} is a {type(x).__name__}, expected a tensor, an array or "
            "lists of numbers."
        )
    return array


def _parts(
    name: str, state_dict: Any
) -> tuple[list[Mapping[str, Any]], Mapping[Any, Mapping[str, Any]]]:
    """The param groups and the memory of a state dict."""
    if not isinstance(state_dict, Mapping) or not (
        {"state", "param_groups"} <= state_dict.keys()
    ):
        inner = [
            k for k, x in _items(state_dict) if {"state", "param_groups"} <= _keys(x)
        ]
        advice = (
            f"Pass `state_dict[{inner[0]!r}]`."
            if inner
            else ("Pass `optimizer.state_dict()`.")
        )
        problem = f"is a {type(state_dict).__name__}"
        if isinstance(state_dict, Mapping):
            problem = f"has the keys {sorted(map(str, state_dict))[:8]}"
        raise TypeError(
            f"{name}: state_dict {problem}, expected the keys 'state' and "
            f"'param_groups'. {advice}"
        )
    memory = {
        int(k) if isinstance(k, str) and k.isdigit() else k: x
        for k, x in state_dict["state"].items()
    }
    return list(state_dict["param_groups"]), memory


def _items(x: object) -> list[tuple[Any, Any]]:
    return list(x.items()) if isinstance(x, Mapping) else []


def _keys(x: object) -> set[Any]:
    return set(x) if isinstance(x, Mapping) else set()


def _labels(group: Mapping[str, Any]) -> Sequence[str | None]:
    """Torch's names of the parameters of a group, where it has them."""
    keys = group["params"]
    texts = [
        key if isinstance(key, str) and not key.isdigit() else None for key in keys
    ]
    return group.get("param_names") or texts


def _paths(
    name: str,
    names: Names | None,
    rows: list[tuple[Any, str | None, Mapping[str, Any]]],
    paths: list[str],
) -> list[str | None]:
    """The path for each parameter of torch, in its order."""
    if names is None or not isinstance(names, Mapping):
        given: list[str | None] = [*paths] if names is None else [*names]
        if len(given) != len(rows):
            what = f"params has {len(given)} {'leaf' if len(given) == 1 else 'leaves'}"
            if names is not None:
                what = f"names has {len(given)} paths"
            raise ValueError(
                f"{name}: {what}, but the state dict has {len(rows)} parameters. Pass "
                "`names`: a path for each parameter in torch's order, or None for one "
                "without a leaf."
            )
    else:
        given = _looked_up(name, names, rows)
    for path in given:
        if path is not None and path not in paths:
            near = get_close_matches(str(path), paths, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"The paths are {paths}."
            raise ValueError(
                f"{name}: names has the path {path!r}, which is not a leaf of params. "
                f"{hint}"
            )
    return given


def _looked_up(
    name: str,
    names: Mapping[Any, str | None],
    rows: list[tuple[Any, str | None, Mapping[str, Any]]],
) -> list[str | None]:
    """The path of each parameter, by its name or index."""
    given: list[str | None] = []
    used: set[Any] = set()
    for k, (key, label, _) in enumerate(rows):
        match = [x for x in (label, key, k, str(k)) if x is not None and x in names]
        if not match:
            title = f"{key}" if label is None else f"{key} ({label!r})"
            anonymous = label is None and any(isinstance(x, str) for x in names)
            advice = (
                "This state dict has no names: give indices, or a list in torch's "
                "order, that of `model.named_parameters()`."
                if anonymous
                else f"Add it, {_EXAMPLE}; use None for one without a leaf."
            )
            raise ValueError(
                f"{name}: names has no path for torch's parameter {title}. {advice}"
            )
        given.append(names[match[0]])
        used.add(match[0])
    unused = [x for x in names if x not in used]
    if unused:
        raise ValueError(
            f"{name}: names has {unused[0]!r}, which is not a parameter of the state "
            f"dict. It has {[label or key for key, label, _ in rows]}."
        )
    return given


def _axes(
    name: str, transpose: Transpose | None, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The order of torch's axes in each leaf."""
    asked: dict[str, Sequence[int] | None] = {}
    if isinstance(transpose, str):
        asked = {transpose: None}
    elif isinstance(transpose, Mapping):
        asked = dict(transpose)
    elif transpose is not None:
        asked = dict.fromkeys(transpose)
    axes = {path: tuple(range(len(shape))) for path, shape in shapes.items()}
    for pattern, order in reversed(asked.items()):  # the first that matches decides
        mine = [pattern] if pattern in shapes else _matches(name, pattern, shapes)
        if not mine:
            raise ValueError(
                f"{name}: transpose has {pattern!r}, which matches no leaf. The paths "
                f"are {list(shapes)}."
            )
        for path in mine:
            axes[path] = _order(name, path, len(shapes[path]), order)
    return axes


def _matches(name: str, pattern: str, paths: Mapping[str, object]) -> list[str]:
    try:
        return [path for path in paths if re.search(pattern, path)]
    except re.error as error:
        raise ValueError(
            f"{name}: transpose has {pattern!r}, which is not a regular expression "
            f"({error})."
        ) from None


def _order(
    name: str, path: str, ndim: int, order: Sequence[int] | None
) -> tuple[int, ...]:
    if order is None:
        if ndim > 2:
            raise ValueError(
                f"{name}: transpose names {path!r}, which has {ndim} axes, so their "
                f"order must be given. {_conv(path)}"
            )
        return tuple(reversed(range(ndim)))
    if sorted(order) != list(range(ndim)):
        raise ValueError(
            f"{name}: transpose gives {path!r} the axes {tuple(order)}, expected the "
            f"numbers 0 to {ndim - 1} in some order."
        )
    return tuple(order)


def _conv(path: str) -> str:
    return (
        f"Pass `transpose={{{path!r}: axes}}`; for a convolution from torch's OIHW to "
        "HWIO, axes is (2, 3, 1, 0)."
    )


def _permuted(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(shape[k] for k in axes)


def _advice(slot: Slot, shape: tuple[int, ...]) -> str:
    """How to make a leaf and an array of torch fit."""
    if sorted(shape) == sorted(slot.shape) and len(shape) == 2:
        if slot.axes == (0, 1):
            return (
                "It fits transposed, as `torch.nn.Linear` stores (out, in): pass "
                f"`transpose=[{slot.path!r}]`, or a pattern for all such leaves."
            )
        return f"It fits without: leave {slot.path!r} out of `transpose`."
    if sorted(shape) == sorted(slot.shape) and 2 < len(shape) < 6:
        fits = [
            axes
            for axes in permutations(range(len(shape)))
            if _permuted(shape, axes) == slot.shape
        ]
        usual = (*range(2, len(shape)), 1, 0)  # OIHW to HWIO
        axes = usual if usual in fits else fits[0]
        return f"It fits transposed: pass `transpose={{{slot.path!r}: {axes}}}`."
    return (
        "Pass `names`, since the leaves are not in torch's order: a list of paths in "
        "that order, or a dict from torch's names or indices to paths."
    )
