"""Inside `jax.shard_map`, reductions are over all devices."""

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec as P

import steepest
from steepest import contrib

AXES = ("x", "y")
MESH = jax.make_mesh((4, 2), AXES, axis_types=(AxisType.Auto,) * 2)
# Two leaves sharded over both axes, one over one of them, and two replicated.
SPECS = {"w": P("x", "y"), "v": P("y", "x"), "b": P("x"), "s": P(), "t": P()}
SHAPES = {"w": (8, 6), "v": (4, 12), "b": (20,), "s": (), "t": (3,)}
PARAMS = {
    k: jnp.cos(jnp.arange(np.prod(shape, dtype=int)) + i).reshape(shape)
    for i, (k, shape) in enumerate(SHAPES.items())
}
GRADS = jax.tree.map(lambda p: jnp.sin(3 * p) + p, PARAMS)
# Here each matrix is sharded along the axis that is summed over.
BY_ROWS = {**SPECS, "w": P("x"), "v": P("y")}
BY_COLUMNS = {**SPECS, "w": P(None, "y"), "v": P(None, "x")}


def potential(p, axis_name=None):
    """A loss over all devices."""
    near = jax.tree.map(lambda x: x - 0.5, p)
    return steepest.tree.norm(near, squared=True, axis_name=axis_name)


def fed(tx, axis_name):
    """`tx`, with the value and the gradient of the loss as arguments."""
    f = functools.partial(potential, axis_name=axis_name)

    def update(g, state, p):
        value, g = jax.value_and_grad(f)(p)
        return tx.update(g, state, p, value=value, grad=g, value_fn=f)

    return steepest.GradientTransformation(tx.init, update)


def valued(tx, axis_name):
    """`tx`, with the value of the loss as an argument."""
    f = functools.partial(potential, axis_name=axis_name)
    update = lambda g, s, p: tx.update(g, s, p, value=f(p))
    return steepest.GradientTransformation(tx.init, update)


def skipping(skip, **options):
    """A step for every gradient that `skip` does not skip."""

    def maker(axis_name):
        chosen = functools.partial(skip, axis_name=axis_name, **options)
        return steepest.MultiSteps(
            steepest.sgd(0.1), 1, should_skip_update_fn=chosen
        ).gradient_transformation()

    return spoiled(maker)


def spoiled(make):
    """Two steps of `make`; in the first, one device has an infinity."""

    def maker(axis_name=None):
        tx = make(axis_name)
        huge = lambda g: g.at[..., 0].set(jnp.inf) if g.ndim else g

        def update(g, state, p):
            device = sum((jax.lax.axis_index(x) for x in AXES if axis_name), 0)
            bad = jax.tree.map(lambda x: jnp.where(device == 0, huge(x), x), g)
            _, state = tx.update({**g, "w": bad["w"]}, state, p)
            return tx.update(g, state, p)

        return steepest.GradientTransformation(tx.init, update)

    return maker


def only_finite(axis_name):
    return steepest.apply_if_finite(steepest.sgd(0.1, 0.9), 3, axis_name=axis_name)


def whole(f):
    """A function of a tree, as a transformation that stores its result."""

    def maker(axis_name=None):
        update = lambda g, s, p: (g, jnp.asarray(f(g, p, axis_name=axis_name)))
        return steepest.GradientTransformation(lambda p: jnp.zeros(()), update)

    return maker


def examples(clip):
    """Per-example clipping with two examples: the gradient and twice the gradient."""

    def maker(axis_name=None):
        def update(g, state, p):
            each = jax.tree.map(lambda x: jnp.stack([x, 2 * x]), g)
            total, clipped = clip(each, axis_name=axis_name)
            return total, jnp.asarray(jax.tree.leaves(clipped))

        return steepest.GradientTransformation(lambda p: jnp.zeros(1, int), update)

    return maker


def unit_norms(axis_name=None):
    norm = functools.partial(steepest.unitwise_norm, axis_name=axis_name)
    return steepest.stateless(lambda g, p: jax.tree.map(norm, g))


