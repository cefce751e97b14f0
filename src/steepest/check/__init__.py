"""Checks of arguments: `b1, b2 = check.fraction("adam", b1=b1, b2=b2)`.

Each check raises an error that names the argument, or returns the values ready to use.
"""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._arrays import (
        any_dtype as any_dtype,
        array as array,
        axes as axes,
        is_number as is_number,
        key as key,
        kind as kind,
        one_number as one_number,
        sizes as sizes,
        WrongArgument as WrongArgument,
    )
    from ._numbers import (
        amount as amount,
        finite as finite,
        fraction as fraction,
        inside as inside,
        loss as loss,
        measurable as measurable,
        negative as negative,
        nonnegative as nonnegative,
        number as number,
        period as period,
        positive as positive,
        real as real,
        unless_array as unless_array,
        whole as whole,
    )
    from ._options import (
        choice as choice,
        dtype as dtype,
        flag as flag,
        function as function,
        has_fields as has_fields,
        rate_given as rate_given,
        state_of as state_of,
        storage as storage,
    )
