"""Convert the state of a run to and from `torch.optim`. torch is not imported."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ..core import AnyTransformation, as_inner, OptState, Params, Rule, unusual
from ..engine import decoded, encoded_like
from ..tree import first_difference, key_paths
from ._torch_kinds import (
    blank_group,
    differences,
    find,
    kind_of,
    kind_of_rules,
    MEMORY,
    now,
    numbers_of_group,
    numbers_of_rules,
    WITHOUT_STEP,
)
from ._torch_meaning import check_kind, check_memory, eps_effects, factor, Row
from ._torch_parts import converted, Parts
from ._torch_slots import as_numpy, by_leaf, Names, Slot, slots, Transpose, written

# Where torch adds eps in another place.
_SQUARES = {"Adagrad": "sum_of_squares", "RAdam": "nu"}


def from_torch(
    state_dict: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    params: Params,
    tx: AnyTransformation,
    *,
    names: Names | Sequence[Names] | None = None,
    transpose: Transpose | None = None,
    count: int | None = None,
) -> OptState:
    """Convert the state dict of a torch optimizer to a state of `tx`.

    For SGD, Adam, AdamW, NAdam, RAdam, RMSprop, Adagrad and Muon. The result holds
    torch's memory and number of steps. The hyperparameters are those of `tx`: if the
    param groups have others, a warning names both. What torch computes in another way
    is converted exactly or refused.

    Args:
        state_dict: `optimizer.state_dict()`, with tensors, NumPy arrays or lists of
            numbers; or a list of them, if several optimizers share the params.
        params: the params, with the values from torch or any others.
        tx: the transformation to go on with: a chain or partition of steepest.
        names: which leaf each parameter of torch is: a list of paths in torch's order
            (group after group), such as `"encoder/0/kernel"`, or a dict from torch's
            names or indices to paths. `None` instead of a path leaves a parameter out.
            By default torch's order is that of `jax.tree.leaves(params)`. For several
            state dicts, one of these for each.
        transpose: the leaves whose axes are not in torch's order: a regular expression
            for the paths of matrices that are transposed, or a list of them; or a dict
            from those to the order of torch's axes in the leaf, such as
            `{"conv": (2, 3, 1, 0)}`. A square matrix fits both ways and is only
            transposed if this says so.
        count: the number of steps taken, for SGD and Muon, where torch does not store
            it; needed only if `tx` has a schedule.

    >>> import jax.numpy as jnp, steepest
    >>> buffer = {"momentum_buffer": [3.0, 4.0]}
    >>> group = dict(lr=0.1, momentum=0.9, dampening=0, weight_decay=0, nesterov=False)
    >>> torch_state = {"state": {0: buffer}, "param_groups": [{**group, "params": [0]}]}
    >>> tx = steepest.sgd(0.1, momentum=0.9)
    >>> state = steepest.from_torch(torch_state, {"w": jnp.zeros(2)}, tx)
    >>> state[0].trace["w"].tolist()
    [3.0, 4.0]
    """
    name = "from_torch"
    several = isinstance(state_dict, Sequence) and not isinstance(state_dict, str)
    dicts: list[Any] = list(state_dict) if several else [state_dict]
    if several and (names is None or len(names) != len(dicts)):
        has = "is None" if names is None else f"has {len(names)} elements"
        raise ValueError(
            f"{name}: got {len(dicts)} state dicts, but names {has}, expected a list "
            "or a dict of paths for each."
        )
    given: list[Any] = list(names) if several and names is not None else [names]
    all_slots = [
        slot
        for one, its in zip(dicts, given, strict=True)
        for slot in slots(name, one, params, its, transpose)
    ]
    parts = Parts(name, tx, params)
    initial = as_inner(name, "tx", tx).init(params)
    old = parts.plan.split(decoded(initial))
    parts.check(old)
    rows = {k: _row(name, parts, slot) for k, slot in by_leaf(name, all_slots).items()}
    for row in rows.values():
        check_kind(name, row)
        check_memory(name, row)
    new = [
        parts.filled(k, rows, part, count) if isinstance(rule, Rule) else part
        for k, (rule, part) in enumerate(zip(parts.bodies, old, strict=True))
    ]
    _warn(name, rows, count, lambda row, field: converted(name, row, row.rules, field))
    return encoded_like(initial, parts.plan.join(new))


def to_torch(
    state: OptState,
    params: Params,
    tx: AnyTransformation,
    *,
    like: Mapping[str, Any] | None = None,
    names: Names | None = None,
    transpose: Transpose | None = None,
    count: int | None = None,
    tensor: Callable[[np.ndarray], Any] | None = None,
) -> dict[str, Any]:
    """Convert a state of `tx` to a state dict of torch: the inverse of `from_torch`.

    Pass `tensor=torch.from_numpy` for `optimizer.load_state_dict`, which replaces the
    hyperparameters of the optimizer too: they are those of `tx`, or of `like`.

    Args:
        state: the state of `tx`.
        params: the params.
        tx: a chain or partition of steepest. If its groups need several optimizers of
            torch, as `muon` does, convert each with its own `names`.
        like: the state dict of the torch optimizer to load the result into; needed if
            it has several param groups or numbers that `tx` does not have. By default
            one group with the numbers of `tx`.
        names: a list of paths in torch's order (group after group), or a dict from
            torch's names or indices to paths. The leaves that it leaves out are not
            converted. By default torch's order is that of `jax.tree.leaves(params)`.
        transpose: the leaves whose axes are not in torch's order: a regular expression
            for the paths of matrices that are transposed, or a list of them; or a dict
            from those to the order of torch's axes in the leaf.
        count: the number of steps taken, if `tx` keeps no count; by default 0. torch
            stores it for RMSprop and Adagrad, but does not need it.
        tensor: converts every array, such as `torch.from_numpy`; by default the arrays
            stay NumPy's.

    >>> import jax.numpy as jnp, steepest
    >>> params = {"w": jnp.ones(2)}
    >>> tx = steepest.adamw(1e-3)
    >>> torch_state = steepest.to_torch(tx.init(params), params, tx)
    >>> sorted(torch_state["state"][0])
    ['exp_avg', 'exp_avg_sq', 'step']
    >>> torch_state["param_groups"][0]["betas"]
    (0.9, 0.999)
    """
    name = "to_torch"
    parts = Parts(name, tx, params)
    _check_state(name, state, jax.eval_shape(as_inner(name, "tx", tx).init, params))
    old = parts.plan.split(decoded(state))
    parts.check(old)
    if like is None:
        like, names = _blank(name, parts, old, names, count)
    rows = {}
    all_slots = slots(name, {**like, "state": {}}, params, names, transpose)
    for slot in by_leaf(name, all_slots).values():
        row = _row(name, parts, slot)
        steps = parts.steps(slot.leaf, old)
        t = count if steps is None else steps
        rows[slot.leaf] = row._replace(t=t)
        check_kind(name, rows[slot.leaf])
    array = lambda row, field: parts.array(row.slot.leaf, field, old)
    convert = tensor or (lambda x: x)
    memory = {
        row.slot.key: {k: convert(x) for k, x in _memory(name, row, array).items()}
        for row in rows.values()
    }
    _warn(name, rows, count, array)
    groups = [
        {**group, "params": list(group["params"])} for group in like["param_groups"]
    ]
    return {"state": {k: x for k, x in memory.items() if x}, "param_groups": groups}


def _check_state(name: str, state: OptState, initial: OptState) -> None:
    """Check that a state has the structure and the shapes of an initial one."""
    advice = "Pass the state of this tx for these params."
    if jax.tree.structure(state) != jax.tree.structure(initial):
        both = ("state", "state of tx")
        difference = first_difference(state, initial, both)
        raise ValueError(f"{name}: {difference}. {advice}")
    rows = jax.tree_util.tree_leaves_with_path(state)
    for (path, x), y in zip(rows, jax.tree.leaves(initial), strict=True):
        if np.shape(x) != y.shape:
            raise ValueError(
                f"{name}: leaf {jax.tree_util.keystr(path)} of the state has shape "
                f"{np.shape(x)}, expected {y.shape}. {advice}"
            )


def _row(name: str, parts: Parts, slot: Slot) -> Row:
    kind = kind_of(name, slot.group, slot.memory)
    step = slot.memory.get("step")
    t = None if kind in WITHOUT_STEP else 0
    if step is not None:
        t = int(as_numpy(name, f"step of parameter {slot.title}", step))
    return Row(slot, kind, parts.rules(slot.leaf), t)


def _memory(
    name: str, row: Row, array: Callable[[Row, str], np.ndarray | None]
) -> dict[str, np.ndarray]:
    """What torch keeps for a parameter."""
    memory: dict[str, np.ndarray] = {}
    if row.kind not in WITHOUT_STEP:
        memory["step"] = np.array(row.t or 0, np.float32)
    core = find(row.rules, "scale_by_adam")
    if row.kind == "NAdam" and core is not None:
        b1 = now(core.numbers["b1"], row.t)
        memory["mu_product"] = np.array(b1 ** (row.t or 0), np.float32)
    for rule in row.remembering:
        for field, key in MEMORY[row.kind][rule.name].items():
            x, scale = array(row, field), factor(name, row, rule)
            if x is not None:
                memory[key] = written(
                    row.slot, x if scale == 1 else x / x.dtype.type(scale)
                )
    return memory


def _blank(
    name: str,
    parts: Parts,
    states: Sequence[OptState],
    names: Names | None,
    count: int | None,
) -> tuple[dict[str, Any], Names]:
    """The state dict of an optimizer with one group, and the path of each parameter."""
    here = [k for k, p in enumerate(parts.leaves.arrays) if p is not None]
    leaves = dict(zip(key_paths(parts.leaves.tree), here, strict=True))
    keys: list[Any] = list(names) if isinstance(names, Mapping) else []
    if keys and all(isinstance(key, int) for key in keys):
        keys = sorted(keys)
    paths = [names[k] for k in keys] if isinstance(names, Mapping) else names
    paths = list(leaves) if paths is None else list(paths)
    groups: dict[str, dict[str, Any]] = {}
    kinds: dict[str, str] = {}
    for path in paths:
        if path in leaves:
            rules, t = parts.rules(leaves[path]), parts.steps(leaves[path], states)
            kinds[path] = kind_of_rules(name, path, rules)
            values = numbers_of_rules(kinds[path], rules, count if t is None else t)
            groups[path] = blank_group(kinds[path], values)
    if len(set(kinds.values())) > 1:
        text = ", ".join(
            f"{kind} for {path!r}" for path, kind in list(kinds.items())[:6]
        )
        raise ValueError(
            f"{name}: tx needs several optimizers of torch ({text}). Convert each with "
            "its own `names`."
        )
    for path, group in groups.items():
        first, mine = next(iter(groups.items()))
        for key in mine:
            if group[key] != mine[key]:
                raise ValueError(
                    f"{name}: {key} is {mine[key]} for leaf {first!r} and {group[key]} "
                    f"for leaf {path!r}, so torch needs several param groups. Pass "
                    "`like=optimizer.state_dict()`."
                )
    group = dict(next(iter(groups.values()), {}), params=list(range(len(paths))))
    if keys and all(isinstance(key, str) for key in keys):
        group["param_names"] = keys
    return {"state": {}, "param_groups": [group]}, paths


def _warn(
    name: str,
    rows: Mapping[int, Row],
    count: int | None,
    array: Callable[[Row, str], np.ndarray | None],
) -> None:
    """Warn if the numbers of torch and `tx` differ."""
    clauses: dict[str, list[str]] = {}
    squares = []
    for row in rows.values():
        t = count if row.t is None else row.t
        ours = numbers_of_rules(row.kind, row.rules, t)
        for clause in differences(ours, numbers_of_group(row.kind, row.slot.group, t)):
            clauses.setdefault(clause, []).append(row.slot.path)
        if row.slot.group.get("maximize"):
            clauses.setdefault(
                "maximize is True in torch, so tx needs the negative gradients",
                [],
            ).append(row.slot.path)
        x = array(row, _SQUARES[row.kind]) if row.kind in _SQUARES else None
        if x is not None:
            squares.append((row, x))
    more = lambda paths: f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    texts = [
        f"{clause} (leaf {paths[0]!r}{more(paths)})"
        for clause, paths in clauses.items()
    ]
    texts += eps_effects(name, squares)
    if texts:
        other = "tx" if name == "from_torch" else "torch"
        unusual(f"{name}: {'; '.join(texts)}. The run goes on as {other} says.")