def cautious(axis_name=None):
    """Around updates that disagree with the gradient where it is small."""
    shift = steepest.stateless(lambda g, p: jax.tree.map(lambda x: x - 0.3, g))
    inner = steepest.chain(shift, steepest.scale(-0.1))
    return steepest.cautious(inner, axis_name=axis_name)


def hyperball(axis_name=None, **options):
    """For matrices; the other leaves are unchanged."""
    tx = steepest.hyperball(steepest.trace(0.9), 0.1, axis_name=axis_name, **options)
    return steepest.masked(tx, {k: len(shape) > 1 for k, shape in SHAPES.items()})


tree = steepest.tree
clip_examples = steepest.per_example_global_norm_clip
clip_layers = steepest.per_example_layer_norm_clip

# name -> (maker, its arguments, the wrapper that passes extra arguments)
ROWS = {
    "clip_by_global_norm": (steepest.clip_by_global_norm, dict(max_norm=0.5)),
    "normalize_by_update_norm": (steepest.normalize_by_update_norm, {}),
    "clip_by_block_rms": (steepest.clip_by_block_rms, dict(threshold=0.1)),
    "scale_by_trust_ratio": (steepest.scale_by_trust_ratio, {}),
    "scale_by_param_block_norm": (steepest.scale_by_param_block_norm, {}),
    "scale_by_param_block_rms": (steepest.scale_by_param_block_rms, {}),
    "scale_by_distance_over_gradients": (
        steepest.scale_by_distance_over_gradients,
        dict(reps_rel=0.1),
    ),
    "zero_nans": (steepest.zero_nans, {}),
    "scale_by_novograd": (steepest.scale_by_novograd, {}),
    "novograd": (steepest.novograd, dict(learning_rate=0.1)),
    "lamb": (steepest.lamb, dict(learning_rate=0.1, weight_decay=0.1)),
    "lars": (steepest.lars, dict(learning_rate=0.1)),
    "fromage": (steepest.fromage, dict(learning_rate=0.1)),
    "scale_by_polyak": (steepest.scale_by_polyak, dict(max_learning_rate=9.0), valued),
    "polyak_sgd": (steepest.polyak_sgd, dict(max_learning_rate=9.0), valued),
    "dog": (contrib.dog, dict(init_step=("heuristic", 0.1))),
    "dowg": (contrib.dowg, dict(init_estim_sq_dist=0.1)),
    "prodigy": (contrib.prodigy, dict(estim_lr0=0.1)),
    "dadapt_adamw": (contrib.dadapt_adamw, dict(estim_lr0=0.1)),
    "momo": (contrib.momo, {}, valued),
    "momo_adam": (contrib.momo_adam, dict(learning_rate=1.0), valued),
    "mechanize": (contrib.mechanize, dict(s_init=0.1)),
    "normalize": (contrib.normalize, {}),
    "watched": (steepest.watched, {}),
    "cautious": (cautious, {}),
    "mars": (steepest.mars, {}),
    "hyperball": (hyperball, {}),
    "hyperball_now": (hyperball, {"radius": "now"}),
    "guard": (steepest.guard, dict(window=2), valued),
    "scale_by_lbfgs": (steepest.scale_by_lbfgs, dict(memory_size=2)),
    "lbfgs": (steepest.lbfgs, dict(memory_size=2), fed),
    "scale_by_zoom_linesearch": (
        steepest.scale_by_zoom_linesearch,
        dict(max_linesearch_steps=3, max_learning_rate=0.1),
        fed,
    ),
    "scale_by_backtracking_linesearch": (
        steepest.scale_by_backtracking_linesearch,
        dict(max_backtracking_steps=3, store_grad=True),
        fed,
    ),
    "apply_if_finite": (spoiled(only_finite), {}),
    "skip_not_finite": (skipping(steepest.skip_not_finite), {}),
    "skip_large_updates": (
        skipping(steepest.skip_large_updates, max_squared_norm=100.0),
        {},
    ),
    "global_norm": (whole(lambda g, p, **axes: tree.global_norm(g, **axes)), {}),
    "norm": (whole(lambda g, p, **axes: tree.norm(g, 1, **axes)), {}),
    "norm_inf": (whole(lambda g, p, **axes: tree.norm(g, jnp.inf, **axes)), {}),
    "sum": (whole(lambda g, p, **axes: tree.sum(g, **axes)), {}),
    "max": (whole(lambda g, p, **axes: tree.max(g, **axes)), {}),
    "min": (whole(lambda g, p, **axes: tree.min(g, **axes)), {}),
    "vdot": (whole(lambda g, p, **axes: tree.vdot(g, p, **axes)), {}),
    "per_example_global_norm_clip": (
        examples(functools.partial(clip_examples, l2_norm_clip=1.0)),
        {},
    ),
    "per_example_layer_norm_clip": (
        examples(functools.partial(clip_layers, global_l2_norm_clip=9, uniform=False)),
        {},
    ),
}
# These take their own axes: those along which they sum.
ALONG = {
    "centralize": (steepest.centralize, {}, BY_COLUMNS),
    "unitwise_norm": (unit_norms, {}, BY_ROWS),
    "adaptive_grad_clip": (
        steepest.adaptive_grad_clip,
        dict(clipping=0.1),
        BY_ROWS,
    ),
}
# These reduce over a leaf to change only that leaf, and store nothing of it.
OF_A_LEAF = {
    "clip_by_block_rms",
    "scale_by_trust_ratio",
    "scale_by_param_block_norm",
    "scale_by_param_block_rms",
    "lamb",
    "lars",
    "fromage",
    "cautious",
    "mars",
    *ALONG,
}
INNER = {"watched", "guard", "mechanize", "mars"}


