"""Numbers that were Python's before they were put in a state.

`1 - 0.999` is `0.001` in Python. In float32 it is `0.00099998713`: one part in 80000
less. So an optimizer whose numbers wait in arrays, to be read and changed, would not
take the same steps as one that has them in its code. A known number does: as long as
nobody has changed it, what is computed of it alone is computed as Python would.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


class Known:
    """A number in an array, and what it was in Python.

    With Python's numbers and others of its kind it makes a number of its kind; where it
    meets an array, it is one.

    Args:
        was: the number in Python.
        now: the array, perhaps traced.
        same: whether `now` is still what `was` is in its dtype.
    """

    def __init__(self, was: Any, now: Any, same: Any):
        self.was, self.now, self.same = was, now, same

    def __jax_array__(self) -> Array:
        return jnp.where(self.same, self.was, self.now)

    def __neg__(self) -> "Known":
        return Known(-self.was, -self.now, self.same)


def _operation(f: Callable[[Any, Any], Any], swapped: bool) -> Callable[..., Any]:
    def operation(one: Known, other: Any) -> Any:
        if not isinstance(other, Known):
            if not isinstance(other, int | float):
                x = one.__jax_array__()
                return f(other, x) if swapped else f(x, other)
            other = Known(other, other, True)
        a, b = (other, one) if swapped else (one, other)
        now = f(a.now, b.now)
        try:
            return Known(f(a.was, b.was), now, a.same & b.same)
        except ArithmeticError:  # division by what was zero, and need not be now
            return now

    return operation


for _name in ("add", "sub", "mul", "truediv", "pow"):
    _f = getattr(operator, _name)
    setattr(Known, f"__{_name}__", _operation(_f, swapped=False))
    setattr(Known, f"__r{_name}__", _operation(_f, swapped=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _f = getattr(operator, _name)
    setattr(Known, f"__{_name}__", lambda x, y, f=_f: f(x.__jax_array__(), y))


_KNOWN: ContextVar[Mapping[int, Known]] = ContextVar(
    "_KNOWN", default=MappingProxyType({})
)


@contextmanager
def knowing(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[None]:
    """Within this, `number` knows what the arrays were.

    Args:
        was: by name, what they were; only floats count.
        now: by name, the arrays; a schedule may have said a number of Python.
    """
    found = {}
    for name, x in now.items():
        if isinstance(was.get(name), float):
            same = x == jnp.asarray(was[name], x.dtype)
            found[id(x)] = Known(was[name], weak(x), same)
    token = _KNOWN.set(found)
    try:
        yield
    finally:
        _KNOWN.reset(token)


def known(x: Array) -> Known | None:
    """What is known of an array, if anything is."""
    return _KNOWN.get().get(id(x))


def weak(x: Array) -> Array:
    """`x`, made to take the dtype of the arrays it meets, as a Python number does."""
    blank = 0 if jnp.issubdtype(x.dtype, jnp.integer) else 0.0
    # The only public way to a weakly typed array: fill one that is weak already.
    return jax.lax.full_like(jnp.asarray(blank), x)
