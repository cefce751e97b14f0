"""The structure of the package: import order, file sizes, re-exports.

A room is a folder; a door is a module that only re-exports names.
"""

import ast
import inspect
from pathlib import Path

import pytest

import steepest
import steepest.race

from .zoo import PARTS, ZOO

SRC = Path(steepest.__file__).parent
ROOT = SRC.parent.parent
ROOMS = [
    "core",
    "check",
    "numerics",
    "tree",
    "engine",
    "combine",
    "schedules",
    "transforms",
    "optimizers",
    "matrix",
    "contrib",
    "decoupled",
    "losses",
    "projections",
    "assignment",
    "perturbations",
    "microbatching",
    "second_order",
    "experimental",
    "training",
    "exchange",
    "race",
]
GROUND = {"core", "check", "numerics", "tree"}
# room -> the rooms it may import, if not all rooms before it
SIDE_ROOMS = {
    "losses": GROUND | {"projections"},
    "projections": GROUND,
    "assignment": GROUND,
    "perturbations": GROUND,
    "microbatching": GROUND,
    "second_order": GROUND,
}
# Optax's names for the states of some transformations without state.
EMPTY_STATES = [
    "AdaptiveGradClipState",
    "AddDecayedWeightsState",
    "ClipByGlobalNormState",
    "ClipState",
    "NonNegativeParamsState",
    "ScaleByTrustRatioState",
    "ScaleState",
]
# Optax's second names for the same object, used only in doors.
SECOND_NAMES = {
    "__init__.py": {
        "multi_transform": "partition",
        "MultiTransformState": "PartitionState",
        **dict.fromkeys(EMPTY_STATES, "EmptyState"),
    },
    "tree_utils.py": {f"tree_{name}": name for name in dir(steepest.tree)},
}
# The layers of the race: each may import those before it, and its own packages.
STOREYS = {
    "_models": {"equinox", "flax"},
    "entrants": set(),
    "problems": {"sklearn"},
    "": {"scipy"},
    "report": set(),
    "suite": {"optax"},
    "terminal": {"cyclopts", "rich"},
}
FILES = sorted(SRC.rglob("*.py"))
OTHERS = [x for part in ("tests", "benchmarks") for x in (ROOT / part).rglob("*.py")]
ENGINE = SRC / "engine"
INNER = sorted(ENGINE.rglob("*.py"))
INNER_ROOMS = ["leaves", "run", "step", "storage", "placement"]
RACE = [path for path in FILES if "race" in path.relative_to(SRC).parts]
DOORS = [path for path in FILES if path.name[0] != "_" or path.name == "__init__.py"]
ours = lambda paths: pytest.mark.parametrize(
    "path", paths, ids=lambda path: str(path.relative_to(ROOT))
)


