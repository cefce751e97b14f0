"""The optimizers as the user passes them: texts, objects and functions.

["adamw", my_function]     {"mine": lambda rate: optax.adam(rate), "base": "adamw"}
"""

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

import steepest
from steepest.core import AnyTransformation

from ._expressions import tidy, transformation_of
from ._line import brief, SourceLine
from ._names import known
from ._own import is_optimizer, Own
from ._reader import Reader

Item = str | AnyTransformation | Callable[..., AnyTransformation]
Items = Item | Sequence[Item] | Mapping[str, Item]
Meaning = str | Own  # a text that is read again, or an object that is passed again

_LONGEST = 100  # characters of a name
_EXPECTED = (
    "expected one or more, each a name such as 'adamw', an expression such as "
    "'lookahead(adamw)', an optimizer, or a function of the learning rate that returns "
    "one."
)
_ADVICE = "Pass a dict with a name for each: {'mine': ...}."


def given(optimizers: object) -> dict[str, Meaning]:
    """What each optimizer of a race is, by its name in the tables.

    Args:
        optimizers: as for `race`.

    >>> given(["adamw", steepest.sgd(0.1)])
    {'adamw': 'adamw', 'sgd(0.1)': 'sgd(0.1)'}
    """
    meanings: dict[str, Meaning] = {}
    for key, x in _items(optimizers):
        if not (isinstance(x, str) or is_optimizer(x) or callable(x)):
            raise ValueError(
                f"race: `optimizers` is {brief(optimizers, 200)}, {_EXPECTED}"
            )
        name, meaning = _named(x) if key is None else (_checked(key), _meaning(key, x))
        if name in meanings:
            advice = "" if isinstance(x, str) else f" {_ADVICE}"
            raise ValueError(
                f"race: `optimizers` has {name} twice, expected it once.{advice}"
            )
        meanings[name] = meaning
    if not meanings:
        raise ValueError(f"race: `optimizers` is {optimizers!r}, {_EXPECTED}")
    return meanings


def _items(optimizers: object) -> list[tuple[object, object]]:
    """The optimizers, each after its name or `None`."""
    if isinstance(optimizers, Mapping):
        return list(optimizers.items())
    alone = isinstance(optimizers, str) or is_optimizer(optimizers)
    if alone or callable(optimizers) or not isinstance(optimizers, Iterable):
        optimizers = [optimizers]
    return [(None, x) for x in optimizers]


def _checked(name: object) -> str:
    if not (isinstance(name, str) and name.strip() == name and name.isprintable()):
        raise ValueError(
            f"race: `optimizers` has the name {brief(name)}, expected a string on one "
            "line."
        )
    if not 0 < len(name) <= _LONGEST:
        raise ValueError(
            f"race: `optimizers` has the name {brief(name)}, expected 1 to {_LONGEST} "
            "characters."
        )
    return name


def _named(x: object) -> tuple[str, Meaning]:
    """The name and the meaning of an optimizer that is passed without a name."""
    name = getattr(x, "__name__", "")
    meaning = _meaning(name, x)
    if is_optimizer(x) or (isinstance(meaning, str) and meaning in known()):
        name = meaning
    if isinstance(x, str):
        name = meaning
    if not isinstance(name, str) or (not name.isidentifier() and name != meaning):
        what = "an optimizer" if is_optimizer(x) else "a function"
        raise ValueError(
            f"race: `optimizers` has {what} without a name, {brief(x)}. {_ADVICE}"
        )
    return name, meaning


def _meaning(name: object, x: object) -> Meaning:
    """A text that is read as this optimizer, if there is one."""
    if isinstance(x, str):
        return tidy(x)
    text = _expression(x) if is_optimizer(x) else _found(x)
    return Own(str(name), x) if text is None else text


def _expression(tx: object) -> str | None:
    """The expression that makes an optimizer of the library."""
    if not isinstance(tx, steepest.GradientTransformation):
        return None
    line = SourceLine.of("optimizers", repr(tx))
    try:
        text = ast.unparse(_Shorter(Reader(line, {}, lambda: 1e-3)).visit(line.tree))
        return next((t for t in (text, line.text) if transformation_of(t) == tx), None)
    except (KeyError, TypeError, ValueError):  # another one of the same name
        return None


class _Shorter(ast.NodeTransformer):
    """Leaves out arguments that are the defaults, and obvious names of others."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        parameters = inspect.signature(self.reader.known(node.func).maker).parameters
        keywords = [
            k
            for k in node.keywords
            if k.arg == "learning_rate"
            or not (
                isinstance(k.value, ast.Constant)
                and repr(k.value.value) == repr(parameters[str(k.arg)].default)
            )
        ]
        order = iter(parameters.values())
        args = list(node.args)
        while not node.args and keywords:
            first = next(order)
            obvious = first.default is first.empty or first.name == "learning_rate"
            if keywords[0].arg != first.name or not obvious:
                break
            args.append(keywords.pop(0).value)
        return ast.Call(node.func, args, keywords)


def _found(f: object) -> str | None:
    """Where a function is found: the name of the library's, or `module:attribute`."""
    for name, one in known().items():
        if one.maker is f:
            return name
    module, attribute = getattr(f, "__module__", None), getattr(f, "__qualname__", "")
    if not isinstance(module, str) or module == "__main__" or "." in attribute:
        return None
    parts = module.split(".")
    for k in range(1, len(parts) + 1):  # `optax:adam`, not `optax._src.alias:adam`
        place = ".".join(parts[:k])
        if getattr(sys.modules.get(place), attribute, None) is f:
            return f"{place}:{attribute}"
    return None
