"""Scion: for each kind of layer, the steepest step in its own norm.

Pethick et al., Training deep learning models with norm-constrained LMOs, 2025,
arXiv:2502.07529
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from .. import check
from ..combine import chain, partition
from ..core import (
    GradientTransformationExtraArgs,
    Params,
    Real,
    Recent,
    ScalarOrSchedule,
)
from ..engine import optimizer
from ..numerics import Coefficients
from ..transforms import add_decayed_weights, identity, scale, scale_by_learning_rate
from ..tree import as_patterns, key_paths
from ._groups import ADAM, Place, PLAIN, Sorting, TREES, Words, words_of
from ._lmo import lmo_of, NORMS

_STEPS, _EPS = 16, 1e-12  # for params: they need not be small, as gradients are


class Group(NamedTuple):
    """Leaves with the same norm."""

    norm: str
    words: Words = PLAIN  # for the last axes
    of_each: bool = False  # for `rms`, whether the first axis indexes layers

    @property
    def label(self) -> str:
        """The label of the group: the norm, and the words unless they are plain."""
        if self.of_each:
            return f"{self.norm} of each layer"
        if self.words == PLAIN:
            return self.norm
        words = " ".join(self.words)
        return words if self.norm == "spectral" else f"{self.norm} {words}"


class Norms:
    """Chooses the norm of each leaf."""

    def __init__(
        self, name: str, stacked: str | None, routes: Mapping[str, str] | None
    ):
        """Check the options.

        Args:
            name: name used in error messages.
            stacked: a pattern for leaves whose first axis indexes layers.
            routes: maps a pattern to a norm, a word for each axis, or both.
        """
        if routes is not None and not isinstance(routes, Mapping):
            raise TypeError(
                f"{name}: routes is a {type(routes).__name__}, expected a dict, such "
                'as `{"conv": "in in in out", "embed": "sign"}`.'
            )
        self.name = name
        self._sorting = Sorting(name, stacked, None)
        self._stacked = as_patterns(name, [] if stacked is None else [stacked])
        self._routes = dict(routes or {})
        self._patterns = as_patterns(name, list(self._routes))
        self._groups = [_group(name, *item) for item in self._routes.items()]
        self._known: Recent[list[tuple[Group, str]]] = Recent(TREES)

    @property
    def groups(self) -> dict[str, Group]:
        """All groups that a leaf may be in, by label."""
        usual = [Group(norm) for norm in ("spectral", "sign", "sign/in", "rms")]
        each = [Group("rms", of_each=True)] if self._stacked else []
        return {group.label: group for group in (*usual, *each, *self._groups)}

    def __call__(self, params: Params) -> Params:
        """The label of each leaf, in the structure of the params."""
        labels = [group.label for group, _ in self._chosen(params)]
        return jax.tree.structure(params).unflatten(labels)

    def reasons(self, params: Params) -> list[str]:
        """The reason for the group of each leaf."""
        return [why for _, why in self._chosen(params)]

    def _chosen(self, params: Params) -> list[tuple[Group, str]]:
        """The group of each leaf and the reason, cached by structure and shapes."""
        leaves, treedef = jax.tree.flatten(params)
        shapes = tuple(map(jnp.shape, leaves))

        def make() -> list[tuple[Group, str]]:
            places = self._sorting.places(params)
            return list(map(self._choose, key_paths(params), shapes, places))

        try:
            return self._known((treedef, shapes), make)
        except (TypeError, ValueError):  # not hashable or comparable
            return make()

    def _choose(
        self, path: str, shape: tuple[int, ...], place: Place
    ) -> tuple[Group, str]:
        stacked = any(pattern.search(path) for pattern in self._stacked)
        shape = shape[1:] if stacked else shape
        rows = zip(self._patterns, self._groups, self._routes, strict=True)
        for pattern, group, route in rows:
            words = () if group.norm in ("sign", "rms") else group.words
            if pattern.search(path) and len(shape) >= len(words):
                of_each = stacked and group.norm == "rms"
                return group._replace(of_each=of_each), f"routes: {route!r}"
        norm = _norm_of(shape, place)
        if norm is None:
            raise ValueError(
                f"{self.name}: the leaf {path!r} has {len(shape)} axes. Say in "
                "`routes` what they are: 'in' for those that the layer sums over and "
                f"'out' for the others, such as `{{{path!r}: 'in in out'}}`."
            )
        return Group(norm, of_each=stacked and norm == "rms"), place.why


def _norm_of(shape: tuple[int, ...], place: Place) -> str | None:
    """The norm of a leaf that no route matches; `None` if its axes are unknown.

    Args:
        shape: its shape, without the axis of layers.
        place: what `Sorting` found.
    """
    long = [n for n in shape if n != 1]
    if len(shape) < 2 or place.what in ("a norm", "a bias or a scale"):
        return "rms"
    if place.what == "embeds" and len(long) <= 2:
        return "sign"
    if len(shape) > 2:
        return "rms" if len(long) < 2 else None
    if place.what == "a head":
        return "sign/in"
    if place.label == ADAM and place.what == "" and min(shape) > 1:  # a vocabulary
        return "sign" if shape[0] > shape[1] else "sign/in"
    return "spectral"


def _group(name: str, pattern: str, route: object) -> Group:
    """The group of one entry of `routes`."""
    norm, _, rest = route.partition(" ") if isinstance(route, str) else ("", "", "")
    if norm in NORMS:
        words = words_of(rest) if rest else PLAIN
    else:
        norm, words = "spectral", words_of(route)
    if not words:
        raise ValueError(
            f"{name}: routes[{pattern!r}] is {route!r}, expected one of the norms "
            f"{', '.join(NORMS)}; or a word for each of the last axes: 'in' for those "
            "that the layer sums over and 'out' for the others, equal words together; "
            "or both, such as 'sign/in out in'."
        )
    return Group(norm, words)


@optimizer
def scion(
    learning_rate: ScalarOrSchedule,
    alpha: Real = 0.1,
    radius: Real = 50.0,
    sign_radius: Real = 3000.0,
    mu_dtype: DTypeLike | None = None,
    *,
    rms_radius: Real | None = None,
    constrained: bool = True,
    eps: Real = 1e-8,
    coefficients: Coefficients = "polar_express",
    steps: int | None = None,
    dtype: DTypeLike | None = None,
    stacked: str | None = None,
    routes: Mapping[str, str] | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
    reshard: str | Sequence[str] | None = None,
) -> GradientTransformationExtraArgs:
    """Scion: for each kind of layer, the steepest step in its own norm.

        mu <- (1 - alpha) mu + alpha g
        p  <- (1 - learning_rate) p - learning_rate radius u

    `u` is the steepest step for `mu` in the norm of the leaf; see `scale_by_lmo`. The
    params end up in the ball of this radius and stay there; `scion_init` gives params
    that begin there. With `constrained=False` they do not shrink:
    `p <- p - learning_rate radius u`.

    The norm of a leaf depends on its path and shape:

        spectral    matrices of hidden layers and routers
        sign        embeddings, whose inputs are one-hot
        sign/in     heads
        rms         vectors, norms and biases

    `print(steepest.describe(tx, params))` shows the norm of each leaf and the reason.
    For leaves with more than two axes, and to choose other norms, use `routes`:

        scion(2**-12, stacked="^layers/")                   # `scan`: layers come first
        scion(2**-12, routes={
            "(query|key|value)/kernel": "in out out",       # flax's heads
            "conv": "in in in out",                         # Equinox: "out in in in"
            "lm_head": "sign/in out in",                    # a norm, and its axes
            "embed": "colnorm",
        })

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        alpha: weight of the newest gradient in the mean, in (0, 1]; 1 for no momentum.
        radius: the radius of the ball, for all norms that have none of their own.
        sign_radius: the radius for `sign` and `sign/in`.
        mu_dtype: dtype of the mean; by default that of the params.
        rms_radius: the radius for `rms`; by default `radius`.
        constrained: whether the params shrink, and so stay in the ball.
        eps: added to what the mean is divided by.
        coefficients: the polynomials of the spectral norm. Either a name:
            `polar_express`, `dion`, `cans`, `standard` (the original ones) or
            `deepseek` (ten steps, closest to 1); or one triple `(a, b, c)` for all
            steps; or one triple for each step.
        steps: the number of steps; by default the number of polynomials. Extra steps
            bring the singular values closer to 1.
        dtype: dtype of the polynomials. By default float16 on a GPU, bfloat16 on a TPU
            and float32 elsewhere; float64 and complex matrices keep their dtype.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to a norm (`spectral`, `sign`, `sign/in`, `colnorm`,
            `colnorm/in`, `rownorm` or `rms`), to a word for each of the last axes, or
            to both. Axes before those index a stack of matrices. Patterns are regular
            expressions that may match anywhere in a path, such as `encoder/0/kernel`;
            the first that does decides, and overrides all rules above.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
        reshard: names of mesh axes, whose devices share the matrices: each matrix is
            sent to one device and back, once in a step, inside `jax.set_mesh`. By
            default the compiler shards every product. See `keeping`.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.scion(learning_rate=2**-12)
    >>> params = {
    ...     "embed": jnp.ones((50, 8)),
    ...     "mlp": {"kernel": jnp.ones((8, 32)), "bias": jnp.ones(32)},
    ...     "head": jnp.ones((8, 50)),
    ... }
    >>> for line in steepest.describe(tx, params).lines:
    ...     print(line.path, *line.groups, "because:", line.why)
    ['embed'] sign because: embeds: 'embed' in its path
    ['head'] sign/in because: a head: 'head' in its path
    ['mlp']['bias'] rms because: a vector
    ['mlp']['kernel'] spectral because: a matrix
    """
    name = "scion"
    check.flag(name, constrained=constrained)
    check.amount(name, radius=radius, sign_radius=sign_radius)
    radii = {"sign": sign_radius, "sign/in": sign_radius}
    if rms_radius is not None:
        check.amount(name, rms_radius=rms_radius)
        radii["rms"] = rms_radius
    rate = check.rate_given(name, learning_rate)
    shrink = [add_decayed_weights(1.0)] if constrained else []
    sorting = Norms(name, stacked, routes)

    def leaves(group: Group) -> GradientTransformationExtraArgs:
        numbers = alpha, eps, mu_dtype, coefficients, steps, dtype
        return chain(
            *lmo_of(group.norm, *numbers, group.words, group.of_each),
            scale(radii.get(group.norm, radius)),
            *shrink,
            scale_by_learning_rate(rate),
        )

    parts = {label: leaves(group) for label, group in sorting.groups.items()}
    return partition(parts, sorting)


def scion_init(
    params: Params,
    radius: Real = 50.0,
    sign_radius: Real = 3000.0,
    *,
    stacked: str | None = None,
    routes: Mapping[str, str] | None = None,
) -> Params:
    """Initial params for `scion`: those on the surface of its ball.

        p <- radius u

    `u` is the matrix of norm 1 with the largest inner product with `p`; see
    `scale_by_lmo`. So normal random numbers become a random orthogonal matrix, or
    random signs, as in the authors' code. Vectors, norms and biases are unchanged:
    their ball is large, and gains must not begin at zero. A leaf of zeros stays zero.

    Args:
        params: random params, as a model begins with.
        radius: the radius of the ball, for all norms that have none of their own.
        sign_radius: the radius for `sign` and `sign/in`.
        stacked: a regular expression for leaves whose first axis indexes layers, as
            passed to `scion`.
        routes: maps a pattern to a norm, to a word for each of the last axes, or to
            both, as passed to `scion`.

    >>> import jax, jax.numpy as jnp, steepest
    >>> kernel = jax.random.normal(jax.random.key(0), (8, 32))
    >>> params = steepest.scion_init({"kernel": kernel, "bias": jnp.zeros(32)})
    >>> sizes = jnp.linalg.svd(params["kernel"], compute_uv=False)
    >>> print(f"{sizes.min():.2f} {sizes.max():.2f}")  # 50 sqrt(32 / 8)
    100.00 100.00
    """
    name = "scion_init"
    check.amount(name, radius=radius, sign_radius=sign_radius)
    sorting = Norms(name, stacked, routes)

    def leaves(group: Group) -> GradientTransformationExtraArgs:
        if group.norm == "rms":
            return identity()
        size = sign_radius if group.norm in ("sign", "sign/in") else radius
        # Without momentum, and with enough steps for exact singular values.
        numbers = 1.0, _EPS, None, "deepseek", _STEPS, jnp.float32
        return chain(*lmo_of(group.norm, *numbers, group.words), scale(size))

    parts = {label: leaves(group) for label, group in sorting.groups.items()}
    tx = partition(parts, sorting)
    return tx.update(params, tx.init(params), params)[0]
