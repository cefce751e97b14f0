"""Adam-mini: its updates, which axes share a mean square, and the size of its state."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.matrix._averages import averaged, Averages

from ..optimizers._refused import NAN, NOT_DTYPES, refuses
from ._difficult import DTYPES, stays_finite

X = jax.random.normal(jax.random.key(0), (12, 8))
P = {
    "embed": {"embedding": X},  # a row for each token
    "mlp": {"kernel": 2 * X.T, "bias": X[0], "weight": X[:4] - 1},
    "query": {"kernel": X.reshape(6, 4, 4)},  # in, head, out
    "keys": {"weight": X},  # 3 heads of 4 outputs
    "lm_head": {"kernel": X.T},
    "norm": {"scale": X[:2]},
    "layers": {"kernel": jnp.stack([X, 3 * X])},
}
ROUTES = {"query": "in head out", "keys": "out/3 in"}
# For each leaf, the axes after it is cut into heads, and those that are averaged.
BLOCKS = {
    "embed/embedding": ((12, 8), 1),
    "keys/weight": ((3, 4, 8), (1, 2)),
    "layers/kernel": ((2, 12, 8), 1),
    "lm_head/kernel": ((8, 12), 0),
    "mlp/bias": ((8,), ()),
    "mlp/kernel": ((8, 12), 0),
    "mlp/weight": ((4, 8), 1),
    "norm/scale": ((2, 8), ()),
    "query/kernel": ((6, 4, 4), (0, 2)),
}


def _flat(tree):
    return {f"{a}/{b}": x for a, row in tree.items() for b, x in row.items()}


def _reference(p, gs, shape, axes, rate, decay):
    """The paper, line by line, in float64."""
    mu = nu = 0
    p = p.reshape(shape)
    for t, g in enumerate(gs, 1):
        g = g.reshape(shape)
        mu = 0.9 * mu + 0.1 * g
        nu = 0.95 * nu + 0.05 * np.mean(g * g, axes, keepdims=True)
        u = mu / (1 - 0.9**t) / (np.sqrt(nu / (1 - 0.95**t)) + 1e-8)
        p = p - rate * (u + decay * p)
    return p


@pytest.mark.parametrize("compiled", [False, True])
def test_a_few_steps_against_a_slow_reference(compiled):
    tx = steepest.adam_mini(
        0.1, b2=0.95, weight_decay=0.1, stacked="layers", routes=ROUTES
    )
    update = jax.jit(tx.update) if compiled else tx.update
    gs = [jax.tree.map(lambda x, t=t: jnp.cos(3 * x + t), P) for t in range(6)]
    p, state = P, tx.init(P)
    for g in gs:
        u, state = update(g, state, p)
        p = steepest.apply_updates(p, u)
    start, gs, found = jax.tree.map(lambda x: np.asarray(x, "float64"), (P, gs, p))
    assert set(_flat(found)) == set(BLOCKS)
    for name, (shape, axes) in BLOCKS.items():
        decay = 0.0 if name in ("mlp/bias", "norm/scale") else 0.1
        mine = [_flat(g)[name] for g in gs]
        want = _reference(_flat(start)[name], mine, shape, axes, 0.1, decay)
        have = _flat(found)[name].reshape(shape)
        np.testing.assert_allclose(have, want, rtol=2e-5, atol=1e-5, err_msg=name)


def test_one_number_per_element_is_adam():
    gs = [jnp.cos(X + t) for t in range(3)]
    mini, adam = steepest.scale_by_adam_mini(axes="out out"), steepest.scale_by_adam()
    a, b = mini.init(X), adam.init(X)
    for g in gs:
        u, a = mini.update(g, a)
        v, b = adam.update(g, b)
        np.testing.assert_allclose(u, v, rtol=1e-6)


def test_a_layer_and_its_transpose_make_the_same_step():
    flax, torch = {"kernel": X}, {"weight": X.T}
    steps = []
    for p in (flax, torch):
        tx = steepest.adam_mini(0.1)
        u, _ = tx.update(p, tx.init(p), p)
        steps.append(u)
    np.testing.assert_allclose(steps[0]["kernel"], steps[1]["weight"].T, rtol=1e-6)


def test_each_row_has_its_own_scale():
    """A step does not change if a row of outputs has larger gradients."""
    tx = steepest.scale_by_adam_mini(axes="out in")
    u, _ = tx.update(X, tx.init(X))
    v, _ = tx.update(X.at[3].multiply(1e3), tx.init(X))
    np.testing.assert_allclose(u, v, rtol=1e-5)


def test_bytes():
    """Four for each param, and four for each output, head, or element of a vector."""
    shapes = jax.eval_shape(lambda: P)
    tx = steepest.adam_mini(0.1, stacked="layers", routes=ROUTES)
    lines = steepest.describe(tx, shapes).lines
    found = {line.path.strip("[]'").replace("']['", "/"): line for line in lines}
    for name, (shape, axes) in BLOCKS.items():
        over = (axes,) if isinstance(axes, int) else axes
        rows = int(np.prod([n for k, n in enumerate(shape) if k not in over]))
        assert found[name].bytes == 4 * int(np.prod(shape)) + 4 * rows, name


@pytest.mark.parametrize(
    "path, shape, label",
    [
        ("dense/kernel", (4, 8), "in out"),
        ("dense/kernel/value", (4, 8), "in out"),
        ("linear/w", (4, 8), "in out"),
        ("linear/weight", (8, 4), "out in"),
        ("cell/weight_ih", (8, 4), "out in"),
        ("embed/embedding", (50, 8), "out in"),
        ("tok_embed/weight", (50, 8), "out in"),
        ("patch_embed/kernel", (50, 8), "in out"),
        ("head/kernel", (8, 50), "in out"),
        ("head/weight", (50, 8), "out in"),
        ("router/kernel", (8, 4), "in out"),
        ("table", (50_000, 64), "out in"),
        ("table", (64, 50_000), "in out"),
        ("ln/scale", (4, 8), "adam"),
        ("dense/bias", (8,), "adam"),
        ("dense/kernel", (8, 1), "adam"),
        ("conv/kernel", (3, 3, 8, 8), "adam"),
    ],
)
def test_words_follow_from_paths_and_shapes(path, shape, label):
    tree = jax.ShapeDtypeStruct(shape, jnp.float32)
    for key in reversed(path.split("/")):
        tree = {key: tree}
    assert jax.tree.leaves(Averages("adam_mini", None, None)(tree)) == [label]


def test_routes_come_first():
    routes = {"conv": "in in in out", "embed": "adam", "one": "in in"}
    shapes = {"conv": (3, 3, 2, 4), "embed": (9, 2), "one": (9, 2), "two": (9, 2)}
    tree = {k: jax.ShapeDtypeStruct(x, jnp.float32) for k, x in shapes.items()}
    sorting = Averages("adam_mini", None, routes)
    labels = {"conv": "in in in out", "embed": "adam", "one": "in in", "two": "in out"}
    assert sorting(tree) == labels
    assert sorting.reasons(tree)[:2] == ["routes: 'conv'", "routes: 'embed'"]


@pytest.mark.parametrize(
    "words, shape, axes",
    [
        ("in out", (4, 6), (0,)),
        ("out in", (4, 6), (1,)),
        ("in head out", (4, 6), ()),  # too few axes: one number per element
        ("head in", (2, 4, 6), (2,)),
        ("in in", (4, 6), (0, 1)),
    ],
)
def test_which_axes_are_averaged(words, shape, axes):
    assert averaged(shape, tuple(words.split())) == (shape, axes)


def test_an_axis_of_heads_is_cut():
    assert averaged((5, 4, 6), ("in", "out/3")) == ((5, 4, 3, 2), (1, 3))


def test_an_axis_must_hold_whole_heads():
    tx = steepest.scale_by_adam_mini(axes="out/3 in")
    state = tx.init({"w": jnp.ones((3, 2))})
    with pytest.raises(
        ValueError, match=r"leaf \['w'\] has shape \(4, 2\) and an axis"
    ):
        tx.update({"w": jnp.ones((4, 2))}, state)


@pytest.mark.parametrize("words", ["", "in on", "out/0 in", "in/2 out", 3, None])
def test_words_are_checked(words, as_users_do):
    with pytest.raises(
        ValueError, match=r"^scale_by_adam_mini: axes is .*, expected a"
    ):
        steepest.scale_by_adam_mini(axes=words)
    with pytest.raises(ValueError, match=r"^adam_mini: routes\['w'\] is .* 'adam', or"):
        steepest.adam_mini(0.1, routes={"w": words})


def test_options_are_checked(as_users_do):
    refuses(
        steepest.scale_by_adam_mini,
        b1=[2.0, NAN],
        b2=[-1.0, "1"],
        eps=[-1.0, NAN],
        mu_dtype=NOT_DTYPES,
    )
    routes: Any = ["w"]
    with pytest.raises(TypeError, match=r"^adam_mini: routes is a list, expected a d"):
        steepest.adam_mini(0.1, routes=routes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_everything_stays_finite(dtype):
    stays_finite(steepest.adam_mini(0.1), dtype)


def test_an_infinite_gradient_still_shows():
    tx = steepest.scale_by_adam_mini()
    u, _ = tx.update(X.at[0, 0].set(jnp.inf), tx.init(X))
    assert not np.isfinite(np.asarray(u)).all()
