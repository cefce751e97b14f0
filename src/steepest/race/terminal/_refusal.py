"""Errors that the user can fix are printed on one line, without a traceback."""

import dis
import errno
from pathlib import Path

from cyclopts import CycloptsError

import steepest

_OURS = Path(steepest.__file__).parent


def refusal(error: Exception) -> str | None:
    """The message for the user; `None` for a bug, which needs its traceback.

    Args:
        error: what a command has raised.
    """
    if isinstance(error, CycloptsError) or _on_purpose(error):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{error.strerror}. Free some space and try again."
    return None


def _on_purpose(error: Exception) -> bool:
    """Whether a `raise` statement of this library raised it."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return False
    code = place.tb_frame.f_code
    raised = dis.opname[code.co_code[place.tb_lasti]] == "RAISE_VARARGS"
    return raised and Path(code.co_filename).is_relative_to(_OURS)
