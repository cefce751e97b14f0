"""What `_run` replaces in a package, so that two programs can agree to six digits.

A patch is a context: the package runs inside it.
"""

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
    from pytorch_optimizer import MARS

    init = MARS.init_group

    def begin(self: Any, group: Any, **more: Any) -> None:
        init(self, group, **more)
        if group["step"] == 0:
            for p in group["params"]:
                self.state[p]["last_grad"] = p.grad.clone()

    with mock.patch.object(MARS, "init_group", begin):
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


PATCHES: dict[str, Any] = {
    "wide": wide,
    "first_gradient": first_gradient,
    "given_noise": given_noise,
}
