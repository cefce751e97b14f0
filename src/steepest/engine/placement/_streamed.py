"""A step whose state is in host memory, with a few arrays of it on the device at once.

XLA may copy arrays from the host as early as it likes, and on a GPU it copies all of
them before it computes: the whole state is on the device again (JAX 0.11.2). So the
step is traced and evaluated equation by equation. An array is copied to the device
before the first equation that uses it, and its new value is copied back as soon as it
is computed. If too many bytes are on the device, the next copy waits for earlier
results: an optimization barrier makes it depend on them.

This works because a pass computes leaf after leaf. Where all leaves meet, as in a stack
of matrices, all their arrays are on the device.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
from jax.extend.core import ClosedJaxpr, Literal, Var
from jax.extend.core.primitives import jit_p
from jaxtyping import Array, ArrayLike, PyTree

from ...core import evaluated, OptState

T = TypeVar("T")
Copy = Callable[[Any], Any]

# Bytes on the device before copies wait: enough for copies in both directions while a
# leaf is computed. The arrays of one leaf do not wait for each other.
WINDOW = 256 << 20


def streamed(
    step: Callable[[OptState], tuple[PyTree, OptState]],
    state: OptState,
    is_moved: Callable[[OptState], PyTree],
    to_device: Copy,
    to_host: Copy,
) -> tuple[PyTree, OptState]:
    """`step(state)`, where some arrays of both states are in host memory.

    Args:
        step: a function of a state on the device, to be traced.
        state: the state, traced.
        is_moved: for each array of a state, whether it is in host memory.
        to_device: copies an array to the device.
        to_host: copies an array to the host.
    """
    xs, treedef = jax.tree.flatten(state)
    moved = jax.tree.leaves(is_moved(state))
    # These copies are never used: they tell the types on the device.
    there = [to_device(x) if far else x for x, far in zip(xs, moved, strict=True)]
    shapes: Any
    closed, shapes = jax.make_jaxpr(step, return_shape=True)(treedef.unflatten(there))
    out, new = shapes
    leaving = [False] * len(jax.tree.leaves(out)) + jax.tree.leaves(is_moved(new))
    window = _Window(to_device, to_host)
    args = [_Far(x, window) if far else x for x, far in zip(xs, moved, strict=True)]
    indices = [(k,) if leaves else () for k, leaves in enumerate(leaving)]
    results = _run(closed, args, indices, window)
    for k, (x, leaves) in enumerate(zip(results, leaving, strict=True)):
        if not leaves:
            results[k] = _near(x)
        elif k in window.left:
            results[k] = window.left[k]
        else:  # it is an input, or a number
            results[k] = x.host if isinstance(x, _Far) else to_host(x)
    return jax.tree.structure(shapes).unflatten(results)


class _Window:
    """What is on the device."""

    def __init__(self, to_device: Copy, to_host: Copy):
        self.left: dict[int, Array] = {}  # results in host memory, by their index
        self._to_device, self._to_host = to_device, to_host
        self._bytes = 0
        self._done: deque[int] = deque()  # results that no copy has waited for
        self._before: list[int] = []  # results that the next copy waits for

    def enter(self, x: Array) -> Array:
        """An array of the host, copied after enough results have left the device."""
        size = _bytes(x)
        while self._done and self._bytes + size > WINDOW:
            self._before.append(self._done.popleft())
            self._bytes -= _bytes(self.left[self._before[-1]])
        if self._before:
            # The results are used from here on, so XLA keeps the dependency.
            ks = self._before
            after = jax.lax.optimization_barrier((x, *(self.left[k] for k in ks)))
            x = after[0]
            self.left.update(zip(ks, after[1:], strict=True))
            self._before = ks[-1:]  # it depends on all the others now
        self._bytes += size
        return self._to_device(x)

    def leave(self, k: int, x: ArrayLike) -> None:
        """Copy result `k` to the host."""
        self.left[k] = self._to_host(x)
        self._done.append(k)


class _Far:
    """An array in host memory, which is copied to the device when it is used."""

    def __init__(self, host: Array, window: _Window):
        self.host, self._window = host, window
        self._near: Array | None = None

    def near(self) -> Array:
        if self._near is None:
            self._near = self._window.enter(self.host)
        return self._near


def _run(
    closed: ClosedJaxpr,
    args: Sequence[Any],
    indices: Sequence[Sequence[int]],
    window: _Window,
) -> list[Any]:
    """The results of a traced function.

    Args:
        closed: the function. Jitted functions inside it are inlined if they use arrays
            in host memory.
        args: arrays; `_Far` in host memory.
        indices: for each result, its indices among all results that go to host memory.
        window: what is on the device.
    """
    jaxpr = closed.jaxpr
    known = dict(
        zip((*jaxpr.constvars, *jaxpr.invars), (*closed.consts, *args), strict=True)
    )
    read = lambda v: v.val if isinstance(v, Literal) else known[v]
    leaving: dict[Var, tuple[int, ...]] = {}  # a variable may be several results
    for v, ks in zip(jaxpr.outvars, indices, strict=True):
        if not isinstance(v, Literal):
            leaving[v] = (*leaving.get(v, ()), *ks)
    for eqn in jaxpr.eqns:
        inputs = [read(v) for v in eqn.invars]
        mine = [leaving.get(v, ()) for v in eqn.outvars]
        if eqn.primitive is jit_p and any(isinstance(x, _Far) for x in inputs):
            results = _run(eqn.params["jaxpr"], inputs, mine, window)
        else:
            results = evaluated(eqn, [_near(x) for x in inputs])
        for ks, x in zip(mine, results, strict=True):
            for k in ks:
                if k not in window.left and not isinstance(x, _Far):
                    window.leave(k, x)
        known.update(zip(eqn.outvars, results, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _near(x: T | _Far) -> T | Array:
    """An array on the device."""
    return x.near() if isinstance(x, _Far) else x


def _bytes(x: ArrayLike) -> int:
    kind = jax.typeof(x)
    return kind.size * kind.dtype.itemsize
