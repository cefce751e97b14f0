"""How each package makes an optimizer of some named tensors.

A driver returns an object with a method `step`, which reads the gradients in `.grad`.
"""

from collections.abc import Callable
from typing import Any

from ._cases import Peer

Tensors = dict[str, Any]


def pytorch_optimizer(peer: Peer, tensors: Tensors) -> Any:
    """Version 4.1.0, without its `foreach` paths."""
    import pytorch_optimizer as package

    make = getattr(package, peer.optimizer)
    return make(list(tensors.values()), **peer.arguments)


DRIVERS: dict[str, Callable[[Peer, Tensors], Any]] = {
    "pytorch_optimizer": pytorch_optimizer,
}
