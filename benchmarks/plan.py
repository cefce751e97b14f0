"""Which optimizer is measured on which tree, how, and how often: about ten minutes.

Not everything is measured everywhere. Two optimizers on 1.5 billion params do not fit
into the memory of a small machine, so Python and the compiler are measured on the
leaves of GPT-2 XL at width 32. XLA takes minutes to compile 4804 leaves on a CPU, so
they are not compiled there. Muon is compute-bound and runs only on equal matrices.
Outside `jit`, Optax recompiles MultiSteps and Muon in every update: on 580 leaves,
MultiSteps runs once, and Muon, which takes minutes, not at all.
"""

from collections.abc import Iterator
from typing import NamedTuple

from .measure import QUANTITIES
from .optimizers import BESIDE, EVERY, Recipe, RECIPES
from .rows import Bar


class Cell(NamedTuple):
    """One kind of measurement of one optimizer on one tree."""

    section: str
    kind: str  # as in `measure.QUANTITIES`
    tree: str
    optimizer: str
    rounds: int
    seconds: float = 6.0

    @property
    def recipe(self) -> Recipe:
        """The optimizer itself."""
        known = EVERY if self.section == "every" else RECIPES | BESIDE
        return known[self.optimizer]

    @property
    def label(self) -> str:
        """The text that `--only` matches."""
        quantities = ", ".join(QUANTITIES[self.kind])
        return f"{self.section} {self.tree} {self.optimizer}: {quantities}"


def cells() -> Iterator[Cell]:
    """The whole plan, tree by tree."""
    for name in RECIPES:
        main = name == "clip+adamw"  # the targets are for this one
        yield Cell("python", "build", "xl-narrow", name, 9 if main else 3, 20.0)
        yield Cell("python", "compile", "xl-narrow", name, 2 if main else 1)
        if name not in ("multisteps", "muon"):
            yield Cell("python", "eager", "xl-narrow", name, 9 if main else 2, 20.0)
    yield Cell("python", "eager", "xl-narrow", "multisteps", 1)
    yield Cell("python", "build", "many", "adamw", 1)
    yield Cell("python", "eager", "many", "adamw", 1)
    for name in ("muon", *BESIDE):
        yield Cell("python", "program", "matrices-96", name, 7, 30.0)
    for tree in ("matrices-64", "matrices-256"):
        yield Cell("python", "build", tree, "muon", 3)
        yield Cell("python", "compile", tree, "muon", 5, 30.0)
        yield Cell("step", "step", tree, "muon", 21)
    for name in RECIPES:
        if name != "muon":
            yield Cell("step", "step", "wide", name, 21)
    for name in ("clip+adamw", "adamw", "sgd+momentum", "lion"):
        yield Cell("step", "step", "gpt2", name, 9)
    for name in ("clip+adamw", "lion"):
        yield Cell("step", "step", "vit", name, 9)
    for name in ("clip+adamw", "adamw", "sgd+momentum", "lion", "adafactor"):
        yield Cell("step", "step", "giant", name, 15)
    for name in EVERY:
        yield Cell("every", "step", "middle", name, 41, 1.5)


def thin(chosen: list[Cell]) -> list[Cell]:
    """For `--quick`: each optimizer once per kind, and some of `every`."""
    every = [cell for cell in chosen if cell.section == "every"]
    once: dict[tuple[str, str], Cell] = {}
    for cell in chosen:
        if cell not in every:
            once.setdefault((cell.kind, cell.optimizer), cell)
    return [*once.values(), *every[::9]]


BARS = [
    Bar("xl-narrow", "clip+adamw", "trace", "optax", 5.0),
    Bar("xl-narrow", "clip+adamw", "eager update", "optax", 10.0),
    Bar("xl-narrow", "clip+adamw", "eager step", "optax", 10.0),
    Bar("wide", "clip+adamw", "step", "optax", 2.0),
    Bar("matrices-*", "muon", "compile", "optax", 5.0),
    Bar("matrices-96", "muon", "program", "optax", 4.0),
    Bar("matrices-96", "soap, optax muon", "program", "optax", 1.0),
    Bar("matrices-*", "muon", "step", "optax", 1.0),
    Bar("*", "*", "step", "optax", round(1 / 1.05, 3)),
]
