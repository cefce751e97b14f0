"""`steepest find-lr`. What needs JAX is imported inside the command."""

import sys
from typing import Annotated

from cyclopts import Parameter

from .._visible import visible
from ..report import rate
from ._console import console_for
from ._curve import draw
from ._parameters import Count, File, Number, Seeds


def find_lr(
    problem: Annotated[str, Parameter(metavar="PROBLEM")] = "digits",
    optimizer: Annotated[str, Parameter(metavar="OPTIMIZER")] = "adamw",
    /,
    *,
    lowest: Number = None,
    highest: Number = None,
    steps: Count = None,
    seeds: Seeds = None,
    svg: File = None,
) -> None:
    """Find a learning rate in one short run, while the learning rate grows.

    Plots the loss against the learning rate. Prints where the loss falls fastest and
    where it diverges.

    Args:
        problem: a name listed by `steepest problems`, or your own:
            `my_module:problem`. Default: `digits`.
        optimizer: an optimizer without a learning rate, such as
            `"sgd(momentum=0.9)"`. Default: `adamw`.
        lowest: the learning rate of the first step. Default: 1e-6.
        highest: the learning rate of the last step. Default: 10.
        steps: number of steps. Default: the problem's, at most 1000.
        seeds: the number of seeds, such as `3`, or a list of seeds, such as `0,1,7`.
            Default: the problem's.
        svg: also write the plot to this SVG file.
    """
    from .._find_lr import find_lr
    from ..report import range_test_picture

    options = {"lowest": lowest, "highest": highest, "steps": steps, "seeds": seeds}
    passed = {key: x for key, x in options.items() if x is not None}
    test = find_lr(problem, optimizer, **passed)
    width = max(min(console_for(sys.stdout).width - 20, 72), 10)
    low, high = (rate(float(r)) for r in test.rates[[0, -1]])
    below = f"{low}{high:>{width - len(low)}} learning rate"
    lines = draw(test.smooth.tolist(), len(test.rates), width, below=below)
    picture = range_test_picture(test)
    print(visible("\n".join([picture.title, *lines, "", picture.says])))
    if svg is not None:
        svg.write_text(picture.alone(), encoding="utf-8")