def _imported(path: Path, level: int) -> set[str]:
    """The imports of a file from this many folders above."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == level:
            names = {a.name for a in node.names}
            rooms |= {node.module.split(".")[0]} if node.module else names
    return rooms


def _rooms_imported(path: Path) -> set[str]:
    """The rooms that a file of a room imports from."""
    rooms = _imported(path, len(path.relative_to(SRC).parts))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            rooms |= {node.module} if node.module.startswith("steepest") else set()
        elif isinstance(node, ast.Import):
            rooms |= {a.name for a in node.names if a.name.startswith("steepest")}
    return rooms


def test_every_room_has_its_place():
    rooms = {path.name for path in SRC.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(ROOMS)


def _storey(path: Path) -> str:
    return path.relative_to(SRC / "race").parent.name


@ours(RACE)
def test_the_race_uses_the_doors(path: Path):
    """Only public names of the library, and only its own lower layers."""
    depth = len(path.relative_to(SRC).parts) - 1
    order = list(STOREYS)
    below = set(order[: order.index(_storey(path))])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level <= depth, "the library is imported by its name"
            first = (node.module or "").split(".")[0]
            if path.name == "_outcome.py" and first == "report":
                continue  # a race shows itself
            if path.name not in ("__init__.py", "__main__.py") and first in STOREYS:
                assert first in below or not first, first
        elif isinstance(node, ast.ImportFrom | ast.Import):
            module = getattr(node, "module", None)
            names = [module] if module else [a.name for a in node.names]
            assert not any("._" in name for name in names if name)


@ours([path for path in FILES if path.parent != SRC and path not in RACE])
def test_imports_go_one_way(path: Path):
    room = path.relative_to(SRC).parts[0]
    allowed = SIDE_ROOMS.get(room, set(ROOMS[: ROOMS.index(room)]))
    assert _rooms_imported(path) <= allowed


@ours([path for path in INNER if path.parent != ENGINE])
def test_inner_rooms_of_the_engine_import_one_way(path: Path):
    allowed = INNER_ROOMS[: INNER_ROOMS.index(path.parent.name)]
    assert _imported(path, 2) <= set(allowed)


@ours([path for path in INNER if path.name != "__init__.py"])
def test_every_file_of_the_engine_has_its_test(path: Path):
    folder = ROOT / "tests/engine" / path.relative_to(ENGINE).parent
    assert (folder / f"test{path.name}").exists()


@ours([*FILES, *sorted(OTHERS)])
def test_files_are_short(path: Path):
    assert len(path.read_text().splitlines()) <= 400


@ours(FILES)
def test_no_room_without_a_name(path: Path):
    bad = {"utils", "util", "misc", "common", "helpers", "_src"}
    parts = {part.removesuffix(".py").strip("_") for part in path.parts}
    assert not parts & bad


@ours(FILES)
def test_no_file_imports_a_peer(path: Path):
    """Optax, torch and others are used only for comparisons."""
    allowed = {"jax", "jaxtyping", "numpy"}
    if path in RACE:
        allowed |= {"steepest"} | STOREYS[_storey(path)]
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
    """A docstring and sorted re-exports; in the package itself also the version.

    The re-exports of a lazy door are in one block.
    """
    docstring, *body = ast.parse(path.read_text()).body
    assert isinstance(docstring, ast.Expr), "a door says what is behind it"
    if any(isinstance(node, ast.If) for node in body):
        typing, lazy, block, *body = body
        assert ast.unparse(typing) == "import typing as _typing"
        assert ast.unparse(lazy).endswith("import lazy as _lazy")
        assert isinstance(block, ast.If) and not block.orelse
        condition = ast.unparse(block.test)
        assert condition.startswith("_typing.TYPE_CHECKING or not _lazy(globals()")
        body += block.body
    for node in body:
        if isinstance(node, ast.Assign):
            assert ast.unparse(node.targets[0]) == "__version__" and path.parent == SRC
            continue
        if isinstance(node, ast.If):  # deprecated names
            assert ast.unparse(node.test) == "_typing.TYPE_CHECKING"
            continue
        assert isinstance(node, ast.ImportFrom) and node.level >= 1
        if node.names[0].name == "*":  # all names of a room
            assert path.parent == SRC and node.module in ROOMS
            continue
        for alias in node.names:
            second = SECOND_NAMES.get(path.name, {}).get(alias.asname)
            assert alias.name in (alias.asname, second)


def test_the_package_exports_what_the_rooms_export():
    """Every public name of the rooms meant for users."""
    for room in ("combine", "schedules", "transforms", "optimizers", "matrix"):
        for name in dir(getattr(steepest, room)):
            if not name.startswith("_"):
                assert hasattr(steepest, name), f"{room}.{name}"


def _made_in(room: str) -> set[str]:
    """The public functions defined in a room, without re-exports."""
    return {
        name
        for name, f in inspect.getmembers(getattr(steepest, room))
        if inspect.isfunction(f) and f.__module__.startswith(f"steepest.{room}.")
    }


# These take functions, other transformations, gradients with an axis of examples, or
# only matrices: they have their own tests.
OUTSIDE_THE_ZOO: set[str] = {
    "differentially_private_aggregate",
    "dpsgd",
    "ema_eval_params",
    "freeze",
    "hutchinson_estimator_diag_hessian",
    "measure_with_ema",
    "monitor",
    "per_example_global_norm_clip",
    "per_example_layer_norm_clip",
    "qk_clip",
    "scale_by_adamuon",
    "scale_by_apollo",
    "scale_by_dion2",
    "scale_by_fira",
    "scale_by_galore",
    "scale_by_muon",
    "scale_by_normuon",
    "scale_by_polar",
    "scale_by_shampoo",
    "scale_by_soap",
    "scale_by_soap_muon",
    "scale_by_splus",
    "schedule_free_eval_params",
    "scion_init",
    "selective_transform",
    "snapshot",
    "split_real_and_imaginary",
    "stateless_with_tree_map",
    "unitwise_clip",
    "unitwise_norm",
    "value_and_grad_from_state",
}


def test_every_optimizer_and_transformation_is_in_the_zoo():
    rooms = ("transforms", "optimizers", "matrix", "contrib")
    made = {name for room in rooms for name in _made_in(room)}
    rows = {row.maker.__name__ for row in ZOO + PARTS}
    assert made - rows == OUTSIDE_THE_ZOO
    recipes = (_made_in("optimizers") | _made_in("matrix")) - OUTSIDE_THE_ZOO
    recipes = {name for name in recipes if not name.startswith("scale_by_")}
    assert recipes <= {row.maker.__name__ for row in ZOO}


def _public_functions():
    doors = ["contrib", "decoupled", "losses", "microbatching", "perturbations"]
    doors += ["assignment", "projections", "second_order", "transforms", "tree"]
    race = (steepest.race, steepest.race.entrants, steepest.race.problems)
    inside = (*race, steepest.experimental.aggregating)
    for module in (steepest, *(getattr(steepest, door) for door in doors), *inside):
        for name, thing in inspect.getmembers(module):
            if inspect.isfunction(thing) or inspect.isclass(thing):
                yield pytest.param(thing, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("thing", list(_public_functions()))
def test_everything_public_is_described(thing):
    """A docstring that explains every argument by name."""
    doc = inspect.getdoc(thing)
    assert doc
    if inspect.isfunction(thing):
        for name in inspect.signature(thing).parameters:
            assert name in doc or name == "params", name
