"""Whether the name of a metric contradicts the direction that wins."""

import re
from collections.abc import Iterator

from ._problem import Problem

_WORDS = {
    "higher": set("acc accuracy auc auroc bleu f1 iou precision psnr recall".split()),
    "lower": set("error loss mae mse nll perplexity ppl regret rmse".split()),
}


def direction(problem: Problem) -> Iterator[str]:
    """A remark if a metric such as an accuracy is raced with `better="lower"`.

    That is the default of `Problem`, and the worst optimizer would win.

    Args:
        problem: a checked problem.
    """
    name = problem.measure
    if problem.metric is not None and name == Problem.measure:  # the default
        name = getattr(problem.metric, "__name__", name)
    words = {*re.findall(r"[a-z]+[0-9]*", name.lower())}
    likely = [better for better, known in _WORDS.items() if words & known]
    if len(likely) == 1 and likely[0] != problem.better:
        yield (
            f"A {problem.better} `{name}` wins in this race. If a {likely[0]} one is "
            f'better, make the problem with better="{likely[0]}".'
        )
