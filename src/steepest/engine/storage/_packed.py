"""Optimizers that store small leaves together in one vector."""

from dataclasses import replace
from typing import NamedTuple

import jax
from jax.core import Tracer
from jaxtyping import PyTree

from ... import check
from ...core import (
    AnyTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Recent,
    Rule,
    ShardedLeaf,
    Transformation,
    transformation,
    Updates,
)
from ...numerics import is_inexact
from ..leaves import Leaf, Leaves, Mask, restore, update_dtype
from ..run import Link, Plan, plan_of
from ..step import WrapperInfo
from ._layout import Layout, layout_of, Packed, unpack

SMALL = 65536  # elements: for smaller leaves the launch takes longest
_ENOUGH = 16  # leaves: with fewer, packing saves little
_LAYOUTS = 16  # cached plans: one for each way that params are packed


class Packing(NamedTuple):
    """Whether packing makes a step faster, and why."""

    pays: bool
    leaves: int  # the number of arrays
    small: int  # how many of them would be packed
    why: str  # a clause, such as "on a CPU ..."


def packing(params: Params, below: int = SMALL) -> Packing:
    """Whether packed params make a step faster on JAX's default device.

    Measured on an H200: a step of AdamW for the 148 leaves of GPT-2, in a call of its
    own, takes 0.98 ms packed and 2.02 ms unpacked. On a CPU packing does not pay: the
    slices cost as much as the leaves.

    Args:
        params: the params, or their shapes.
        below: leaves with fewer elements than this count as small.

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
        why = f"it has not been measured on a {backend}"
    elif small < _ENOUGH:
        why = f"only {small} of {len(arrays)} leaves have fewer than {below} elements"
    else:
        why = f"{small} of {len(arrays)} leaves have fewer than {below} elements"
    pays = backend == "gpu" and small >= _ENOUGH
    return Packing(pays, len(arrays), small, why)


@transformation
def packed(
    tx: AnyTransformation, below: int | None = None
) -> GradientTransformationExtraArgs:
    """Store the memory of small leaves in one vector for each dtype.

    The results are the same, except that a norm over all leaves is summed in another
    order, and XLA may round the last digit of a scalar differently. The state has fewer
    arrays, not fewer bytes. `unpack` turns it into the state of `tx` itself, and
    `repack` undoes that.

    It saves most if the params are packed too:

        tx = packed(adamw(1e-3))
        params = pack(tx, params)
        state = tx.init(params)
        grads = jax.grad(lambda p: loss(unpack(p)))(params)     # packed as well
        updates, state = tx.update(grads, state, params)
        params = apply_updates(params, updates)

    On a mesh, the leaves that are packed must be replicated; a sharded one is an error.
    Inside `jit`, only a mesh with explicit axes tells which leaves are sharded.

    Inside `jax.shard_map`, a replicated leaf may share a vector with shards of other
    leaves. A norm then counts it once for each device, so leave replicated leaves out.

    Args:
        tx: an elementwise transformation, which excludes those that need whole leaves,
            such as LAMB and Muon.
        below: leaves with fewer elements than this are packed. The default is 65536 if
            `packing` says that packing pays; otherwise nothing is packed.
    """
    return _Packer(tx, below).pair


def pack(tx: AnyTransformation, params: Params) -> Params:
    """Pack params for `tx`, which `packed` made. In the loss, `unpack` them.

    If `tx` packs nothing, the params are returned unchanged, so that the same program
    runs on every device.

    Args:
        tx: made by `packed`. Leaves that it treats differently, such as those without
            weight decay, are stored in different vectors.
        params: the params.
    """
    owner = getattr(getattr(getattr(tx, "call", None), "made", None), "init", None)
    owner = getattr(owner, "__self__", None)
    if not isinstance(owner, _Packer):
        raise TypeError(
            f"pack: tx is a {type(tx).__name__}, expected one made by `packed`, such "
            "as `packed(adamw(1e-3))`."
        )
    return owner.pack(params)


class _Packer:
    """What `packed` makes. For each layout it has a plan of `tx` for the vectors."""

    def __init__(self, tx: AnyTransformation, below: int | None):
        if below is not None:
            (below,) = check.period("packed", below=below)
        self._tx = tx
        self._plan = plan_of("packed", "tx", tx)
        self._below = below
        self._plans: Recent[Plan] = Recent(_LAYOUTS)
        for link in self._plan.links:
            if isinstance(getattr(link.body, "info", None), WrapperInfo):
                raise ValueError(
                    f"packed: {link.name} is a wrapper, expected an elementwise "
                    "transformation. Pack what is inside the wrapper, for example "
                    "`apply_if_finite(packed(adam(1e-3)), 5)`."
                )
            if not isinstance(link.body, Rule) or not link.body.is_elementwise:
                raise ValueError(
                    f"packed: {link.name} may need whole leaves, expected an "
                    "elementwise transformation. Pack only the others: "
                    "`chain(clip_by_block_rms(1.0), packed(adam(1e-3)))`."
                )

    @property
    def pair(self) -> GradientTransformationExtraArgs:
        """The transformation. `pack` finds this object in it."""
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
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        """One step. The updates are packed if the gradients are."""
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
        """The packed params; the params themselves if there is nothing to pack."""
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
        for k in (k for row in layout.vectors for k in row):
            _check_whole(leaves, k)
        return layout.pack("packed", params, "params") if layout.vectors else params

    def _plan_over(self, layout: Layout) -> Plan:
        """The plan for a layout: each link selects the vectors of its leaves."""

        def plan() -> Plan:
            links = [_over(layout, link) for link in self._plan.links]
            return replace(self._plan, links=tuple(links))

        return self._plans(layout, plan)


def _over(layout: Layout, link: Link) -> Link:
    """A link whose mask is for vectors. It selects all leaves of a vector, or none."""
    if not link.masks:
        return link
    on = link.view(layout.leaves).on
    vectors = tuple(on[row[0]] for row in layout.vectors)
    mask = Packed(vectors, tuple(on[k] for k in layout.whole), layout)
    return replace(link, masks=(Mask(link.masks[0].name, mask),))


def _as_each_alone(u: Packed, updates: Updates, params: Params | None) -> Updates:
    """Unpack the updates `u`, each to the dtype it would have without packing."""
    leaves, arrays = Leaves(updates), Leaves(unpack(u)).arrays
    ps = [None] * len(arrays) if params is None else Leaves(unpack(params)).arrays
    rows = zip(arrays, leaves.arrays, ps, strict=True)
    return leaves.like(
        [x if x is None else restore(x, update_dtype(g, p)) for x, g, p in rows]
    )


def _layout_in(tree: PyTree) -> Layout | None:
    """The layout of everything packed in `tree`; `None` if nothing is packed."""
    parts = jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, Packed))
    layouts = [x.layout for x in parts if isinstance(x, Packed)]
    if any(layout != layouts[0] for layout in layouts):
        raise ValueError(
            "packed: the updates, the params and the state are not all packed in the "
            "same way. Pack the params once, `params = pack(tx, params)`, and make the "
            "state with `tx.init(params)`."
        )
    return layouts[0] if layouts else None


def _may_be_packed(x: Leaf | jax.ShapeDtypeStruct | None, below: int) -> bool:
    """Whether a leaf is small and has a floating dtype."""
    return x is not None and x.size < below and is_inexact(x)


def _check_whole(leaves: Leaves, k: int) -> None:
    """Raise an error if leaf `k` is sharded: to pack it would gather it."""
    x = leaves.arrays[k]
    if isinstance(x, Tracer):  # its sharding is known on explicit axes only
        axes = [axis for axis in jax.typeof(x).sharding.spec if axis is not None]
    else:
        where = getattr(x, "sharding", None)
        whole = where is None or where.is_fully_replicated
        axes = [] if whole else [getattr(where, "spec", where)]
    if axes:
        raise ShardedLeaf(
            f"packed: leaf {leaves.path(k)} of shape {x.shape} is sharded over "
            f"{axes[0]}, and packing would gather it in every step. Replicate small "
            "leaves, or use `packed` for the others only: `partition({'small': "
            "packed(tx), 'sharded': tx}, labels)`."
        )
