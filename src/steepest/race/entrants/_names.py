"""What an expression may name: what the library's doors show, and who can race."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

from jaxtyping import PyTree

import steepest
from steepest import contrib

from ._line import brief

# A function that is annotated to return one of these makes what may be written.
_MADE = (
    steepest.GradientTransformation,
    steepest.GradientTransformationExtraArgs,
    steepest.Schedule,
    Callable[[PyTree], PyTree],  # a mask
)
_WHERE = "`steepest optimizers` lists those that can be raced by their names alone."
_Inner = steepest.core.AnyTransformation  # the type of what a transformation wraps
_WANTS_A_FUNCTION = "it takes a Python function, and none can be written here"
_WANTS_EXAMPLES = (
    "it takes a gradient for every example, and there is one for the batch"
)
_LEFT_OUT = {
    "conditionally_mask": _WANTS_A_FUNCTION,
    "conditionally_transform": _WANTS_A_FUNCTION,
    "differentially_private_aggregate": _WANTS_EXAMPLES,
    "dpsgd": _WANTS_EXAMPLES,
    "lift": _WANTS_A_FUNCTION,
    "measure_with_ema": _WANTS_A_FUNCTION,
    "monitor": _WANTS_A_FUNCTION,
    "snapshot": _WANTS_A_FUNCTION,
    "stateless": _WANTS_A_FUNCTION,
    "stateless_with_tree_map": _WANTS_A_FUNCTION,
}
# What the papers use, for arguments that have no default, and where a race needs
# another one.
_USUAL: dict[str, dict[str, Any]] = {
    "add_noise": {"key": 0},
    "lookahead": {"sync_period": 5, "slow_step_size": 0.5},
    "noisy_sgd": {"key": 0},  # as the library does, but with a warning
    "sam": {
        "adv_optimizer": steepest.chain(contrib.normalize(), steepest.sgd(0.05)),
        "opaque_mode": True,  # a step is a whole round: no look falls into a climb
    },
}


@dataclass(frozen=True)
class Entrant:
    """An optimizer that takes part.

    Attributes:
        name: how it was written.
        make: the optimizer, at a learning rate, which may be traced.
        swept: whether the learning rate makes a difference.
    """

    name: str
    make: Callable[[Any], steepest.GradientTransformation]
    swept: bool


@dataclass(frozen=True)
class Known:
    """A function of the library that an expression may call.

    Attributes:
        name: how it is written.
        maker: the function.
    """

    name: str
    maker: Callable[..., Any]

    @property
    def about(self) -> str:
        """What it is, in a line."""
        return (inspect.getdoc(self.maker) or "").partition("\n")[0]

    @property
    def is_optimizer(self) -> bool:
        """Whether its bare name is all it takes to train."""
        rates = {"learning_rate", "max_learning_rate"} & set(self.takes)
        part = self.maker.__name__.startswith("scale_by_")
        return bool(rates) and not part and set(self._required) <= {"learning_rate"}

    @cached_property
    def takes(self) -> tuple[str, ...]:
        """The names of its arguments."""
        arguments = self._signature.parameters.values()
        star = lambda p: "*" if p.kind is p.VAR_POSITIONAL else ""
        return tuple(star(p) + p.name for p in arguments)

    def expect(self, name: str) -> None:
        """Refuse the name of an argument that there is not.

        Args:
            name: of an argument.
        """
        if name not in self.takes:
            near = get_close_matches(name, self.takes, 1)
            maybe = f"; did you mean `{near[0]}`?" if near else "."
            raise self._error(f"{self.name} has no argument `{name}`{maybe}")

    def bind(
        self, args: Sequence[Any], named: Mapping[str, Any]
    ) -> inspect.BoundArguments:
        """The arguments, each at its place, with the usual ones for those left out.

        Args:
            args: those without a name.
            named: the others.
        """
        try:
            bound = self._signature.bind_partial(*args, **named)
        except TypeError as error:
            raise self._error(f"{self.name}: {error}.") from error
        for name, x in bound.arguments.items():
            parameter = self._signature.parameters[name]
            for one in x if parameter.kind is parameter.VAR_POSITIONAL else [x]:
                self._check(parameter, one)
        for name, x in _USUAL.get(self.name, {}).items():
            bound.arguments.setdefault(name, x)
        return bound

    def wants_rate(self, bound: inspect.BoundArguments) -> bool:
        """Whether it is to get the learning rate of the race.

        It is if it is not given its own, even where there is a default: a race is about
        learning rates. But what has a line search finds the length of its steps.

        Args:
            bound: as `bind` returns them.
        """
        own = self._signature.parameters
        if "learning_rate" not in own or "learning_rate" in bound.arguments:
            return False
        search = own["linesearch"].default if "linesearch" in own else None
        return bound.arguments.get("linesearch", search) is None

    def make(self, bound: inspect.BoundArguments) -> Any:
        """What the function makes of these arguments.

        Args:
            bound: as `bind` returns them, perhaps with more.
        """
        missing = [name for name in self._required if name not in bound.arguments]
        if missing:
            names = " and ".join(f"`{name}`" for name in missing)
            raise self._error(f"{self.name} is called without {names}.")
        made = self.maker(*bound.args, **bound.kwargs)
        if isinstance(made, steepest.MultiSteps):
            return made.gradient_transformation()
        return made

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.maker)

    @property
    def _required(self) -> list[str]:
        """The names of the arguments that have no default."""
        usual = _USUAL.get(self.name, {})
        return [
            p.name
            for p in self._signature.parameters.values()
            if p.default is p.empty
            and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
            and p.name not in usual
        ]

    def _check(self, parameter: inspect.Parameter, x: Any) -> None:
        """Refuse what the library would, where it could not say what was written."""
        optional = parameter.annotation == _Inner | None
        wanted = parameter.annotation == _Inner or (optional and x is not None)
        if wanted != isinstance(x, steepest.GradientTransformation):
            what = "an optimizer is wanted" if wanted else "none is wanted there"
            why = f"{self.name}: {parameter.name} is {said(x)}, and {what}."
            raise self._error(why)

    def _error(self, why: str) -> ValueError:
        return ValueError(f"{why} It takes: {', '.join(self.takes) or 'nothing'}.")


def find(name: str) -> Known:
    """What is called so.

    Args:
        name: as in `steepest`, `adamw`, or in its `contrib`, `prodigy`. Where both have
            one, that of `contrib` is `contrib.muon`.
    """
    name = name.removeprefix("steepest.")
    if name in known():
        return known()[name]
    bare = name.removeprefix("contrib.")
    if bare in _LEFT_OUT:
        raise ValueError(f"{bare} cannot take part: {_LEFT_OUT[bare]}.")
    names = dict.fromkeys(one.name for one in known().values())
    near = get_close_matches(bare.lower()[:99], names, 5)
    maybe = f"Did you mean {', '.join(near)}?" if near else _WHERE
    raise ValueError(
        "there is no optimizer, transformation or schedule called "
        f"`{brief(name)[1:-1]}`. {maybe}"
    )


def optimizers() -> list[Known]:
    """All that can be raced by their bare names, in alphabetical order."""
    named = sorted(known().items())
    return [one for name, one in named if name == one.name and one.is_optimizer]


@cache
def known() -> Mapping[str, Known]:
    """Everything that can be called, by all of its names."""
    found: dict[str, Known] = {}
    for prefix, door in (("", steepest), ("contrib.", contrib)):
        for name, thing in vars(door).items():
            if _is_maker(thing) and name not in _LEFT_OUT:
                one = Known(prefix + name if name in found else name, thing)
                found[one.name] = found[prefix + name] = one
    return MappingProxyType(found)


def said(x: Any) -> str:
    """What something is, in a word.

    Args:
        x: what an expression has made.
    """
    if isinstance(x, steepest.GradientTransformation):
        return "an optimizer"
    if callable(x):
        return "a function, such as a schedule"
    if isinstance(x, list | tuple | dict):
        return f"a {type(x).__name__}"
    return f"`{x!r}`" if isinstance(x, str | bool | None) else "a number"


def _is_maker(thing: Any) -> bool:
    if thing is steepest.MultiSteps:  # the one that is a class
        return True
    if not inspect.isfunction(thing):
        return False
    return inspect.signature(thing).return_annotation in _MADE
