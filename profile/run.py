"""Where the time of Muon XL and SOAP 124M goes on the GPU. `python profile/run.py [--tiny]`"""

import glob
import gzip
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from statistics import median

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.9")
sys.path[:0] = [os.path.dirname(__file__), "."]
import jax
import jax.numpy as jnp
import numpy as np

import steepest
from benchmarks.matrix import gradients, hidden
from benchmarks.optimizers import RATE
from benchmarks.trees import TINY, TREES
from kernels import lower_times, small_inverse, symmetric
from steepest.numerics import _eigenbasis as eb, _gram, _matmul as mm, _polynomials

TINY_RUN = "--tiny" in sys.argv
GPU = jax.default_backend() == "gpu"
OUT = os.environ.get("OUT", "/tmp")
BEGUN = time.perf_counter()


def say(*words):
    print(f"[{time.perf_counter() - BEGUN:6.1f}]", *words, flush=True)


@contextmanager
def limit(what, seconds):
    def stop(*_):
        raise TimeoutError(f"{what}: more than {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    except Exception as error:
        say(f"FAILED {what}: {type(error).__name__}: {str(error)[:600]}")
        if not isinstance(error, TimeoutError):
            say(traceback.format_exc()[-400:])
    finally:
        signal.alarm(0)


def kernels(run, steps, top=25, title=""):
    """Print the kernels by time, and the gaps."""
    if not GPU:
        return
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(steps):
                run()
        (file,) = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
        profile = jax.profiler.ProfileData.from_file(file)
        events = [
            (e.start_ns, e.duration_ns, e.name)
            for plane in profile.planes
            if "GPU" in plane.name
            for line in plane.lines
            if "Stream" in line.name
            for e in line.events
        ]
    events.sort()
    total, calls = defaultdict(float), defaultdict(int)
    for _, d, name in events:
        key = re.sub(r"(_\d+)+$", "", name)[:90]
        total[key] += d
        calls[key] += 1
    busy = sum(d for _, d, _ in events)
    end, idle, gaps = events[0][0], 0.0, defaultdict(lambda: [0.0, 0])
    sizes = []
    for s, d, name in events:
        if s > end:
            idle += s - end
            sizes.append(s - end)
            cell = gaps[re.sub(r"(_\d+)+$", "", name)[:60]]
            cell[0] += s - end
            cell[1] += 1
        end = max(end, s + d)
    span = end - events[0][0]
    n = steps * 1e6
    say(
        f"{title}: busy {busy / n:.2f} ms, span {span / n:.2f}, idle {idle / n:.2f} a step, {len(events) / steps:.0f} events"
    )
    for lo, hi in ((0, 2e3), (2e3, 5e3), (5e3, 2e4), (2e4, 1e5), (1e5, 1e9)):
        some = [x for x in sizes if lo <= x < hi]
        say(
            f"   gaps {lo / 1e3:.0f}-{hi / 1e3:.0f} us: {len(some) / steps:.0f} a step, {sum(some) / n:.2f} ms"
        )
    for key in sorted(total, key=total.get, reverse=True)[:top]:
        say(f"   {total[key] / n:8.3f} ms {calls[key] / steps:7.1f} calls  {key}")
    for key in sorted(gaps, key=lambda k: -gaps[k][0])[:8]:
        say(
            f"   gap before: {gaps[key][0] / n:8.3f} ms {gaps[key][1] / steps:7.1f} times  {key}"
        )


def whole(name, tx, tree, steps, hlo=None, trace=10):
    """Time the step of an optimizer, waited for and in a row, and list its kernels."""
    tree = hidden((TINY if TINY_RUN else TREES)[tree])

    def step(params, state, grads):
        updates, state = tx.update(grads, state, params)
        return steepest.apply_updates(params, updates), state

    params = tree.fill(0, 0.02)
    grads = cycle([tree.fill(k + 1, 0.001) for k in range(gradients(tree))])
    state = jax.jit(tx.init)(params)
    t = time.perf_counter()
    fast = jax.jit(step, donate_argnums=(0, 1))
    compiled = fast.lower(params, state, next(grads)).compile()
    say(name, f"compiled in {time.perf_counter() - t:.1f} s")
    if hlo:
        with gzip.open(f"{OUT}/{hlo}.txt.gz", "wt") as file:
            file.write(compiled.as_text())
    kept = [params, state]
    del params, state

    def one(wait=True):
        kept[:] = compiled(*kept, next(grads))
        if wait:
            jax.block_until_ready(kept)

    for _ in range(4 if TINY_RUN else 12):
        one()
    times = []
    for _ in range(steps):
        t = time.perf_counter()
        one()
        times.append(time.perf_counter() - t)
    t = time.perf_counter()
    for _ in range(steps):
        one(False)
    jax.block_until_ready(kept)
    row = (time.perf_counter() - t) / steps
    ms = [round(1e3 * x, 2) for x in times]
    say(
        name,
        f"waited median {median(ms)}, worst {max(ms)}, in a row {1e3 * row:.2f} ms",
    )
    say("   each:", ms[:20])
    t = time.perf_counter()
    compiled(*kept, next(grads)) if False else None
    kernels(one, trace, title=name)


def timed(name, f, *args, flops=0, nbytes=0, times=20, static=None):
    """The time of one call, of some in a row."""
    g = jax.jit(f)
    t = time.perf_counter()
    y = jax.block_until_ready(g(*args))
    first = time.perf_counter() - t
    t = time.perf_counter()
    y = jax.block_until_ready(g(*args))
    est = time.perf_counter() - t
    n = max(2, min(times, int(0.25 / max(est, 1e-5))))
    best = 1e9
    for _ in range(3):
        t = time.perf_counter()
        for _ in range(n):
            y = g(*args)
        jax.block_until_ready(y)
        best = min(best, (time.perf_counter() - t) / n)
    more = f", {flops / best / 1e12:.0f} TFLOP/s" if flops else ""
    more += f", {nbytes / best / 1e12:.2f} TB/s" if nbytes else ""
    say(f"{name}: {1e3 * best:.3f} ms{more} (first {first:.1f} s)")
    return y


def normal(key, shape, dtype=jnp.float32):
    return jax.jit(
        lambda: jax.random.normal(jax.random.key(key), shape).astype(dtype)
    )()


D = 64 if TINY_RUN else 1600
S = 64 if TINY_RUN else 768
SMALL = dict(ti=32, tj=32, tk=32, interpret=True) if TINY_RUN or not GPU else {}
CONFIGS = [
    dict(ti=128, tj=128, tk=64, warps=8, stages=3),
    dict(ti=128, tj=128, tk=64, warps=4, stages=4),
    dict(ti=256, tj=128, tk=64, warps=8, stages=3),
    dict(ti=128, tj=128, tk=64, warps=8, stages=4),
    dict(ti=128, tj=256, tk=64, warps=8, stages=3),
    dict(ti=128, tj=128, tk=32, warps=4, stages=4),
]
CONFIGS = [SMALL] if SMALL else CONFIGS


def products():
    """Symmetric products for Muon XL."""
    n = 8
    x = normal(0, (n, D, 4 * D), jnp.float16) / (D**0.5 * 4)
    gram = jax.vmap(lambda x: x @ x.T)
    with limit("cublas gram", 20):
        ref = timed(
            "cuBLAS x x^T, 8 of 1600x6400", gram, x, flops=n * 2 * D * D * 4 * D
        )
    a = ref / 4
    with limit("cublas square", 20):
        square = timed("cuBLAS A A, 8 of 1600", lambda a: a @ a, a, flops=n * 2 * D**3)
    with limit("cublas factor", 20):
        fac = timed(
            "XLA factor(A)",
            jax.vmap(lambda a: _gram.factor(a, (2.0, -1.5, 0.5))),
            a,
            flops=n * 2 * D**3,
        )
    with limit("cublas times", 20):
        timed("cuBLAS A x", lambda a, x: a @ x, a, x, flops=n * 2 * D * D * 4 * D)
    for c in CONFIGS:
        with limit(f"symmetric {c}", 20):
            y = timed(
                f"symmetric x x^T {c}",
                jax.vmap(partial(symmetric, **c)),
                x,
                flops=n * 2 * D * D * 4 * D,
            )
            say(
                "   error",
                float(jnp.abs(y.astype(jnp.float32) - ref.astype(jnp.float32)).max()),
                "of",
                float(jnp.abs(ref).max()),
            )
            y = timed(
                "   factor A^2",
                jax.vmap(lambda a: symmetric(a, a, a, (2.0, -1.5, 0.5), **c)),
                a,
                flops=n * 2 * D**3,
            )
            say(
                "   error",
                float(jnp.abs(y.astype(jnp.float32) - fac.astype(jnp.float32)).max()),
                "of",
                float(jnp.abs(fac).max()),
            )
    xt = jax.jit(lambda x: x.mT.copy())(x)
    with limit("tall", 30):
        timed(
            "cuBLAS x^T x, 8 of 6400x1600",
            lambda x: x.mT @ x,
            xt,
            flops=n * 2 * D * D * 4 * D,
        )
        for c in CONFIGS[:3]:
            timed(
                f"symmetric x^T x {c}",
                jax.vmap(partial(symmetric, tall=True, **c)),
                xt,
                flops=n * 2 * D * D * 4 * D,
            )


def stacks():
    """The polar factor of stacks of several sizes."""
    rows = _polynomials.polynomials("x", "polar_express")
    one = lambda x: _gram.orthogonal(x, rows, dtype=jnp.float16)
    for n in (4, 8, 12, 16, 24):
        with limit(f"stack of {n}", 15):
            x = normal(n, (n, D, 4 * D))
            timed(
                f"orthogonal, {n} of 1600x6400",
                jax.vmap(one),
                x,
                flops=n * 60 * D**3,
                times=6,
            )
            del x
    for n in (8, 16, 48):
        with limit(f"stack of {n} squares", 15):
            x = normal(n, (n, D, D))
            timed(
                f"orthogonal, {n} of 1600x1600",
                jax.vmap(one),
                x,
                flops=n * 30 * D**3,
                times=6,
            )
    with limit("prologue", 15):
        x = normal(3, (8, D, 4 * D))
        timed(
            "frobenius + float16, 8 of 1600x6400",
            jax.vmap(lambda x: _gram.frobenius(x, 1e-8)[0].astype(jnp.float16)),
            x,
            nbytes=x.size * 6,
        )


def bases():
    """The pieces of a refresh."""
    L = 4 * S
    q = jnp.stack([jnp.eye(L)] * 4)
    g = normal(5, (4, L, 4 * L))
    a = jax.jit(
        lambda g: jnp.einsum("bij,bkj->bik", g, g, precision="highest") / g.shape[2]
    )(g)
    del g
    with limit("iterated", 60):
        q = timed(
            "iterated_basis, 4 of 3072", jax.vmap(eb.iterated_basis), a, q, times=4
        )
        q = timed("iterated_basis again", jax.vmap(eb.iterated_basis), a, q, times=4)
    fl = 4 * 2 * L**3
    with limit("x", 20):
        x = timed(
            "basis^T a (bf16x3)",
            jax.vmap(lambda q, a: mm.exact_product(q.T, a)),
            q,
            a,
            flops=fl,
        )
    with limit("x halves", 20):
        timed(
            "basis^T a (rounded basis, a in two halves)",
            jax.vmap(lambda q, a: mm.times_rounded(a, mm.rounded_to_half(q)).T),
            q,
            a,
            flops=fl,
        )
    rows = jax.jit(jax.vmap(lambda x: mm.rounded_to_half(eb._normalized(x))))(x)
    with limit("gram", 20):
        m = timed("rounded_gram (float16)", jax.vmap(mm.rounded_gram), rows, flops=fl)
        for c in CONFIGS[:3]:
            timed(
                f"   symmetric {c}",
                jax.vmap(lambda v: symmetric(v, out=jnp.float32, **c)),
                rows.values,
                flops=fl,
            )
    m = jax.jit(lambda m: m + 1e-5 * jnp.eye(L))(m)
    for block in (128, 256, 512, 1024):
        with limit(f"inverse {block}", 25):
            eb._BLOCK = block
            f = timed(
                f"inverse_cholesky, blocks of {block}",
                jax.vmap(lambda m: eb.inverse_cholesky(m)),
                m,
                times=4,
            )
    eb._BLOCK = 256
    with limit("times", 20):
        timed("times_rounded", jax.vmap(mm.times_rounded), f, rows, flops=fl)
        half = jax.jit(lambda f: f.astype(jnp.float16))(f)
        timed(
            "one float16 product",
            jax.vmap(lambda f, x: mm._half_product(f, x)),
            half,
            rows.values,
            flops=fl,
        )
        for c in CONFIGS[:3]:
            timed(
                f"   lower_times {c}",
                jax.vmap(partial(lower_times, **c)),
                half,
                rows.values,
                flops=fl,
            )
    for n in (64, 128, 256, 512):
        with limit(f"leaf {n}", 20):
            some = m[:, :n, :n]
            if n > L:
                continue
            timed(f"cholesky, 4 of {n}", jnp.linalg.cholesky, some)
            c = jnp.linalg.cholesky(some)
            timed(
                "   solve",
                jax.vmap(
                    lambda c: jax.scipy.linalg.solve_triangular(
                        c, jnp.eye(n), lower=True
                    )
                ),
                c,
            )
            if n <= 128:
                for warps in (1, 2, 4, 8) if GPU else (1,):
                    y = timed(
                        f"   small_inverse, {warps} warps",
                        jax.vmap(
                            partial(small_inverse, warps=warps, interpret=not GPU)
                        ),
                        some,
                    )
                say("   error", float(jnp.abs(y @ c - jnp.eye(n)).max()))
    if GPU:
        with limit("kernels of a refresh", 20):
            fast = jax.jit(jax.vmap(eb.iterated_basis))
            jax.block_until_ready(fast(a, q))
            kernels(
                lambda: jax.block_until_ready(fast(a, q)),
                3,
                14,
                "iterated_basis, 4 of 3072",
            )
    for n, d in ((6, 3 * S), (60, S)):
        with limit(f"iterated {d}", 20):
            g = normal(5, (n, d, 2 * d))
            a = jax.jit(lambda g: jnp.einsum("bij,bkj->bik", g, g) / g.shape[2])(g)
            timed(
                f"iterated_basis, {n} of {d}",
                jax.vmap(eb.iterated_basis),
                a,
                jnp.stack([jnp.eye(d)] * n),
                times=4,
            )


def steps_without_bases():
    """The rest of a step of SOAP, for a stack of 6."""
    from steepest.matrix import _rotated_adam as ra, _sides

    n, m, k = 6, S, 4 * S
    g, mu, nu = (
        normal(0, (n, m, k)),
        normal(1, (n, m, k)),
        jnp.square(normal(2, (n, m, k))),
    )
    bases = tuple(jnp.stack([jnp.eye(d)] * n) for d in (m, k))
    factors = tuple(jnp.stack([jnp.eye(d)] * n) for d in (m, k))
    fl = n * 2 * m * k * (m + k)
    with limit("formula", 20):
        f = lambda g, mu, nu, fa, ba: ra.soap_formula(
            g,
            mu,
            nu,
            fa,
            ba,
            b1=0.9,
            b2=0.9,
            eps=1e-8,
            factor_beta=0.9,
            c1=jnp.float32(0.5),
            c2=jnp.float32(0.5),
        )
        timed(
            "soap_formula, 6 of 768x3072",
            jax.vmap(f),
            g,
            mu,
            nu,
            factors,
            bases,
            flops=4 * fl,
        )
    with limit("rotated", 20):
        timed("rotated(g)", jax.vmap(_sides.rotated), g, bases, flops=fl)
        half = tuple(b.astype(jnp.float16) for b in bases)
        gh = g.astype(jnp.float16)
        two = lambda g, l, r: mm._half_product(
            mm._half_product(l.T, g).astype(jnp.float16), r
        )
        timed("   float16 in, float32 out", jax.vmap(two), gh, *half, flops=fl)
        timed(
            "   right first",
            jax.vmap(
                lambda g, l, r: mm._half_product(
                    l.T, mm._half_product(g, r).astype(jnp.float16)
                )
            ),
            gh,
            *half,
            flops=fl,
        )
    with limit("factors", 20):
        timed(
            "new_factors",
            jax.vmap(lambda g, f: _sides.new_factors(g, f, 0.9)),
            g,
            factors,
            flops=fl,
        )
        for c in CONFIGS[:3]:
            f = lambda g, f: (
                symmetric(g, old=f[0], scale=jnp.float32(0.1), out=jnp.float32, **c),
                symmetric(
                    g, old=f[1], tall=True, scale=jnp.float32(0.1), out=jnp.float32, **c
                ),
            )
            timed(f"   symmetric {c}", jax.vmap(f), gh, factors, flops=fl)


if __name__ == "__main__":
    say(jax.__version__, jax.devices(), os.environ.get("XLA_FLAGS"))
    if "--muon" in sys.argv:
        with limit("muon xl", 60):
            whole("muon XL", steepest.muon(RATE), "gpt2-xl", 12, trace=3)
        sys.exit()
    with limit("products", 60):
        products()
    with limit("bases", 90):
        bases()
    with limit("formula", 40):
        steps_without_bases()
    with limit("soap", 90):
        whole("soap 124M", steepest.soap(RATE), "gpt2", 30, "soap")
    with limit("stacks", 40):
        stacks()
    with limit("muon xl", 60):
        whole("muon XL", steepest.muon(RATE), "gpt2-xl", 12, "muon-xl", trace=3)
    with limit("muon", 40):
        whole("muon 124M", steepest.muon(RATE), "gpt2", 30, "muon")
    say("end")