def made(name, axis_name=None):
    maker, options, *feed = {**ROWS, **ALONG}[name]
    inner = [steepest.sgd(0.1)] if name in INNER else []
    tx = maker(*inner, **options, axis_name=axis_name)
    for f in feed:
        tx = f(tx, axis_name) if callable(f) else tx
    return tx


def steps(tx):
    """Two steps from the start: the updates and the state."""

    def run(g, p):
        state = tx.init(p)
        u, state = tx.update(g, state, p)
        p = jax.tree.map(lambda p, u: p - 0.1 * u, p, u)
        return tx.update(jax.tree.map(lambda x: 2 * x, g), state, p)

    return run


def spec_like(specs, x):
    """The sharding of an array of a state: that of the param with its shape."""
    by_shape = {SHAPES[k]: spec for k, spec in specs.items()}
    if x.shape[1:] in by_shape and x.ndim > 1:
        return P(None, *by_shape[x.shape[1:]])  # one more axis in front
    return by_shape.get(x.shape, P())


def split(run, like, specs=SPECS, **options):
    """`run` on eight devices."""
    out = jax.tree.map(functools.partial(spec_like, specs), like)
    return jax.jit(
        jax.shard_map(run, mesh=MESH, in_specs=(specs, specs), out_specs=out, **options)
    )


