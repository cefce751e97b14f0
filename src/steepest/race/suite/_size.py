"""Sizes of the suite: the model, the batches, and the length of the runs."""

from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Size:
    """What all runs of a suite have in common.

    Attributes:
        layers: number of layers of the transformer.
        width: width of the residual stream.
        heads: number of attention heads.
        places: length of the context, in bytes.
        batch: number of windows in a batch.
        steps: length of a full run. A short run has half as many steps.
        windows: number of windows of validation text.
        half: whether matrix products of the model are in bfloat16.
        members: number of runs in one program.
        warm: the factor on the published learning rates: short runs of small models
            need larger ones.
        more_seeds: whether arms that should be equal or close to another run with more
            than five seeds.
        arms: number of arms, most important first, unless they are named; `None` for
            all.
    """

    layers: int
    width: int
    heads: int
    places: int
    batch: int
    steps: int
    windows: int
    half: bool
    members: int = 6
    warm: float = 1.0
    more_seeds: bool = False
    arms: int | None = None

    @property
    def short(self) -> int:
        """Number of steps of a short run."""
        return max(self.steps // 2, 1)

    @property
    def lengths(self) -> tuple[int, int]:
        """A shorter and a longer run, which give the slope of the loss."""
        return max(2 * self.steps // 3, 1), 4 * self.steps // 3

    @property
    def text(self) -> int:
        """Number of bytes that the longest run reads."""
        return self.batch * self.places * self.lengths[1]

    @property
    def flops(self) -> float:
        """Operations of the model in one full run, without the optimizer's."""
        d, text = self.width, self.batch * self.places
        products = 12 * self.layers * d * d + 256 * d
        attention = 2 * self.layers * self.places * d
        return 6.0 * (products + attention) * text * self.steps

    def but(self, **changes: Any) -> "Size":
        """A copy with other values.

        Args:
            changes: values of fields; `None` keeps the value.
        """
        return replace(self, **{k: x for k, x in changes.items() if x is not None})

    def as_dict(self) -> dict[str, Any]:
        """What the numbers of a run depend on."""
        return {name: x for name, x in asdict(self).items() if name != "arms"}


SIZES = {
    # A GPU: about 0.1 seconds of model per 100 steps and run, on an H200.
    "full": Size(
        layers=4,
        width=256,
        heads=2,
        places=256,
        batch=32,
        steps=750,
        windows=2048,
        half=True,
        more_seeds=True,
    ),
    # Two cores of a CPU. With 200 steps, the order of the best was another.
    "small": Size(
        layers=2,
        width=48,
        heads=4,
        places=64,
        batch=16,
        steps=800,
        windows=512,
        half=False,
        warm=4.0,
        arms=13,
    ),
    # For tests: everything runs, and nothing is learnt.
    "tiny": Size(
        layers=1,
        width=16,
        heads=2,
        places=8,
        batch=2,
        steps=4,
        windows=4,
        half=False,
    ),
}
