"""The commands of `steepest`, as functions: their docstrings are the help."""

import sys
from typing import Annotated, Literal

from cyclopts import App, Group, Parameter
from rich.text import Text

import steepest

from ._companions import describe, optimizers, plot_schedule, problems
from ._config import read
from ._console import console_for
from ._parameters import Count, File, Folder, Line, Names, Number, Rates, Seeds, Time
from ._refusal import refusal

REFUSED = 2  # the exit code of a command that was called wrongly

_EVERYWHERE = Group("Everywhere", sort_key=9)
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
    at_once: Count = None,
    config: File = None,
    out: Folder = None,
    resume: bool | None = None,
    json: File = None,
) -> int:
    """Train one model with several optimizers, each at several learning rates.

    Prints a table, and writes a report with pictures. What is said neither here nor in
    a file is up to the problem. Ctrl-C ends it with what there is.

    Args:
        problem: `digits` by default; another of `steepest problems`; or your own,
            `my_module:problem`.
        optimizers: such as `adamw,muon,"lookahead(adamw)"`; `steepest optimizers` has
            all names.
        learning_rates: such as `1e-4,1e-3,1e-2`; or `1e-4:1:8`, eight with equal
            ratios.
        steps: how many steps each run has.
        seeds: how many seeds, such as `3`; or which, such as `0,1,7`.
        target: a metric to reach; the steps and seconds until then are counted.
        schedule: how the learning rate changes, such as
            `"cosine_decay_schedule(rate, steps)"`.
        time_budget: when to end, such as `90s`, `5m` or `1h`.
        at_once: how many runs may be in memory at once; by default as many as fit.
        config: a TOML file with these options; those of the command line go first.
        out: for the report and all runs; by default a new folder in `races`.
        resume: go on with the race in that folder; by default the last in `races`.
        json: for the numbers; `-` is stdout, and then the table is on stderr.
    """
    from ._run import run

    said = {
        "problem": problem,
        "optimizers": optimizers,
        "learning_rates": learning_rates,
        "steps": steps,
        "seeds": seeds,
        "target": target,
        "schedule": schedule,
        "time_budget": time_budget,
        "at_once": at_once,
        "out": out,
        "resume": resume,
        "json": json,
    }
    told = {} if config is None else read(config)
    return run(**told | {key: x for key, x in said.items() if x is not None})


for place, companion in enumerate((describe, plot_schedule, optimizers, problems), 1):
    app.command(companion, sort_key=place)


@app.command(sort_key=5)
def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print what makes Tab complete commands and options in a shell.

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
    """Run a command; what is wrong with it is said in a line. Returns the exit code.

    Args:
        tokens: the command, and what it is told.
        traceback: show where an error comes from.
    """
    try:
        code = app(
            tokens,
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except Exception as error:
        said = None if traceback else refusal(error)
        if said is None:
            raise
        console_for(sys.stderr).print(Text.assemble(("error: ", "bold red"), said))
        return REFUSED
    return code or 0
