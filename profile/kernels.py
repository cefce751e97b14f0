"""Trial kernels (Pallas, Triton): symmetric products and small inverse Cholesky factors."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def pairs(n, ti, tj):
    """Tiles (i, j) that cover the lower triangle."""
    ni, nj = -(-n // ti), -(-n // tj)
    found = [(i, j) for i in range(ni) for j in range(nj) if j * tj < (i + 1) * ti]
    return np.array(found, np.int32)


def symmetric(
    x,
    y=None,
    g=None,
    row=(0.0, 0.0, 1.0),
    *,
    tall=False,
    ti=128,
    tj=128,
    tk=64,
    warps=8,
    stages=3,
    out=jnp.float16,
    interpret=False,
    old=None,
    beta=0.9,
    scale=None,
):
    """x y^T (or x^T y if tall), known to be symmetric; a I + b g + c (.) if g is given; or beta old + scale (.)."""
    n, k = (x.shape[1], x.shape[0]) if tall else x.shape
    table = pairs(n, ti, tj)
    y = x if y is None else y
    a, b, c = row

    def kernel(*refs):
        is_ref, js_ref, x_ref, y_ref = refs[:4]
        rest = list(refs[4:])
        o_ref = rest.pop()
        me = pl.program_id(0)
        i0 = pl.multiple_of(jnp.minimum(is_ref[me] * ti, n - ti), 16)
        j0 = pl.multiple_of(jnp.minimum(js_ref[me] * tj, n - tj), 16)

        def body(step, acc):
            ks = pl.ds(step * tk, tk)
            if tall:
                xi, yj = (
                    plgpu.load(x_ref.at[ks, pl.ds(i0, ti)]),
                    plgpu.load(y_ref.at[ks, pl.ds(j0, tj)]),
                )
                return acc + plgpu.dot(xi.T, yj)
            xi, yj = (
                plgpu.load(x_ref.at[pl.ds(i0, ti), ks]),
                plgpu.load(y_ref.at[pl.ds(j0, tj), ks]),
            )
            return acc + plgpu.dot(xi, yj.T)

        acc = jax.lax.fori_loop(0, k // tk, body, jnp.zeros((ti, tj), jnp.float32))
        if g is not None:
            tile = plgpu.load(rest[0].at[pl.ds(i0, ti), pl.ds(j0, tj)]).astype(
                jnp.float32
            )
            ri = i0 + jax.lax.broadcasted_iota(jnp.int32, (ti, tj), 0)
            rj = j0 + jax.lax.broadcasted_iota(jnp.int32, (ti, tj), 1)
            acc = jnp.where(ri == rj, a, 0.0) + b * tile + c * acc
        if old is not None:
            s = rest[1][0]
            acc = beta * plgpu.load(rest[0].at[pl.ds(i0, ti), pl.ds(j0, tj)]) + s * acc
        acc = acc.astype(out)
        plgpu.store(o_ref.at[pl.ds(i0, ti), pl.ds(j0, tj)], acc)
        plgpu.store(o_ref.at[pl.ds(j0, tj), pl.ds(i0, ti)], acc.T)

    more = (
        [g] if g is not None else [] if old is None else [old, jnp.reshape(scale, (1,))]
    )
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((n, n), out),
        grid=(len(table),),
        compiler_params=plgpu.CompilerParams(num_warps=warps, num_stages=stages),
        interpret=interpret,
        name="symmetric",
    )(jnp.asarray(table[:, 0].copy()), jnp.asarray(table[:, 1].copy()), x, y, *more)


def lower_times(
    a, x, *, ti=128, tj=128, tk=64, warps=8, stages=3, out=jnp.float32, interpret=False
):
    """a x, where a is lower triangular: the inner loop ends at the diagonal."""
    n, m = x.shape
    ni, nj = -(-n // ti), -(-m // tj)

    def kernel(a_ref, x_ref, o_ref):
        i = ni - 1 - pl.program_id(1)  # long rows first
        i0 = pl.multiple_of(jnp.minimum(i * ti, n - ti), 16)
        j0 = pl.multiple_of(jnp.minimum(pl.program_id(0) * tj, m - tj), 16)

        def body(step, acc):
            ks = pl.ds(step * tk, tk)
            ai, xj = (
                plgpu.load(a_ref.at[pl.ds(i0, ti), ks]),
                plgpu.load(x_ref.at[ks, pl.ds(j0, tj)]),
            )
            return acc + plgpu.dot(ai, xj)

        end = jnp.minimum((i0 + ti + tk - 1) // tk, n // tk)
        acc = jax.lax.fori_loop(0, end, body, jnp.zeros((ti, tj), jnp.float32))
        plgpu.store(o_ref.at[pl.ds(i0, ti), pl.ds(j0, tj)], acc.astype(out))

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((n, m), out),
        grid=(nj, ni),
        compiler_params=plgpu.CompilerParams(num_warps=warps, num_stages=stages),
        interpret=interpret,
        name="lower_times",
    )(a, x)


def small_inverse(a, *, warps=4, interpret=False):
    """C^-1 of a small a = C C^T, by elimination in the registers of one program."""
    n = len(a)

    def kernel(a_ref, o_ref):
        rows = jax.lax.broadcasted_iota(jnp.int32, (n, n), 0)
        cols = jax.lax.broadcasted_iota(jnp.int32, (n, n), 1)

        def step(j, t):
            r = jnp.sum(jnp.where(rows == j, t, 0.0), axis=0)
            index = jax.lax.broadcasted_iota(jnp.int32, (n,), 0)
            pivot = jnp.sum(jnp.where(index == j, r, 0.0))
            l = jnp.where(index > j, r, 0.0) / pivot
            r = jnp.where(index == j, 1.0, r)  # t[i, j] becomes -l
            old = jnp.where((cols == j) & (rows > j), 0.0, t)
            return old - l[:, None] * r[None, :]

        t = jax.lax.fori_loop(0, n, step, a_ref[...])
        d = jnp.sum(jnp.where(rows == cols, t, 0.0), axis=1)
        t = jnp.where(rows == cols, 1.0, jnp.where(rows > cols, t, 0.0))
        o_ref[...] = t * jax.lax.rsqrt(d)[:, None]

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((n, n), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=warps, num_stages=1),
        interpret=interpret,
        name="small_inverse",
    )(a)
