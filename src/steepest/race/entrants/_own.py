"""Optimizers that are not written as text: the user's own functions and objects.

    lambda rate: optax.adam(rate)    my_module:mine    my_module:mine(weight_decay=0.1)

A function gets the learning rate of the race; an object has its own.
"""

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeGuard

import jax

import steepest
from steepest.core import ScalarOrSchedule

from ._import import described, imported, place_of
from ._line import SourceLine

Value = int | float | str | bool | None

# The argument that gets the learning rate, even if it has a default.
_RATES = "learning_rate", "lr", "rate"
_STARS = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_REFERENCE = re.compile(
    rf"((?:{_NAME}|[^(){{}}\[\]'\"]+\.py):{_NAME})(\(.*\))?", re.DOTALL
)
# What a function raises that needs the value of a traced array.
TRACED = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
ADVICE = (
    "All learning rates are one program under `jax.jit`, so the learning rate is an "
    "array without a value yet: use `jnp.where` instead of `if`, and no `float(...)`."
)


@dataclass(frozen=True, eq=False)
class Own:
    """An optimizer of the user.

    Attributes:
        name: name used in error messages.
        thing: an optimizer, or a function that returns one.
        source: where it is found, `module:attribute`; `None` if it was passed as an
            object.
        args: positional arguments of the function.
        named: keyword arguments of the function.
    """

    name: str
    thing: object
    source: str | None = None
    args: tuple[object, ...] = ()
    named: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> "Own":
        """Import an optimizer by name.

        Args:
            text: `module:attribute`, with arguments or without.
        """
        match = _REFERENCE.fullmatch(text)
        source, call = (text, None) if match is None else match.groups()
        thing = imported(source, "optimizer", is_optimizer)
        args, named = _arguments(text, call or "()")
        own = cls(source, thing, source, args, named)
        if not (is_optimizer(thing) or callable(thing)):
            raise TypeError(
                f"race: {source} is {described(thing)}, expected an optimizer, or a "
                "function of the learning rate that returns one."
            )
        if is_optimizer(thing) and call:
            raise TypeError(
                f"race: {source} is an optimizer, expected a function, because it is "
                f"called: `{text}`. Remove the `{call}`."
            )
        return own

    @property
    def text(self) -> str | None:
        """The text that `of` reads; `None` without a source."""
        if self.source is None or not (self.args or self.named):
            return self.source
        named = [f"{name}={x!r}" for name, x in self.named.items()]
        return f"{self.source}({', '.join([*map(repr, self.args), *named])})"

    @property
    def passed(self) -> tuple[str, ...]:
        """The arguments that have a value already."""
        return *list(self._parameters)[: len(self.args)], *self.named

    @property
    def takes(self) -> tuple[str, ...]:
        """The arguments that may be swept: keywords that are not passed yet."""
        return tuple(
            p.name
            for p in self._parameters.values()
            if p.kind not in (*_STARS, p.POSITIONAL_ONLY)
            and p.name not in (*self.passed, self.rate)
        )

    @property
    def open(self) -> bool:
        """Whether it takes any keyword: it has a `**`."""
        return any(p.kind is p.VAR_KEYWORD for p in self._parameters.values())

    @cached_property
    def rate(self) -> str | None:
        """The argument that gets the learning rate; `None` if it has its own."""
        by_name = [name for name in _RATES if name in self._parameters]
        required = [
            p.name
            for p in self._parameters.values()
            if p.kind is p.VAR_POSITIONAL
            or (p.default is p.empty and p.kind not in _STARS)
        ]
        return next(iter([*by_name, *required]), None)

    def given(self, argument: str, value: Value) -> "Own":
        """The optimizer with one more argument.

        Args:
            argument: one of `takes`.
            value: of the argument.
        """
        return replace(self, named={**self.named, argument: value})

    def make(
        self, rate: Callable[[], ScalarOrSchedule]
    ) -> steepest.GradientTransformation:
        """Build the optimizer.

        Args:
            rate: returns the learning rate, which may be traced, or a schedule.
        """
        made = self.thing
        if not is_optimizer(made):
            made = self._called(rate)
        whole = getattr(made, "gradient_transformation", made)  # `MultiSteps`
        made = whole() if callable(whole) else whole
        if not is_optimizer(made):
            what = "nothing" if made is None else described(made)
            raise TypeError(
                f"race: the optimizer `{self.name}` is a function that returns {what}, "
                "expected an optimizer: a pair with `init` and `update`."
            )
        # The params and the state of Optax's lookahead are read as steepest's.
        return steepest.from_optax(made)

    def code(self, rate: ast.expr) -> str:
        """Python code that makes it, if its module is imported.

        Args:
            rate: code for the learning rate.
        """
        module, _, attribute = str(self.source).rpartition(":")
        if module.endswith(".py"):
            module = Path(module).stem
        function = f"{module}.{attribute}"
        if is_optimizer(self.thing):
            return function
        items = [repr(x) for x in self.args]
        bound = self._bound()
        if self.rate is not None and self.rate not in bound.arguments:
            first = next(iter(self._parameters)) == self.rate
            items.append(f"{'' if first else f'{self.rate}='}{ast.unparse(rate)}")
        items += [f"{name}={x!r}" for name, x in self.named.items()]
        return f"{function}({', '.join(items)})"

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        if is_optimizer(self.thing):
            return {}
        return self._signature.parameters

    @cached_property
    def _signature(self) -> inspect.Signature:
        try:
            return inspect.signature(self.thing)  # pyright: ignore[reportArgumentType]
        except ValueError:  # of some functions written in C
            return inspect.signature(lambda learning_rate, /: None)

    def _bound(self) -> inspect.BoundArguments:
        try:
            return self._signature.bind_partial(*self.args, **self.named)
        except TypeError as error:
            takes = ", ".join(self._parameters) or "none"
            raise TypeError(
                f"race: the optimizer `{self.text or self.name}`: {error}. The "
                f"arguments of the function: {takes}."
            ) from error

    def _called(self, rate: Callable[[], ScalarOrSchedule]) -> object:
        """What the function returns."""
        bound = self._bound()
        shown = ", ".join(
            [*map(repr, self.args), *(f"{k}={x!r}" for k, x in self.named.items())]
        )
        why = "."
        if self.rate is not None and self.rate not in bound.arguments:
            x = rate()
            star = self._parameters[self.rate].kind is inspect.Parameter.VAR_POSITIONAL
            bound.arguments[self.rate] = (x,) if star else x
            what = "is a traced array"
            if callable(x):
                what = "is a schedule, to pass on to an optimizer"
            shown = f"{self.rate}{', ' if shown else ''}{shown}"
            why = f", where {self.rate} {what}."
        self._check(bound)
        try:
            return self.thing(*bound.args, **bound.kwargs)  # pyright: ignore
        except Exception as error:
            why += f" {ADVICE}" if isinstance(error, TRACED) else ""
            what = f"{type(error).__name__}: {str(error).strip()}".partition("\n")[0]
            raise TypeError(
                f"race: the optimizer `{self.name}` fails when called as "
                f"`{self.name}({shown})`{why} {place_of(error)}{what}"
            ) from error

    def _check(self, bound: inspect.BoundArguments) -> None:
        """Raise if a required argument is missing."""
        missing = [
            f"`{p.name}`"
            for p in self._parameters.values()
            if p.default is p.empty
            and p.kind not in _STARS
            and p.name not in bound.arguments
        ]
        if missing:
            raise TypeError(
                f"race: the function of the optimizer `{self.name}` is missing "
                f"{' and '.join(missing)}, expected a function whose only required "
                "argument is the learning rate. Give the others defaults."
            )


def is_optimizer(x: object) -> TypeGuard[steepest.core.AnyTransformation]:
    """Whether it is a pair with `init` and `update`, of any library.

    Args:
        x: any value.
    """
    if isinstance(x, type):
        return False
    return all(callable(getattr(x, name, None)) for name in ("init", "update"))


def is_reference(text: str) -> bool:
    """Whether a text is `module:attribute`, with arguments or without.

    Args:
        text: of an optimizer.
    """
    return _REFERENCE.fullmatch(text) is not None


def _arguments(text: str, call: str) -> tuple[tuple[object, ...], dict[str, object]]:
    """The arguments of a call, which are plain values."""
    line = SourceLine("optimizers", text)
    node = SourceLine("optimizers", f"f{call}").tree
    try:
        if not isinstance(node, ast.Call) or any(k.arg is None for k in node.keywords):
            raise ValueError
        args = tuple(ast.literal_eval(x) for x in node.args)
        named = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
    except ValueError:
        why = (
            "the arguments of your own function must be numbers, strings, True, False, "
            "None, or lists, tuples and dicts of them."
        )
        raise line.error(why, text.index("(")) from None
    return args, named
