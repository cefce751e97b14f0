"""The results of a race as text, plots, an HTML page and JSON."""

import typing as _typing

from steepest.core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._advice import (
        Choice as Choice,
        Recommendation as Recommendation,
        recommendation as recommendation,
    )
    from ._columns import columns as columns, notes as notes, verdict as verdict
    from ._loggers import (
        import_logger as import_logger,
        log_to as log_to,
        log_to_tensorboard as log_to_tensorboard,
        log_to_trackio as log_to_trackio,
        log_to_wandb as log_to_wandb,
        Logger as Logger,
    )
    from ._notebook import frame as frame, notebook as notebook
    from ._numbers import (
        at_rate as at_rate,
        count as count,
        number as number,
        rate as rate,
    )
    from ._page import page as page
    from ._pictures import pictures as pictures
    from ._plot import PlotLayout as PlotLayout
    from ._range_test import range_test_picture as range_test_picture
    from ._report import write_report as write_report
    from ._results import results as results
    from ._schedule import (
        guessed_steps as guessed_steps,
        schedule_picture as schedule_picture,
        schedule_values as schedule_values,
    )
