"""A row of the zoo, and the trees on which the laws test it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import steepest

# Reasons why complex params do not agree with Optax.
OURS = "not in Optax"
SQUARED = "Optax averages g^2, which is not |g|^2"
PRODUCT = "Optax multiplies without conjugating"
REFUSED = "Optax refuses complex params"


@dataclass(frozen=True)
class Row:
    """A transformation and its properties."""

    maker: Callable[..., steepest.GradientTransformation]
    hyper: Mapping[str, float]  # its numbers, each of which may be traced
    options: Mapping[str, Any] = field(default_factory=dict)  # all other arguments
    variant: str = ""
    optimizer: bool = True  # ends with the learning rate, so it goes downhill
    scale_free: bool = False  # u(c g) = u(g), for c > 0
    linear: bool = False  # u(c g) = c u(g)
    elementwise: bool = True  # u(permuted g) = permuted u(g)
    rotates: bool = False  # u(Q g) = Q u(g)
    still: bool = True  # no update without a gradient
    complex: bool = True  # supports complex gradients
    # What complex params agree with: "optax"; "split", for real and imaginary parts
    # separately; or the reason why neither, and then updates are equivariant to phase.
    of_complex: str = "optax"
    partial: bool = False  # leaves some leaves unchanged
    sharded: bool = True  # its state looks like the params, and is sharded alike
    explicit: bool = True  # runs on meshes with explicit axes
    rounding: float = 1  # factor on the usual rounding errors
    constant: bool = False  # its updates do not depend on the gradient
    backwards: bool = True  # supports reverse-mode differentiation
    open: bool = True  # accepts unknown extra arguments
    per_leaf: bool = True  # the state of a leaf depends only on its gradient
    # A step consists of several gradients, and a missing one counts as zero: see
    # `laws/test_missing.py`.
    rounds: bool = False
    bounded: bool = True  # finite updates leave a finite state
    steep: Mapping[str, float] = field(
        default_factory=dict
    )  # hyperparameters for a steep valley
    confined: bool = False  # matrices keep their norm, and may not reach a minimum
    wants: tuple[str, ...] = ()  # which of value, grad, value_fn, obj_fn to pass

    random: bool = False  # stores a key; the laws see its integers

    @property
    def name(self) -> str:
        name = self.maker.__name__
        return f"{name}_{self.variant}" if self.variant else name

    @property
    def light(self) -> bool:
        """Whether only the quick laws test it: variants of optimizers of matrices.

        They take longest to compile, and most of their code is that of another row.
        """
        return bool(self.variant) and ".matrix." in self.maker.__module__

    def make(self, **hyper: Any) -> steepest.GradientTransformation:
        """The transformation, with the extra arguments it needs: see `fed`.

        Without `hyper` it is the same object for all laws, and they share programs.
        """
        return self._make(hyper) if hyper else self._usual

    @cached_property
    def _usual(self) -> steepest.GradientTransformation:
        return self._make({})

    def _make(self, hyper: Mapping[str, Any]) -> steepest.GradientTransformation:
        tx = self.maker(**{**self.hyper, **self.options, **hyper})
        if self.random:
            tx = with_bare_keys(tx)
        return fed(tx, self.wants) if self.wants else tx


def fed(
    tx: steepest.GradientTransformation, wants: tuple[str, ...]
) -> steepest.GradientTransformationExtraArgs:
    """`tx`, with the value of `potential` if no other value is passed."""

    def update(g: Any, state: Any, p: Any = None, **extra: Any) -> Any:
        known = {"grad": g, "value_fn": potential, "obj_fn": potential}
        if "value" in wants:
            known["value"] = potential(p)
        # No other extra arguments are passed on: a line search rejects unknown ones.
        extra = {k: x for k, x in extra.items() if k in wants or k not in known}
        known = {name: known[name] for name in wants}
        return tx.update(g, state, p, **{**known, **extra})

    return steepest.GradientTransformationExtraArgs(tx.init, update)


def with_bare_keys(
    tx: steepest.GradientTransformation,
) -> steepest.GradientTransformationExtraArgs:
    """`tx` with integer arrays for the keys in its state, to save and compare them."""

    def init(p: Any) -> Any:
        return steepest.tree.unwrap_random_key_data(tx.init(p))

    def update(g: Any, state: Any, p: Any = None, **extra: Any) -> Any:
        # `init` shows where the keys are; it needs no params for that.
        like = jax.eval_shape(tx.init, {})
        is_key = lambda x: jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
        wrap = lambda x, kind: jax.random.wrap_key_data(x) if is_key(kind) else x
        state = jax.tree.map(wrap, state, like)
        u, state = tx.update(g, state, p, **extra)
        return u, steepest.tree.unwrap_random_key_data(state)

    return steepest.GradientTransformationExtraArgs(init, update)


def over(rows: list[Row]) -> Any:
    """Run a test once for each of `rows`."""
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name)


def params(dtype: Any = jnp.float32) -> Any:
    """A small tree with every kind of leaf: `None`, a scalar, an empty array."""
    return {
        "w": jnp.arange(1, 7).reshape(3, 2).astype(dtype) / 4,
        "b": [jnp.array([-1, 0.5], dtype), None],
        "s": jnp.array(2, dtype),
        "z": jnp.zeros((0, 3), dtype),
    }


def few_params(dtype: Any = jnp.float32) -> Any:
    """The same with only two arrays: half the time to compile."""
    p = params(dtype)
    return {"w": p["w"], "b": p["b"]}


def gradients(p: Any, t: Any = 0) -> Any:
    """A gradient at `p`, different for each `t`."""
    return jax.tree.map(lambda x: x + jnp.cos(x + jnp.asarray(t, x.dtype)), p)


def potential(p: Any) -> Any:
    """A function whose gradient at `p` is `gradients(p)`."""
    parts = [jnp.sum(x * x / 2 + jnp.sin(x)) for x in jax.tree.leaves(p)]
    return sum((part.real.astype(float) for part in parts), jnp.zeros(()))


def typeof(tree: Any) -> Any:
    """The shapes, dtypes and weak types of a tree."""
    leaves, treedef = jax.tree.flatten(tree)
    return [(x.shape, x.dtype, x.weak_type) for x in leaves], treedef
