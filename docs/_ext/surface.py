"""Every public name of steepest, read from its source: no module is imported.

A door is a module that only re-exports names. A name behind several doors is one
`Thing`, with one entry in the reference, under the first of its names in `DOORS`.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
# Where users look for a name first. All other doors come after these.
DOORS = ["steepest", "steepest.contrib", "steepest.losses", "steepest.projections"]
DOORS += ["steepest.tree", "steepest.decoupled", "steepest.race", "steepest.numerics"]


@dataclass
class Thing:
    """A public function, class or value.

    Attributes:
        name: its full public name, such as `steepest.contrib.sam`.
        module: the module that defines it, such as `steepest.contrib._sam`.
        node: its definition.
        others: its other full public names.
    """

    name: str
    module: str
    node: ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
    others: list[str] = field(default_factory=list)

    @property
    def short(self) -> str:
        """The name without its module."""
        return self.name.rpartition(".")[2]

    @property
    def room(self) -> str:
        """The folder that defines it."""
        return self.module.split(".")[1]

    @cached_property
    def doc(self) -> str:
        """The docstring, or an empty string."""
        if isinstance(self.node, ast.FunctionDef | ast.ClassDef):
            return ast.get_docstring(self.node) or ""
        return comment_of(self.module, self.node)

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring, in one line."""
        return " ".join(self.doc.partition("\n\n")[0].split())

    @property
    def decorators(self) -> list[str]:
        """The decorators of a function or class."""
        return [ast.unparse(x) for x in getattr(self.node, "decorator_list", [])]

    @property
    def is_optimizer(self) -> bool:
        """Whether it is a recipe with a page of its own."""
        return self.short == "lbfgs" or "optimizer" in self.decorators


@cache
def path_of(module: str) -> Path:
    """The file of a module."""
    path = SRC / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def parsed(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path_of(module).read_text())


def doors() -> list[str]:
    """All doors by name, those of `DOORS` first."""
    found = []
    for path in sorted((SRC / "steepest").rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            found.append(".".join(parts))
    return DOORS + [door for door in found if door not in DOORS]


def exported(door: str, deprecated: bool = False) -> Iterator[tuple[str, str, str]]:
    """The public names of a door, each with the module and name it is imported from.

    Args:
        door: the name of the module.
        deprecated: whether to return the deprecated ones instead, which stand in a
            block for type checkers only.
    """
    package = door if path_of(door).name == "__init__.py" else door.rpartition(".")[0]
    body = []
    for node in parsed(door).body:
        block = node.body if isinstance(node, ast.If) else [node]
        only_types = (
            isinstance(node, ast.If)
            and ast.unparse(node.test) == "_typing.TYPE_CHECKING"
        )
        body += block if only_types == deprecated else []
    for node in body:
        if not (isinstance(node, ast.ImportFrom) and node.level and node.module):
            continue
        parts = package.split(".")
        above = parts[: len(parts) - node.level + 1]
        if node.names[0].name == "*":  # all names of another door
            room = ".".join([*above, node.module])
            yield from ((name, room, name) for name, _, _ in exported(room))
            continue
        for alias in node.names:
            name = alias.asname or alias.name
            if not name.startswith("_"):
                yield name, ".".join([*above, node.module]), alias.name


def origin(module: str, name: str) -> tuple[str, str]:
    """The module that defines a name, and the name there."""
    for own, source, original in exported(module):
        if own == name:
            return origin(source, original)
    return module, name


def definition(
    module: str, name: str
) -> ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign:
    """The statement of a module that defines a name; for overloads, the last."""
    for node in reversed(parsed(module).body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if any(isinstance(x, ast.Name) and x.id == name for x in targets):
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            return node
    raise LookupError(f"{module} does not define {name}")


def comment_of(module: str, node: ast.stmt) -> str:
    """The comment on the last line of a statement, else the comments above it."""
    lines = path_of(module).read_text().splitlines()
    _, mark, text = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")
    if mark and "pyright" not in text and "noqa" not in text:
        return text
    above: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.strip().startswith("# "):
            break
        above.insert(0, line.strip()[2:])
    return " ".join(above)


@cache
def things() -> dict[str, Thing]:
    """Everything public, by full name."""
    found: dict[tuple[str, str], Thing] = {}
    for door, deprecated in [(x, old) for old in (False, True) for x in doors()]:
        names = [(x, origin(*source)) for x, *source in exported(door, deprecated)]
        # A second name, such as `multi_transform`, comes after the first, `partition`.
        for name, where in sorted(names, key=lambda x: x[0] != x[1][1]):
            full = f"{door}.{name}"
            if where in found:
                found[where].others.append(full)
            else:
                found[where] = Thing(full, where[0], definition(*where))
    return {thing.name: thing for thing in found.values()}


@cache
def links() -> dict[str, str]:
    """The entry for each text in backticks that becomes a link.

    These are full names, and short ones that are unlikely to mean an argument: those
    with an underscore or a capital letter, of optimizers and of wrappers.
    """
    known: dict[str, str] = {}
    for name, thing in things().items():
        for full in [name, *thing.others]:
            known.setdefault(full, name)
            known.setdefault(full.removeprefix("steepest."), name)
    for name, thing in things().items():
        short = thing.short
        clear = "_" in short.strip("_") or short[0].isupper()
        if clear or thing.is_optimizer or thing.room == "combine":
            known.setdefault(short, name)
        elif known.get(short) == name:
            del known[short]
    return known
