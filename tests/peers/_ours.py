"""Our optimizers that must move as the peers of `_cases` did.

To add one, move its name from `WAITING` to `OURS`.
"""

from collections.abc import Callable
from typing import Any

OURS: dict[str, Callable[[], Any]] = {}

# The runs that no optimizer of ours is compared with yet -> what to write.
WAITING: dict[str, str] = {
    "soap_f1": "soap(0.02, b1=0.9, b2=0.95, weight_decay=0), refresh every step",
    "soap_f10": "the same, refresh every 10 steps",
    "soap_decay": "the same with weight_decay=0.1; the peer decays after the step",
    "soap_shampoo_beta": "refresh every 2 steps, factors' decay rate 0.8, eps=1e-3",
}
