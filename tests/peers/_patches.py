"""What `_run` replaces in a package, so that two programs can agree to six digits.

A patch is a context: the package runs inside it.
"""

from collections.abc import Iterator
from contextlib import contextmanager, ExitStack
from typing import Any
from unittest import mock


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


PATCHES: dict[str, Any] = {"wide": wide}
