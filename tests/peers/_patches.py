"""What `_run` replaces in a package, so that two programs can agree to six digits.

A patch is a context: the package runs inside it.
"""

# pyright: reportMissingImports=false

from collections.abc import Iterator
from contextlib import contextmanager, ExitStack
from itertools import count
from typing import Any
from unittest import mock

from ._cases import normals


@contextmanager
def wide() -> Iterator[None]:
    """Compute in float64 where the package asks for float32 or bfloat16."""
    import torch

    with ExitStack() as stack:
        for name in ("float32", "bfloat16", "float16", "float"):
            stack.enter_context(mock.patch.object(torch, name, torch.float64))
        for name in ("float", "bfloat16", "half"):
            same = lambda x, **_: x
            stack.enter_context(mock.patch.object(torch.Tensor, name, same))
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float64)
        yield


@contextmanager
def first_gradient() -> Iterator[None]:
    """MARS: the gradient before the first is the first, not zero."""
    from ._drivers import checkout

    module = checkout("MARS/MARS_M", "optimizers.mars")
    update, place = module.update_fn, 8  # of the gradient before

    def begin(p: Any, g: Any, *more: Any, **named: Any) -> Any:
        more = (p, g, *more)
        if more[12] == 1:  # the step
            more = (*more[:place], g, *more[place + 1 :])
        return update(*more, **named)

    with mock.patch.object(module, "update_fn", begin):
        yield


@contextmanager
def sign() -> Iterator[None]:
    """AdaMuon as in the paper: of the signs, and without bias correction."""
    from pytorch_optimizer import AdaMuon
    from pytorch_optimizer.optimizer.muon import adamuon as module

    polar = module.zero_power_via_newton_schulz_5
    of_signs = lambda x, **more: polar(x.sign(), **more)
    with ExitStack() as stack:
        name = "zero_power_via_newton_schulz_5"
        stack.enter_context(mock.patch.object(module, name, of_signs))
        stack.enter_context(mock.patch.object(AdaMuon, "debias", lambda *_: 1.0))
        yield


@contextmanager
def given_noise() -> Iterator[None]:
    """APOLLO: both matrices get `normals(8, rank, n)` at the n-th refresh, from 0."""
    from ._drivers import checkout

    draws = count()

    def draw(shape: tuple[int, int], dtype: Any, **_: Any) -> Any:
        import torch

        # (side, rank) for the left side, (rank, side) for the right one
        side, rank = max(shape), min(shape)
        noise = torch.from_numpy(normals(side, rank, next(draws) // 2)).to(dtype)
        return noise if shape == (side, rank) else noise.T

    module = checkout("", "apollo_torch.random_projector")
    with mock.patch.object(module, "stable_randn", draw):
        yield


@contextmanager
def exact_norm() -> Iterator[None]:
    """PSGD: the largest singular value, not a random lower bound; never balanced."""
    import torch

    from ._drivers import checkout

    module = checkout("psgd_torch", "psgd")
    exact = lambda x: torch.linalg.matrix_norm(x, 2)
    with ExitStack() as stack:
        for name in ("norm_lower_bound_spd", "norm_lower_bound_skh"):
            stack.enter_context(mock.patch.object(module, name, exact))
        half = lambda *_, **__: torch.tensor(0.5)
        stack.enter_context(mock.patch.object(torch, "rand", half))
        yield


@contextmanager
def given_probe() -> Iterator[None]:
    """PSGD: the n-th probe of a matrix (out, in) is `normals(out, in, n)`, from 0."""
    import torch

    draws: dict[tuple[int, ...], Any] = {}

    def draw(x: Any) -> Any:
        n = next(draws.setdefault(tuple(x.shape), count()))
        return torch.from_numpy(normals(x.shape[0], x.shape[1], n)).to(x.dtype)

    with mock.patch.object(torch, "randn_like", draw):
        yield


PATCHES: dict[str, Any] = {
    "wide": wide,
    "first_gradient": first_gradient,
    "sign": sign,
    "given_noise": given_noise,
    "exact_norm": exact_norm,
    "given_probe": given_probe,
}
