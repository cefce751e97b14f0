"""Products rounded as on a GPU, in the small suite: `python -m benchmarks.roundings`.

    python -m benchmarks.roundings [--seeds 12] [muon normuon soap soap_muon muon_h]

On a GPU, optimizers of matrices round the factors of most products to 11 bits. This
trains the model of the small suite on a CPU with and without these roundings, at the
learning rates and decays that the suite chose, with other seeds, and adds the losses to
`benchmarks/results/quality-roundings.json`. Kernels are left out: what they compute is
tested elsewhere. An optimizer takes three minutes on two cores.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, ExitStack
from unittest import mock

import jax

from steepest.numerics import _eigenbasis, _in_place, _symmetric

from .other_seeds import BY_NAME, command, runs_of
from .quality import ROUNDINGS
from .variations import cost_of_roundings, Losses


@contextmanager
def rounded_as_on_a_gpu() -> Iterator[None]:
    """Inside, programs are traced as for a GPU, but without kernels."""
    with ExitStack() as stack:
        patch = lambda *args: stack.enter_context(mock.patch.object(*args))
        patch(jax, "default_backend", lambda: "gpu")
        for module in (_eigenbasis, _in_place, _symmetric):
            patch(module, "has_kernels", lambda: False)
        yield


def losses_of(name: str, seeds: Sequence[int]) -> Losses:
    """The final losses of an optimizer, with and without the roundings.

    Args:
        name: of the arm in the suite.
        seeds: of the runs.
    """
    arm = BY_NAME[name]
    jax.clear_caches()
    plain = runs_of(name, arm, seeds).nats
    jax.clear_caches()  # what was traced for a CPU
    with rounded_as_on_a_gpu():
        rounded = runs_of(name, arm, seeds).nats
    jax.clear_caches()
    return {"plain": plain, "rounded": rounded}


def main() -> None:
    """Train, save and print."""
    command(
        "roundings",
        ROUNDINGS,
        ["muon", "normuon", "muon_h", "soap", "soap_muon"],
        range(4001, 4013),  # no other program has such seeds
        losses_of,
        lambda name, known: cost_of_roundings(name, known[name]),
    )


if __name__ == "__main__":
    main()
