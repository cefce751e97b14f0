"""The links of a transformation, and the leaves that each is applied to."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..core import AnyTransformation, OptState, Params, Rule
from ..engine import Leaves, Plan, plan_of, wrapper_info
from ._torch_kinds import MEMORY
from ._torch_meaning import factor, Row
from ._torch_slots import read


class Parts:
    """The links of `tx`, and the leaves that each of them is applied to."""

    def __init__(self, name: str, tx: AnyTransformation, params: Params):
        self.name = name
        self.plan: Plan = plan_of(name, "tx", tx)
        self.leaves = Leaves(params, "params")
        self.bodies = [link.body for link in self.plan.links]
        self.on = [link.view(self.leaves).on for link in self.plan.links]

    def rules(self, leaf: int) -> list[Rule]:
        """The rules that are applied to a leaf, in order."""
        pairs = zip(self.bodies, self.on, strict=True)
        return [body for body, on in pairs if on[leaf] and isinstance(body, Rule)]

    def check(self, states: Sequence[OptState]) -> None:
        """Refuse wrappers with memory, whose inside is not visible here."""
        for link, state in zip(self.plan.links, states, strict=True):
            if isinstance(link.body, Rule) or not jax.tree.leaves(state):
                continue
            info = wrapper_info(link.body)
            put = ""
            if info and info.at:
                put = f", and put the result into the field `{info.at}`"
            raise TypeError(
                f"{self.name}: tx contains {link.name}, whose state torch does not "
                "have. Expected a chain, mask or partition of optimizers. Convert the "
                f"state of the optimizer inside it{put}."
            )

    def filled(
        self, k: int, rows: Mapping[int, Row], part: Any, count: int | None
    ) -> OptState:
        """The state of link `k` with torch's memory, from its initial state."""
        rule = self.bodies[k]
        assert isinstance(rule, Rule)
        mine = [leaf for leaf, on in enumerate(self.on[k]) if on]
        self._check_leaves(rule, mine, rows)
        new: dict[str, Any] = {}
        if "count" in rule.shared and mine:
            new["count"] = _like(self._count(rule, mine, rows, count), part.count)
        for field in rule.memory:
            tree = Leaves(getattr(part, field))
            arrays = [
                x
                if x is None
                else _like(self._read(rule, rows[leaf], field, x.shape), x)
                for leaf, x in zip(mine, tree.arrays, strict=True)
            ]
            new[field] = tree.like(arrays)
        return part._replace(**new)

    def _check_leaves(
        self, rule: Rule, leaves: list[int], rows: Mapping[int, Row]
    ) -> None:
        """Check that torch has the leaves that a rule keeps memory for."""
        for leaf in leaves:
            missing = self.leaves.arrays[leaf] is not None and leaf not in rows
            if missing and rule.memory:
                raise ValueError(
                    f"{self.name}: tx applies {rule.name} to leaf "
                    f"{self.leaves.path(leaf)}, which is not in the state dict. Add it "
                    "to `names`, pass the state dict of its optimizer too, or mask it "
                    "in tx."
                )

    def _read(
        self, rule: Rule, row: Row, field: str, shape: tuple[int, ...]
    ) -> np.ndarray:
        memory = converted(self.name, row, [rule], field)
        return np.zeros(shape) if memory is None else memory

    def _count(
        self, rule: Rule, leaves: list[int], rows: Mapping[int, Row], count: int | None
    ) -> np.ndarray:
        """The number of steps that these leaves have taken."""
        mine = [rows[leaf] for leaf in leaves if leaf in rows]
        # A schedule counts the steps of the run; a param without gradients has none.
        steps = {row.slot.path: row.t for row in mine if row.t or rule.memory}
        known = {t for t in steps.values() if t is not None}
        if len(known) > 1:
            text = ", ".join(f"{path!r}: {t}" for path, t in list(steps.items())[:6])
            raise ValueError(
                f"{self.name}: {rule.name} has one count, but torch's parameters have "
                f"taken different numbers of steps ({text}). Give those with the same "
                "number a transformation of their own (`steepest.partition`), and "
                "freeze those that have no gradients."
            )
        if not known and any(row.t == 0 for row in mine):
            known = {0}
        if not known and count is None:
            raise ValueError(
                f"{self.name}: {rule.name} counts the steps, which torch's "
                f"{mine[0].kind if mine else 'SGD'} does not store. Pass `count`, the "
                "number of steps taken."
            )
        if known and count is not None and count not in known:
            raise ValueError(
                f"{self.name}: count is {count}, but torch's parameters have taken "
                f"{min(known)} steps. Leave `count` out."
            )
        return np.asarray(min(known) if known else count)

    def steps(self, leaf: int, states: Sequence[OptState]) -> int | None:
        """The number of steps that a leaf has taken, if a link counts them."""
        counts = [
            int(state.count)
            for body, on, state in zip(self.bodies, self.on, states, strict=True)
            if on[leaf] and isinstance(body, Rule) and "count" in body.shared
        ]
        return counts[0] if counts else None

    def array(
        self, leaf: int, field: str, states: Sequence[OptState]
    ) -> np.ndarray | None:
        """The array that the first link with this field keeps for a leaf."""
        for body, on, state in zip(self.bodies, self.on, states, strict=True):
            if isinstance(body, Rule) and field in body.memory and on[leaf]:
                return np.asarray(Leaves(getattr(state, field)).arrays[sum(on[:leaf])])
        return None


def converted(
    name: str, row: Row, rules: Sequence[Rule], field: str
) -> np.ndarray | None:
    """Torch's memory for a field of these rules, as ours; `None` if it is new."""
    for rule in rules:
        key = MEMORY[row.kind].get(rule.name, {}).get(field)
        if key is not None and row.slot.memory.get(key) is not None:
            scale = factor(name, row, rule)
            x = read(name, row.slot, key)
            return x if scale == 1 else x * scale
    return None


def _like(x: np.ndarray, old: Any) -> Array:
    """`x` with the dtype of an array, and on its devices."""
    new = jnp.asarray(np.asarray(x).astype(old.dtype))
    sharding = getattr(old, "sharding", None)
    one = sharding is None or isinstance(sharding, jax.sharding.SingleDeviceSharding)
    return new if one else jax.device_put(new, sharding)
