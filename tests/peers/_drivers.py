"""How each package makes an optimizer of some named tensors.

A driver returns an object with a method `step`, which reads the gradients in `.grad`.
Packages that are only in a repository are read from a folder of checkouts, named by the
variable `PEERS`.
"""

import importlib
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from types import ModuleType
from typing import Any
from unittest import mock

from ._cases import Peer

Tensors = dict[str, Any]
Driver = Callable[[Peer, Tensors], Any]


# What some packages import and do not need here.
STUBS: dict[str, dict[str, Any]] = {
    "transformers": {},
    "transformers.utils": {},
    "transformers.utils.versions": {"require_version": lambda _: None},
    "bitsandbytes": {},
    "bitsandbytes.functional": {},
    "bitsandbytes.optim": {},
    "bitsandbytes.optim.optimizer": {"Optimizer2State": object},
}


def checkout(folder: str, module: str) -> Any:
    """A module of a checkout, imported with `torch.compile` off."""
    import torch

    eager = lambda f=None, **_: f if f else (lambda g: g)
    for name, members in STUBS.items():
        if name not in sys.modules:
            sys.modules[name] = ModuleType(name)
            vars(sys.modules[name]).update(members)
    path = os.path.join(os.environ.get("PEERS", ""), folder)
    with mock.patch.object(torch, "compile", eager):
        with mock.patch("sys.path", [path, *sys.path]):
            return importlib.import_module(module)


def groups(peer: Peer, tensors: Tensors) -> list[dict[str, Any]]:
    """A group for each tensor, with the arguments of `groups` or `matrices`."""
    given, matrices = (peer.arguments.get(k, {}) for k in ("groups", "matrices"))
    return [
        {"params": [x], **given.get(name, {}), **(matrices if x.ndim > 1 else {})}
        for name, x in tensors.items()
    ]


def numbers(peer: Peer) -> dict[str, Any]:
    """The other arguments."""
    named = ("groups", "matrices")
    return {k: x for k, x in peer.arguments.items() if k not in named}


def pytorch_optimizer(peer: Peer, tensors: Tensors) -> Any:
    """Version 4.1.0."""
    import pytorch_optimizer as package

    make = getattr(package, peer.optimizer)
    if "Muon" not in peer.optimizer:
        return make(list(tensors.values()), **peer.arguments)
    rows = [{"params": [x], "use_muon": x.ndim > 1} for x in tensors.values()]
    return make(rows, **peer.arguments, foreach=False)


def adam_mini(peer: Peer, tensors: Tensors) -> Any:
    """Version 1.1.1, which decides by the names."""
    from adam_mini import Adam_mini

    return Adam_mini(list(tensors.items()), **peer.arguments)


def from_checkout(folder: str, module: str, **more: Any) -> Driver:
    """One whose optimizer takes groups and numbers."""

    def driver(peer: Peer, tensors: Tensors) -> Any:
        make = getattr(checkout(folder, module), peer.optimizer)
        with redirect_stdout(StringIO()):
            return make(groups(peer, tensors), **numbers(peer), **more)

    return driver


def kl_methods(peer: Peer, tensors: Tensors) -> Any:
    """All of it in float64, where the package has bfloat16 and float32."""
    import torch

    return from_checkout("KL-Methods", "optim.kl_opt", cast_dtype=torch.float64)(
        peer, tensors
    )


DRIVERS: dict[str, Driver] = {
    "pytorch_optimizer": pytorch_optimizer,
    "adam_mini": adam_mini,
    "NorMuon": from_checkout("NorMuon", "normuon"),  # d45c9a4, 2025-12-17
    "scion": from_checkout("scion", "scion"),  # f58a393, 2026-04-08
    "C-Optim": from_checkout("", "C-Optim.c_adamw"),  # 2c0517c, 2025-08-23
    "KL-Methods": kl_methods,  # a02e622, 2026-02-15
    "Fira": from_checkout("Fira", "optimizer_torch.fira_adamw"),  # 5c28b13, 2024-10-21
    "apollo_torch": from_checkout("", "apollo_torch.apollo"),  # version 1.0.3
}
