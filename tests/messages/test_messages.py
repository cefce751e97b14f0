"""Errors state the function, the actual and the expected value, and what to do."""

import importlib
import inspect

import pytest

import steepest

from ._bad import Bad

_FILES = (
    "_aggregating",
    "_combine",
    "_contrib",
    "_decoupled",
    "_engine",
    "_lean",
    "_losses",
    "_muons",
    "_optimizers",
    "_riders",
    "_psgd",
    "_route",
    "_schedules",
    "_shampoo",
    "_side_rooms",
    "_soap",
    "_splus",
    "_training",
    "_transforms",
    "_tree",
    "_watched",
    "_weights",
)
_TABLES = [importlib.import_module(f"{__package__}.{name}") for name in _FILES]
BAD: dict[str, Bad] = {k: x for table in _TABLES for k, x in table.BAD.items()}
TAKES_ANYTHING = {k: x for t in _TABLES for k, x in t.TAKES_ANYTHING.items()}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_call_raises_the_right_error(name, as_users_do):
    bad = BAD[name]
    with pytest.raises(bad.kind) as raised:
        bad.call()
    rest = str(raised.value)
    for part in bad.parts:
        assert part in rest
        rest = rest[rest.index(part) + len(part) :]


# Folders whose names are public in other modules; and the functions in the race, which
# tests its own messages.
_INSIDE = (
    "core",
    "check",
    "numerics",
    "engine",
    "exchange",
    "combine",
    "matrix",
    "optimizers",
    "race",
)


def _public():
    """Every public function and class by its shortest name, such as `losses.l2`.

    Without states, protocols and warnings, which users do not call.
    """
    doors = {"": steepest, **dict(inspect.getmembers(steepest, inspect.ismodule))}
    doors["experimental.aggregating"] = steepest.experimental.aggregating
    found = {}
    for door, room in doors.items():
        for name, x in inspect.getmembers(room, callable):
            tuples = isinstance(x, type) and issubclass(x, tuple)
            ours = getattr(x, "__module__", "").startswith("steepest")
            protocol = getattr(x, "_is_protocol", False)
            warning = isinstance(x, type) and issubclass(x, Warning)
            never = tuples or protocol or warning
            if door in _INSIDE or name[0] == "_" or never or not ours:
                continue
            found.setdefault(id(x), f"{door}.{name}" if door else name)
    return sorted(found.values())


def test_every_public_function_is_in_the_table():
    known = {*BAD, *TAKES_ANYTHING}
    assert not [name for name in _public() if name not in known]
    assert not [name for name in known if name not in _public()]
