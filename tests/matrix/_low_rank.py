"""A slow reference of APOLLO and Fira, for one matrix."""

import numpy as np


def low_rank(p, gs, projections, rate, decay, *, fira, tensor=False, scale=1.0):
    """The authors' rules in float64, with a projection (short, rank) for each step.

    `tensor` has one `phi` for the whole matrix. The limit does not apply after zero.
    """
    mu = nu = last = 0
    tall = p.shape[0] > p.shape[1]
    p, gs = (p.T, [g.T for g in gs]) if tall else (p, gs)
    axis = None if tensor else 0
    norm = lambda x: np.sqrt((x * x).sum(axis, keepdims=True))
    for t, (g, projection) in enumerate(zip(gs, projections, strict=True), 1):
        r = projection.T @ g
        mu, nu = 0.9 * mu + 0.1 * r, 0.99 * nu + 0.01 * r * r
        a = mu / (np.sqrt(nu) + 1e-6)
        phi = norm(a) / norm(r)
        s = phi * (g - projection @ r if fira else g)
        size = np.linalg.norm(s)
        if last > 0 and size > 1.01 * last:
            s = s * 1.01 * last / size
        last = np.linalg.norm(s)
        u = projection @ a + s if fira else np.sqrt(scale) * s
        u = u * np.sqrt(1 - 0.99**t) / (1 - 0.9**t)
        p = p - rate * (u + decay * p)
    return p.T if tall else p
