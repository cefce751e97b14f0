"""The commands of `steepest`. Their docstrings are the help text."""

import sys
from typing import Annotated, Literal

from cyclopts import App, Group, Parameter
from rich.text import Text

import steepest

from ._companions import describe, optimizers, plot_schedule, problems
from ._config import read
from ._console import console_for
from ._find_lr import find_lr
from ._parameters import (
    Count,
    File,
    Folder,
    Line,
    Log,
    Names,
    Number,
    Rates,
    Seeds,
    Sweep,
    Time,
)
from ._refusal import refusal

REFUSED = 2  # exit code for a usage error

_EVERYWHERE = Group("All commands", sort_key=9)
app = App(
    name="steepest",
    help="Which optimizer, at which learning rate, for my problem?",
    version=steepest.__version__,
    help_format="markdown",
    version_format="plaintext",
    default_parameter=Parameter(show_default=False, negative_iterable=()),
)


@app.command(sort_key=0)
def race(
    problem: Annotated[str | None, Parameter(metavar="PROBLEM")] = None,
    /,
    *,
    optimizers: Names = None,
    learning_rates: Rates = None,
    steps: Count = None,
    seeds: Seeds = None,
    target: Number = None,
    schedule: Line = None,
    time_budget: Time = None,
    sweep: Sweep = None,
    halving: bool | None = None,
    at_once: Count = None,
    config: File = None,
    out: Folder = None,
    resume: bool | None = None,
    json: File = None,
    log: Log = None,
    suite: bool | None = None,
    small: bool | None = None,
) -> int:
    """Train one model with several optimizers, each at several learning rates.

    Prints a table and writes an HTML report with plots. Omitted options default to the
    problem's. Ctrl-C stops the race and reports the results so far.

    Args:
        problem: a name listed by `steepest problems`, or your own:
            `my_module:problem`. Default: `small_bytes`; `digits` is a quick look.
        optimizers: for example `adamw,muon,"lookahead(adamw)"`. `steepest optimizers`
            lists all names. Your own: `my_module:mine`, a function of the learning
            rate.
        learning_rates: a list such as `1e-4,1e-3,1e-2`, or a geometric grid:
            `1e-4:1:8` is eight values from 1e-4 to 1.
        steps: number of training steps per run.
        seeds: the number of seeds, such as `3`, or a list of seeds, such as `0,1,7`.
        target: a value of the metric; the table shows the steps and time to reach it.
        schedule: learning-rate schedule, such as
            `"cosine_decay_schedule(rate, steps)"`.
        time_budget: stop after this time: `90s`, `5m` or `1h`.
        sweep: values of a second hyperparameter: `weight_decay=0,0.01,0.1`. Each
            optimizer that takes it runs once for each value.
        halving: stop the hopeless learning rates of each optimizer after 1/4 and 1/2 of
            the steps. The table shows how many.
        at_once: maximum number of runs in memory at once. Default: as many as fit.
        config: a TOML file with these options. The command line overrides it.
        out: folder for the report and all runs. Default: a new folder in `races`.
        resume: continue the race in `--out`, or the latest race in `races`.
        json: file for all numbers. `-` is stdout; the table then goes to stderr.
        log: also write all runs to this logger at the end.
        suite: with the problem `bytes`: tune all optimizers with the same budget, and
            compare them with AdamW and Muon. Minutes on a GPU.
        small: the suite for two cores of a CPU.
    """

    options = {
        "problem": problem,
        "optimizers": optimizers,
        "learning_rates": learning_rates,
        "steps": steps,
        "seeds": seeds,
        "target": target,
        "schedule": schedule,
        "time_budget": time_budget,
        "sweep": sweep,
        "halving": halving,
        "at_once": at_once,
        "out": out,
        "resume": resume,
        "json": json,
        "log": log,
    }
    from_file = {} if config is None else read(config)
    chosen = from_file | {key: x for key, x in options.items() if x is not None}
    if suite or small:
        from ._suite import suite as run_suite

        return run_suite(**chosen, small=bool(small))
    from ._run import run

    return run(**chosen)


_OTHERS = find_lr, describe, plot_schedule, optimizers, problems
for place, companion in enumerate(_OTHERS, 1):
    app.command(companion, sort_key=place)


@app.command(sort_key=len(_OTHERS) + 1)
def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the tab-completion script for a shell.

    In bash: `steepest completion bash >> ~/.bashrc`.

    Args:
        shell: `bash`, `zsh` or `fish`.
    """
    print(app.generate_completion(shell=shell), end="")


@app.meta.default
def launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    traceback: Annotated[bool, Parameter(negative=(), group=_EVERYWHERE)] = False,
) -> int:
    """Run a command and return the exit code. Usage errors are printed on one line.

    Args:
        tokens: the command and its arguments.
        traceback: show the full traceback of an error.
    """
    try:
        code = app(
            tokens,
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except Exception as error:
        message = None if traceback else refusal(error)
        if message is None:
            raise
        console_for(sys.stderr).print(Text.assemble(("error: ", "bold red"), message))
        return REFUSED
    return code or 0
