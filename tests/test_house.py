"""The house keeps its shape: imports go one way, files stay small, doors agree."""

import ast
import inspect
from pathlib import Path

import pytest

import steepest

from .zoo import PARTS, ZOO

SRC = Path(steepest.__file__).parent
ROOT = SRC.parent.parent
ROOMS = [
    "core",
    "numerics",
    "tree",
    "engine",
    "combine",
    "schedules",
    "transforms",
    "optimizers",
    "decoupled",
]
SIDE_ROOMS = {}  # room -> the rooms it may import, where that is not all before it
FILES = sorted(SRC.rglob("*.py"))
DOORS = [path for path in FILES if path.parent == SRC or path.name == "__init__.py"]
ours = lambda paths: pytest.mark.parametrize(
    "path", paths, ids=lambda path: str(path.relative_to(ROOT))
)


def _rooms_imported(path: Path) -> set[str]:
    """The rooms that a file of a room imports from."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")
            if node.level == 2:
                found.add(module[0])
            elif node.level == 0 and module[0] == "steepest":
                found.add(".".join(module))
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.startswith("steepest")}
    return found


def test_every_room_has_its_place():
    rooms = {path.name for path in SRC.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(ROOMS)


@ours([path for path in FILES if path.parent != SRC])
def test_imports_go_one_way(path: Path):
    room = path.relative_to(SRC).parts[0]
    allowed = SIDE_ROOMS.get(room, set(ROOMS[: ROOMS.index(room)]))
    assert _rooms_imported(path) <= allowed


@ours([*FILES, *sorted((ROOT / "tests").rglob("*.py"))])
def test_files_fit_in_the_head(path: Path):
    assert len(path.read_text().splitlines()) <= 400


@ours(FILES)
def test_no_room_without_a_name(path: Path):
    bad = {"utils", "util", "misc", "common", "helpers", "_src"}
    parts = {part.removesuffix(".py").strip("_") for part in path.parts}
    assert not parts & bad


@ours(FILES)
def test_nobody_imports_a_peer(path: Path):
    """Optax, torch and the rest are there to be compared with."""
    allowed = {"jax", "jaxtyping", "numpy"}
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        for name in names:
            top = name.split(".")[0]
            assert top in allowed or top in _standard_library(), name


def _standard_library() -> frozenset[str]:
    import sys

    return sys.stdlib_module_names


@ours(DOORS)
def test_doors_hold_no_logic(path: Path):
    """A docstring, re-exports, and at the front door the version; sorted."""
    body = ast.parse(path.read_text()).body
    assert isinstance(body[0], ast.Expr), "a door says what is behind it"
    for node in body[1:]:
        if isinstance(node, ast.Assign):
            assert ast.unparse(node.targets[0]) == "__version__" and path.parent == SRC
            continue
        assert isinstance(node, ast.ImportFrom) and node.level == 1
        assert all(alias.asname == alias.name for alias in node.names)


def test_the_front_door_shows_what_the_rooms_show():
    """Of the rooms users live in, every public name."""
    for room in ("combine", "schedules", "transforms", "optimizers"):
        for name in vars(getattr(steepest, room)):
            if not name.startswith("_"):
                assert hasattr(steepest, name), f"{room}.{name}"


def test_every_optimizer_is_in_the_zoo():
    recipes = {
        name
        for name, f in vars(steepest.optimizers).items()
        if inspect.isfunction(f) and not name.startswith("scale_by_")
    }
    assert recipes <= {row.maker.__name__ for row in ZOO}


def test_every_transformation_is_in_the_zoo():
    """But for those that take functions: they have tests of their own."""
    made = {
        name
        for room in (steepest.transforms, steepest.optimizers)
        for name, f in vars(room).items()
        if inspect.isfunction(f)
    }
    rows = {row.maker.__name__ for row in ZOO + PARTS}
    assert made - rows == {"stateless_with_tree_map"}


def _public_functions():
    for module in (steepest, steepest.decoupled):
        for name, thing in vars(module).items():
            if inspect.isfunction(thing) or inspect.isclass(thing):
                yield pytest.param(thing, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("thing", list(_public_functions()))
def test_everything_public_is_described(thing):
    """What it is, and each of its arguments by name."""
    doc = inspect.getdoc(thing)
    assert doc
    if inspect.isfunction(thing):
        for name in inspect.signature(thing).parameters:
            assert name in doc or name == "params", name