def assert_near(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", ROWS | ALONG)
def test_eight_devices_compute_what_one_does(name):
    specs = ALONG[name][2] if name in ALONG else SPECS
    want = jax.jit(steps(made(name)))(GRADS, PARAMS)
    found = split(steps(made(name, AXES)), want, specs)(GRADS, PARAMS)
    assert_near(found, want)


@pytest.mark.parametrize("name", ROWS | ALONG)
def test_without_the_axes_it_is_another_number(name):
    """So the law above can fail.

    If a number belongs to the whole tree, JAX detects that the devices disagree.
    """
    specs = ALONG[name][2] if name in ALONG else SPECS
    run = steps(made(name))
    like = jax.eval_shape(run, GRADS, PARAMS)
    if name in OF_A_LEAF:
        found = split(run, like, specs)(GRADS, PARAMS)
        with pytest.raises(AssertionError):
            assert_near(found, jax.jit(run)(GRADS, PARAMS))
        return
    with pytest.raises((ValueError, TypeError), match=r"out_specs|carry|vary|type"):
        jax.eval_shape(split(run, like, specs), GRADS, PARAMS)


def test_every_function_with_axes_is_in_the_law():
    doors = steepest, contrib, steepest.tree
    public = {name: x for door in doors for name, x in inspect.getmembers(door)}
    takes = {
        name
        for name, x in public.items()
        if inspect.isfunction(x)
        and not name.startswith("_")
        and "axis_name" in inspect.signature(x).parameters
    }
    assert takes <= set(ROWS | ALONG)
    assert len(takes) > 30


@pytest.mark.parametrize("name", ["clip_by_global_norm", "lamb", "watched"])
def test_there_is_one_sum_over_devices_for_each_way_of_splitting(name):
    """Two here, for any number of leaves: over both axes, and over `x` alone."""
    tx = made(name, AXES)
    like = jax.eval_shape(tx.update, GRADS, tx.init(PARAMS), PARAMS)
    run = split(lambda g, p: tx.update(g, tx.init(p), p), like)
    text = run.lower(GRADS, PARAMS).compile().as_text()
    assert text.count(" all-reduce(") + text.count(" all-reduce-start(") == 2
    assert "all-gather" not in text


@pytest.mark.parametrize("name", ["clip_by_global_norm", "lamb", "guard"])
def test_without_types_every_leaf_counts_as_split(name):
    """`check_vma=False`: the sharding of an array is unknown."""
    specs = {k: P(AXES) for k in ("a", "b")}
    g = {"a": jnp.arange(8.0), "b": jnp.cos(jnp.arange(16.0))}
    plain = lambda tx: lambda g, p: tx.update(g, tx.init(p), p)[0]
    make = {"guard": lambda **axes: steepest.guard(steepest.sgd(0.1), **axes)}
    make = make.get(name, functools.partial(*ROWS[name][:1], **ROWS[name][1]))
    want = plain(make())(g, g)
    run = jax.shard_map(
        plain(make(axis_name=AXES)),
        mesh=MESH,
        in_specs=(specs, specs),
        out_specs=specs,
        check_vma=False,
    )
    assert_near(jax.jit(run)(g, g), want)


def test_a_state_made_outside_goes_in():
    """Outside `shard_map` arrays are global, and nothing is summed."""
    tx = contrib.dog(axis_name=AXES)
    state = tx.init(PARAMS)
    assert_near(state, contrib.dog().init(PARAMS))
    want = contrib.dog().update(GRADS, state, PARAMS)
    assert_near(jax.jit(tx.update)(GRADS, state, PARAMS), want)
    out = jax.tree.map(functools.partial(spec_like, SPECS), want)
    run = jax.shard_map(
        tx.update, mesh=MESH, in_specs=(SPECS, out[1], SPECS), out_specs=out
    )
    assert_near(jax.jit(run)(GRADS, state, PARAMS), want)


def test_pmap_and_vmap_have_axes_too():
    g = jnp.arange(8.0)
    tx = steepest.clip_by_global_norm(1.0, axis_name="i")
    want, _ = steepest.clip_by_global_norm(1.0).update(g, steepest.EmptyState())
    update = lambda g: tx.update(g, tx.init(g))[0]
    assert_near(jax.pmap(update, axis_name="i")(g), want)
    assert_near(jax.vmap(update, axis_name="i")(g), want)


def test_an_axis_that_is_left_to_the_compiler_is_not_summed_over():
    """Manual over `x` alone: along `y` the arrays are global."""
    tx = steepest.clip_by_global_norm(1.0, axis_name=AXES)
    g = jnp.arange(8.0)
    want, _ = steepest.clip_by_global_norm(1.0).update(g, steepest.EmptyState())
    run = jax.shard_map(
        lambda g: tx.update(g, tx.init(g))[0],
        mesh=MESH,
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
    )
    assert_near(jax.jit(run)(g), want)


def test_an_unknown_axis_is_an_error(as_users_do):
    tx = steepest.lamb(0.1, axis_name="model")
    run = split(lambda g, p: tx.update(g, tx.init(p), p)[0], GRADS)
    with pytest.raises(ValueError, match=r"scale_by_trust_ratio: .*'model'.*'x', 'y'"):
        run(GRADS, PARAMS)


@pytest.mark.parametrize("wrong", [3, ["x", 3], ["x", "x"]])
def test_what_is_no_axis_is_refused(wrong, as_users_do):
    with pytest.raises(TypeError, match="clip_by_global_norm: axis_name is "):
        steepest.clip_by_global_norm(1.0, axis_name=wrong)
