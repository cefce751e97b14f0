"""The functions of the library that an expression may call."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from types import MappingProxyType

from jaxtyping import PyTree

import steepest
from steepest import contrib
from steepest.core import Real

from ._line import brief

# An expression may call a function if it is annotated to return one of these.
_MADE = (
    steepest.GradientTransformation,
    steepest.GradientTransformationExtraArgs,
    steepest.Schedule,
    Callable[[PyTree], PyTree],  # a mask
)
_WHERE = "`steepest optimizers` lists the optimizers that can race by name."
_Inner = steepest.core.AnyTransformation  # the type of a wrapped transformation
_WANTS_A_FUNCTION = "it takes a Python function, which cannot be written as text"
_WANTS_EXAMPLES = "it takes one gradient per example, and a race has one per batch"
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
# Values for arguments without a default, as in the papers, and defaults that a race
# replaces.
_USUAL: dict[str, dict[str, object]] = {
    "adam_h": {"adam_learning_rate": 1e-3},
    "add_noise": {"key": 0},
    "lookahead": {"sync_period": 5, "slow_step_size": 0.5},
    "muon_h": {"adam_learning_rate": 1e-3},
    "noisy_sgd": {"key": 0},  # the library's own default warns
    "sam": {
        "adv_optimizer": steepest.chain(contrib.normalize(), steepest.sgd(0.05)),
        "opaque_mode": True,  # a step is a whole round of SAM
    },
}


@dataclass(frozen=True)
class Entrant:
    """An optimizer that takes part in a race.

    Attributes:
        name: as written by the user.
        make: builds the optimizer from a learning rate, which may be traced.
        swept: whether the optimizer uses the race's learning rate.
    """

    name: str
    make: Callable[[Real], steepest.GradientTransformation]
    swept: bool


@dataclass(frozen=True)
class Known:
    """A function of the library that an expression may call.

    Attributes:
        name: its name in expressions.
        maker: the function.
    """

    name: str
    maker: Callable[..., object]

    @property
    def about(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.maker) or "").partition("\n")[0]

    @property
    def is_optimizer(self) -> bool:
        """Whether its bare name is a complete optimizer."""
        rates = {"learning_rate", "max_learning_rate"} & set(self.takes)
        part = self.maker.__name__.startswith("scale_by_")
        return bool(rates) and not part and set(self._required) <= {"learning_rate"}

    @property
    def usual(self) -> Mapping[str, object]:
        """Values for arguments that were omitted, by name."""
        return _USUAL.get(self.name, {})

    @cached_property
    def takes(self) -> tuple[str, ...]:
        """The names of its arguments."""
        arguments = self._signature.parameters.values()
        star = lambda p: "*" if p.kind is p.VAR_POSITIONAL else ""
        return tuple(star(p) + p.name for p in arguments)

    def expect(self, name: str) -> None:
        """Raise if it has no such argument.

        Args:
            name: of an argument.
        """
        if name not in self.takes:
            near = get_close_matches(name, self.takes, 1)
            maybe = f". Did you mean `{near[0]}`?" if near else "."
            raise self._error(f"{self.name} has no argument `{name}`{maybe}")

    def bind(
        self, args: Sequence[object], named: Mapping[str, object]
    ) -> inspect.BoundArguments:
        """Bind the arguments, with the usual values for omitted ones.

        Args:
            args: positional arguments.
            named: keyword arguments.
        """
        try:
            bound = self._signature.bind_partial(*args, **named)
        except TypeError as error:
            raise self._error(f"{self.name}: {error}.") from error
        for name, x in bound.arguments.items():
            parameter = self._signature.parameters[name]
            for one in x if parameter.kind is parameter.VAR_POSITIONAL else [x]:
                self._check(parameter, one)
        for name, x in self.usual.items():
            bound.arguments.setdefault(name, x)
        return bound

    def wants_rate(self, bound: inspect.BoundArguments) -> bool:
        """Whether it gets the learning rate of the race.

        It does if none was passed, even if there is a default: a race is about learning
        rates. An optimizer with a line search does not: it finds its own step size.

        Args:
            bound: as returned by `bind`.
        """
        own = self._signature.parameters
        if "learning_rate" not in own or "learning_rate" in bound.arguments:
            return False
        search = own["linesearch"].default if "linesearch" in own else None
        return bound.arguments.get("linesearch", search) is None

    def make(self, bound: inspect.BoundArguments) -> object:
        """Call the function.

        Args:
            bound: as returned by `bind`, perhaps with more arguments.
        """
        missing = [name for name in self._required if name not in bound.arguments]
        if missing:
            names = " and ".join(f"`{name}`" for name in missing)
            raise self._error(f"{self.name} is missing {names}.")
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
        return [
            p.name
            for p in self._signature.parameters.values()
            if p.default is p.empty
            and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
            and p.name not in self.usual
        ]

    def _check(self, parameter: inspect.Parameter, x: object) -> None:
        """Raise if an optimizer is passed where none belongs, or is missing."""
        optional = parameter.annotation == _Inner | None
        inner = parameter.annotation == _Inner or (optional and x is not None)
        if inner != isinstance(x, steepest.GradientTransformation):
            problem = ", expected an optimizer" if inner else ", which it does not take"
            raise self._error(
                f"{self.name}: {parameter.name} is {kind_of(x)}{problem}."
            )

    def _error(self, why: str) -> ValueError:
        takes = ", ".join(self.takes) or "none"
        return ValueError(f"{why} Its arguments: {takes}.")


def find(name: str) -> Known:
    """Look up a function by name.

    Args:
        name: in `steepest`, such as `adamw`, or in `steepest.contrib`, such as
            `prodigy`. If both have one, the latter is `contrib.muon`.
    """
    name = name.removeprefix("steepest.")
    if name in known():
        return known()[name]
    bare = name.removeprefix("contrib.")
    if bare in _LEFT_OUT:
        raise ValueError(f"{bare} cannot race: {_LEFT_OUT[bare]}.")
    names = dict.fromkeys(one.name for one in known().values())
    near = get_close_matches(bare.lower()[:99], names, 5)
    maybe = f"Did you mean {', '.join(near)}?" if near else _WHERE
    raise ValueError(
        "there is no optimizer, transformation or schedule called "
        f"`{brief(name)[1:-1]}`. {maybe}"
    )


def optimizers() -> list[Known]:
    """All optimizers that can race by their bare names, in alphabetical order."""
    named = sorted(known().items())
    return [one for name, one in named if name == one.name and one.is_optimizer]


@cache
def known() -> Mapping[str, Known]:
    """All functions that can be called, by all of their names."""
    functions: dict[str, Known] = {}
    for prefix, door in (("", steepest), ("contrib.", contrib)):
        for name, thing in inspect.getmembers(door):
            if _is_maker(thing) and name not in _LEFT_OUT:
                one = Known(prefix + name if name in functions else name, thing)
                functions[one.name] = functions[prefix + name] = one
    return MappingProxyType(functions)


def kind_of(x: object) -> str:
    """The kind of a value, in words.

    Args:
        x: the value of an expression.
    """
    if isinstance(x, steepest.GradientTransformation):
        return "an optimizer"
    if callable(x):
        return "a function, such as a schedule"
    if isinstance(x, list | tuple | dict):
        return f"a {type(x).__name__}"
    return f"`{x!r}`" if isinstance(x, str | bool | None) else "a number"


def _is_maker(thing: object) -> bool:
    if thing is steepest.MultiSteps:  # the only class
        return True
    if not inspect.isfunction(thing):
        return False
    return inspect.signature(thing).return_annotation in _MADE
