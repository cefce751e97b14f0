"""An optimizer for which small leaves lie together in one vector."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
from jax.core import Tracer

from ... import check
from ...core import (
    AnyTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Recent,
    Rule,
    Transformation,
    transformation,
    Updates,
)
from ...numerics import is_inexact
from ..leaves import Leaves, Mask, restore, update_dtype
from ..run import Link, Plan, plan_of
from ..step import WrapperInfo
from ._layout import Layout, layout_of, Packed, unpack

SMALL = 65536  # elements: a leaf smaller than that is done as soon as begun
_ENOUGH = 16  # leaves: with fewer there is little to win
_LAYOUTS = 16  # plans kept: one for each way that the params are packed


class Packing(NamedTuple):
    """Whether it pays to pack, and why."""

    pays: bool
    leaves: int  # how many arrays there are
    small: int  # how many of them would be packed
    why: str


def packing(params: Params, below: int = SMALL) -> Packing:
    """Whether packed params make a step faster, on the device JAX uses by default.

    Measured on an H200: AdamW's step over the 148 leaves of GPT-2, called by itself,
    takes 0.98 ms packed and 2.02 ms as it is. On a CPU it does not pay, for there the
    slices cost as much as the leaves did.

    Args:
        params: the params, or their shapes.
        below: how many elements a leaf must at least have to stay by itself.

    >>> import jax.numpy as jnp
    >>> print(packing([jnp.ones(3)] * 100).why)
    on a CPU a slice of a vector costs as much as an array of its own
    """
    (below,) = check.period("packing", below=below)
    leaves = Leaves(params, "params")
    leaves.check("packing")
    arrays = [x for x in leaves.arrays if x is not None]
    small = sum(x.size < below for x in arrays)
    backend = jax.default_backend()
    if backend == "cpu":
        why = "on a CPU a slice of a vector costs as much as an array of its own"
    elif backend != "gpu":
        why = f"nobody has measured it on a {backend}"
    elif small < _ENOUGH:
        why = f"only {small} of {len(arrays)} leaves have less than {below} elements"
    else:
        why = f"{small} of {len(arrays)} leaves have less than {below} elements"
    pays = backend == "gpu" and small >= _ENOUGH
    return Packing(pays, len(arrays), small, why)


@transformation
def packed(
    tx: AnyTransformation, below: int | None = None
) -> GradientTransformationExtraArgs:
    """`tx`, with the memory of small leaves in one vector for each dtype.

    The numbers are the same; only a norm over all leaves is summed in another order,
    and XLA may round the last digit of a scalar differently. The state has fewer
    arrays, not fewer bytes: `unpack` shows it as it would be without, and `repack`
    turns that round.

    Most is won where the params are packed too:

        tx = packed(adamw(1e-3))
        params = pack(tx, params)
        state = tx.init(params)
        grads = jax.grad(lambda p: loss(unpack(p)))(params)     # packed as well
        updates, state = tx.update(grads, state, params)
        params = apply_updates(params, updates)

    Inside `jax.shard_map` a leaf that every device has whole lies in one vector with
    parts of others, and counts once for each device in a norm: leave such leaves out.

    Args:
        tx: a transformation that does the same to every number: not one that looks at
            whole leaves, as LAMB and Muon do.
        below: how many elements a leaf must at least have to stay by itself. By default
            as `packing` says: 65536 where it pays, and nothing is packed where it does
            not.
    """
    return _Packer(tx, below).pair


def pack(tx: AnyTransformation, params: Params) -> Params:
    """Params packed for `tx`, which `packed` has made; in the loss, `unpack` them.

    Where nothing is packed they stay as they are, so that the same program runs on
    every device.

    Args:
        tx: made by `packed`. Leaves that it treats differently, such as those without
            weight decay, lie in different vectors.
        params: the params.
    """
    owner = getattr(getattr(getattr(tx, "call", None), "made", None), "init", None)
    owner = getattr(owner, "__self__", None)
    if not isinstance(owner, _Packer):
        raise TypeError(
            f"pack: tx is a {type(tx).__name__}, expected one that `packed` made: `tx "
            "= packed(adamw(1e-3))`."
        )
    return owner.pack(params)


class _Packer:
    """What `packed` makes: for each layout, the plan of `tx` over its vectors."""

    def __init__(self, tx: AnyTransformation, below: int | None):
        if below is not None:
            (below,) = check.period("packed", below=below)
        self._tx = tx
        self._plan = plan_of("packed", "tx", tx)
        self._below = below
        self._plans: Recent[Plan] = Recent(_LAYOUTS)
        for link in self._plan.links:
            if not isinstance(link.body, Rule) or not link.body.is_elementwise:
                raise ValueError(
                    f"packed: {link.name} may look at whole leaves, expected a "
                    "transformation that does the same to every number. Pack the "
                    "others: `chain(clip_by_block_rms(1.0), packed(adam(1e-3)))`."
                )

    @property
    def pair(self) -> GradientTransformationExtraArgs:
        """The transformation; `pack` finds its maker there again."""
        info = WrapperInfo("packed", self._tx, "")
        return Transformation(self.init, self.update, info)

    def init(self, params: Params) -> OptState:
        """The state before the first step."""
        params = self.pack(params)
        if not isinstance(params, Packed):
            return self._plan.init(params)
        return self._plan_over(params.layout).init(params)

    def update(
        self,
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        """One step; the updates come packed if the gradients did."""
        layout = _layout_in((updates, params, state))
        if layout is None:
            return self._plan.update(updates, state, params, **extra_args)
        g = layout.pack("packed", updates, "updates")
        p = None if params is None else layout.pack("packed", params, "params")
        u, state = self._plan_over(layout).update(g, state, p, **extra_args)
        if isinstance(updates, Packed):
            return u, state
        return _as_each_alone(u, updates, params), state

    def pack(self, params: Params) -> Params:
        """The params packed, or as they are, if nothing in them is to be."""
        if isinstance(params, Packed):
            return params
        below = self._below
        if below is None:
            below = SMALL if packing(params).pays else 0
        leaves = Leaves(params, "params")
        leaves.check("packed")
        views = [link.view(leaves).on for link in self._plan.links]
        kinds = [
            (x.dtype, *(on[k] for on in views)) if _may_be_packed(x, below) else None
            for k, x in enumerate(leaves.arrays)
        ]
        layout = layout_of(leaves, kinds)
        return layout.pack("packed", params, "params") if layout.vectors else params

    def _plan_over(self, layout: Layout) -> Plan:
        """The same links, seeing the vectors in which the leaves lie that they saw."""

        def plan() -> Plan:
            links = [_over(layout, link) for link in self._plan.links]
            return replace(self._plan, links=tuple(links))

        return self._plans(layout, plan)


def _over(layout: Layout, link: Link) -> Link:
    """A link whose masks speak of vectors: in each, all leaves are seen or none."""
    if not link.masks:
        return link
    on = link.view(layout.leaves).on
    vectors = tuple(on[row[0]] for row in layout.vectors)
    mask = Packed(vectors, tuple(on[k] for k in layout.whole), layout)
    return replace(link, masks=(Mask(link.masks[0].who, mask),))


def _as_each_alone(u: Packed, updates: Updates, params: Params | None) -> Updates:
    """The updates as a tree, each in the dtype it would have had without packing."""
    leaves, found = Leaves(updates), Leaves(unpack(u)).arrays
    ps = [None] * len(found) if params is None else Leaves(unpack(params)).arrays
    rows = zip(found, leaves.arrays, ps, strict=True)
    return leaves.like(
        [x if x is None else restore(x, update_dtype(g, p)) for x, g, p in rows]
    )


def _layout_in(tree: Any) -> Layout | None:
    """How what comes into a step is packed."""
    found = jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, Packed))
    layouts = [x.layout for x in found if isinstance(x, Packed)]
    if any(layout != layouts[0] for layout in layouts):
        raise ValueError(
            "packed: the updates, the params and the state are not all packed in the "
            "same way. Pack the params once, `pack(tx, params)`, and make the state of "
            "them."
        )
    return layouts[0] if layouts else None


def _may_be_packed(x: Any, below: int) -> bool:
    """Whether a leaf is small, of floating point, and in one place."""
    if x is None or x.size >= below or not is_inexact(x):
        return False
    where = getattr(x, "sharding", None)
    alone = where is None or len(where.device_set) == 1
    return alone or isinstance(x, Tracer)
