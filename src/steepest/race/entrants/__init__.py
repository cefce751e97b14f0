"""Optimizers and schedules written as text, which is parsed and never evaluated."""

import typing as _typing

from steepest.core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._code import code_of as code_of, number_code as number_code
    from ._expressions import (
        entrant as entrant,
        schedule_of as schedule_of,
        tidy as tidy,
        transformation_of as transformation_of,
    )
    from ._given import given as given, Items as Items, Meaning as Meaning
    from ._grid import swept as swept
    from ._import import (
        described as described,
        imported as imported,
        reason_of as reason_of,
    )
    from ._line import brief as brief
    from ._list import split_list as split_list
    from ._names import Entrant as Entrant, Known as Known, optimizers as optimizers
    from ._own import (
        ADVICE as ADVICE,
        is_reference as is_reference,
        Own as Own,
        TRACED as TRACED,
        Value as Value,
    )
