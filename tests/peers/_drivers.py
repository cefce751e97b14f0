"""How each package makes an optimizer of some named tensors.

A driver returns an object with a method `step`, which reads the gradients in `.grad`.
Packages that are only in a repository are read from a folder of checkouts, named by the
variable `PEERS`.
"""

# pyright: reportMissingImports=false

import importlib
import logging
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
    "absl": {"logging": logging},
    "emerging_optimizers.registry": {"register_optimizer": lambda _: lambda f: f},
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
    same: Any = lambda f: f
    new = mock.patch("typing.override", same, create=True)  # since Python 3.12
    with mock.patch.object(torch, "compile", eager), new:
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


def shampoo(peer: Peer, tensors: Tensors) -> Any:
    """The configurations are objects; here they are names and numbers."""
    import torch

    package = checkout("optimizers", "distributed_shampoo")
    given = dict(peer.arguments)
    roots = {"eigh": package.EigenConfig, "newton": package.CoupledNewtonConfig}
    config = package.RootInvShampooPreconditionerConfig(
        amortized_computation_config=roots[given.pop("root")](),
        factor_matrix_dtype=torch.float64,
    )
    graft = given.pop("graft")
    return package.DistributedShampoo(
        list(tensors.values()),
        preconditioner_config=config,
        grafting_config=graft and package.AdamPreconditionerConfig(**graft),
        **given,
    )


def quintic(x: Any, epsilon: Any = None) -> Any:
    """Five steps of the original polynomial, on `x / (|x| + 1e-7)`."""
    del epsilon
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        y = x @ x.mT
        x = 3.4445 * x + (-4.7750 * y + 2.0315 * y @ y) @ x
    return x


def dion(peer: Peer, tensors: Tensors) -> Any:
    """Given the polynomials above, and AdamW for the vectors."""
    make = getattr(checkout("dion", "dion"), peer.optimizer)
    rows = [
        {"params": [x], **({} if x.ndim > 1 else {"algorithm": "adamw"})}
        for x in tensors.values()
    ]
    return make(rows, **peer.arguments, newton_schulz_func=quintic)


def kron_torch(peer: Peer, tensors: Tensors) -> Any:
    """Version 0.3.3, which never balances here: with chance 0.01 at a step."""
    make = checkout("", "kron_torch.kron").Kron(
        list(tensors.values()), **peer.arguments
    )
    make.rng = mock.Mock(random=lambda: 0.5)
    return make


DRIVERS: dict[str, Driver] = {
    "pytorch_optimizer": pytorch_optimizer,
    "adam_mini": adam_mini,
    "NorMuon": from_checkout("NorMuon", "normuon"),  # d45c9a4, 2025-12-17
    "scion": from_checkout("scion", "scion"),  # f58a393, 2026-04-08
    "MARS": from_checkout("MARS/MARS_M", "optimizers.mars"),  # 4831e28, 2026-03-25
    "C-Optim": from_checkout("", "C-Optim.c_adamw"),  # 2c0517c, 2025-08-23
    "KL-Methods": kl_methods,  # a02e622, 2026-02-15
    "Fira": from_checkout("Fira", "optimizer_torch.fira_adamw"),  # 5c28b13, 2024-10-21
    "optimizers": shampoo,  # f606606, 2026-08-05
    "Emerging-Optimizers": from_checkout(  # fd77292, 2026-08-20
        "Emerging-Optimizers", "emerging_optimizers.legacy_soap.soap"
    ),
    "dion": dion,  # 0a059a4, 2026-08-07
    "psgd_torch": from_checkout(  # a8616f1, 2026-04-02
        "psgd_torch", "wrapped_as_torch_optimizer_for_ddp", preconditioner_dtype=None
    ),
    "kron_torch": kron_torch,
    "apollo_torch": from_checkout("", "apollo_torch.apollo"),  # version 1.0.3
}
