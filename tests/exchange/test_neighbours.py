"""Other libraries accept steepest's optimizers, in a process that also imports Optax.

Each gets the same optimizer from both libraries. Those that are not installed are
skipped: `make neighbours` installs them.
"""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

from ..oracles._calls import loose

pytestmark = pytest.mark.filterwarnings("ignore")
X = jnp.linspace(-1.0, 1.0, 8)[:, None]
Y = 3.0 * X - 1.0


@pytest.fixture(autouse=True)
def as_they_do():
    """They combine numbers of different dtypes and ranks."""
    with loose():
        yield


def _same(run):
    """The results of `run` with each library."""
    ours, theirs = run(steepest), run(optax)
    for x, y in zip(*map(jax.tree.leaves, (ours, theirs)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5)


def test_flax_nnx():
    nnx = pytest.importorskip("flax.nnx")

    def run(m):
        model = nnx.Linear(1, 1, rngs=nnx.Rngs(0))
        tx = m.chain(m.clip_by_global_norm(1.0), m.adamw(0.1))
        optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)
        loss = lambda model: jnp.mean((model(X) - Y) ** 2)
        for _ in range(3):
            optimizer.update(model, nnx.grad(loss)(model))
        return jax.tree.map(jnp.asarray, nnx.to_pure_dict(nnx.state(model, nnx.Param)))

    _same(run)


@pytest.mark.parametrize(
    "make",
    [
        lambda: steepest.route(
            {"a/kernel$": steepest.sgd(0.1), ".*": steepest.adamw(1e-3)}
        ),
        lambda: steepest.route({"a/kernel$": None, ".*": steepest.adamw(1e-3)}),
        lambda: steepest.masked(steepest.adam(1e-3), "kernel$"),
        lambda: steepest.muon(1e-3, routes={"a/kernel$": "adam"}),
        lambda: steepest.adamw(1e-3, mask="kernel$"),
    ],
    ids=["route", "freeze", "masked", "muon", "decay"],
)
def test_patterns_match_the_names_of_flax_nnx(make):
    """NNX passes variables to `init` and plain arrays to `update`."""
    nnx = pytest.importorskip("flax.nnx")
    rngs = nnx.Rngs(0)
    model = nnx.Dict(a=nnx.Linear(4, 4, rngs=rngs), b=nnx.Linear(4, 4, rngs=rngs))
    params = nnx.state(model, nnx.Param)
    paths = steepest.tree.key_paths(params)
    assert paths == steepest.tree.key_paths(nnx.as_pure(params))
    assert paths == ["a/bias", "a/kernel", "b/bias", "b/kernel"]
    optimizer = nnx.Optimizer(model, make(), wrt=nnx.Param)
    x = jnp.ones((2, 4))
    grads = nnx.grad(lambda m: jnp.mean(m.b(m.a(x)) ** 2))(model)
    optimizer.update(model, grads)
    optimizer.update(model, grads)


def test_numpyro():
    """It uses `isinstance`."""
    numpyro = pytest.importorskip("numpyro")
    infer = pytest.importorskip("numpyro.infer")
    guides = pytest.importorskip("numpyro.infer.autoguide")

    def model(y):
        mean = numpyro.sample("mean", numpyro.distributions.Normal(0.0, 10.0))
        numpyro.sample("y", numpyro.distributions.Normal(mean, 1.0), obs=y)

    def run(m):
        guide = guides.AutoNormal(model)
        svi = infer.SVI(model, guide, m.adam(0.05), infer.Trace_ELBO())
        return svi.run(jax.random.key(0), 20, Y, progress_bar=False).params

    _same(run)


def test_gpjax():
    gpx = pytest.importorskip("gpjax")

    def run(m):
        data = gpx.Dataset(X=X.astype(float), y=Y.astype(float))
        prior = gpx.gps.Prior(
            mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF()
        )
        posterior = prior * gpx.likelihoods.Gaussian()
        _, history = gpx.fit(
            model=posterior,
            objective=lambda p, d: -gpx.objectives.conjugate_mll(p, d),
            train_data=data,
            optim=m.adam(0.01),
            num_iters=5,
            verbose=False,
        )
        return history

    with jax.enable_x64(True):
        _same(run)


def test_optimistix():
    optimistix = pytest.importorskip("optimistix")

    def run(m):
        solver = optimistix.OptaxMinimiser(m.adam(0.1), rtol=1e-3, atol=1e-3)
        f = lambda p, args: jnp.sum((p - 1.0) ** 2)
        return optimistix.minimise(f, solver, jnp.zeros(3), max_steps=500).value

    _same(run)


def test_optimistix_compiles_once_for_many_rates():
    optimistix = pytest.importorskip("optimistix")
    traces = []

    def f(p, args):
        traces.append(1)
        return jnp.sum((p - 1.0) ** 2)

    def solve(rate):
        solver = optimistix.OptaxMinimiser(steepest.adam(rate), rtol=1e-3, atol=1e-3)
        return optimistix.minimise(f, solver, jnp.zeros(3), max_steps=500).value

    slow, first = solve(jnp.array(0.05)), len(traces)
    fast = solve(jnp.array(0.1))
    assert len(traces) == first
    assert not np.array_equal(slow, fast)


def test_jaxopt():
    jaxopt = pytest.importorskip("jaxopt")

    def run(m):
        f = lambda p: jnp.sum((p - 1.0) ** 2)
        solver = jaxopt.OptaxSolver(fun=f, opt=m.adam(0.1), maxiter=10)
        return solver.run(jnp.zeros(3)).params

    _same(run)


def test_blackjax():
    blackjax = pytest.importorskip("blackjax")

    def run(m):
        log_density = lambda x: -jnp.sum((x - 1.0) ** 2)
        svgd = blackjax.svgd(jax.grad(log_density), m.adam(0.1))
        state = svgd.init(jnp.linspace(-1.0, 1.0, 6)[:, None])
        for _ in range(3):
            state = svgd.step(state)
        return state.particles

    _same(run)


def test_a_library_that_finds_us_under_the_name_of_optax():
    pytest.importorskip("numpyro")
    program = """
import steepest
steepest.install_as_optax()
import sys, jax, jax.numpy as jnp, numpyro, optax
from numpyro.infer import SVI, Trace_ELBO, autoguide
def model(y):
    mean = numpyro.sample("mean", numpyro.distributions.Normal(0.0, 10.0))
    numpyro.sample("y", numpyro.distributions.Normal(mean, 1.0), obs=y)
svi = SVI(model, autoguide.AutoNormal(model), optax.adam(0.05), Trace_ELBO())
svi.run(jax.random.key(0), 3, jnp.ones(4), progress_bar=False)
assert optax.adam is steepest.adam
assert not [name for name in sys.modules if name.startswith("optax._src")]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
