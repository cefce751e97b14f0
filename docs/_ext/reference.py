"""The pages of the API reference, made from the source of steepest.

`pages()` returns them as text. A name that nobody put on a page goes to the page of
the folder that defines it, so a new optimizer needs no line here.
"""

import ast
import inspect
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from .markdown import entry, escaped, fenced, head, paragraphs, references
from .surface import comment_of, doors, links, parsed, Thing, things

PICTURES = Path(__file__).parents[1] / "pictures" / "trajectories"
# page -> title, introduction
GROUPS = {
    "transformations": (
        "Transformations",
        "Parts of optimizers, to be joined with `chain`: clipping, scaling, momentum, "
        "noise, weight decay, line searches, and the `scale_by_*` of every optimizer.",
    ),
    "wrappers": (
        "Wrappers",
        "Transformations made of other transformations: chains, groups, masks, "
        "gradient accumulation, skipped steps, logging, injected hyperparameters.",
    ),
    "schedules": (
        "Schedules",
        "Functions of the step count, for a learning rate or another hyperparameter.",
    ),
    "losses": ("Losses", "Functions of predictions and targets."),
    "projections": ("Projections", "The nearest point of a set."),
    "steps": (
        "Steps and storage",
        "Apply updates, make compiled steps, store the state in another dtype or pack "
        "it.",
    ),
    "tree": (
        "Trees",
        "Functions of pytrees. `steepest.tree_utils` has them by Optax's names.",
    ),
    "decoupled": (
        "Decoupled rules",
        "Update rules for adjustments from any source, as in ngc-learn.",
    ),
    "exchange": (
        "Optax, torch and JSON",
        "Convert states and transformations to Optax's and back, states also to "
        "torch's; write optimizers as JSON.",
    ),
    "second_order": ("Second order", "Products with the Hessian, and diagonals."),
    "microbatching": ("Microbatching", "Run a function on parts of a batch."),
    "perturbations": ("Perturbations", "Gradients of functions that have none."),
    "assignment": ("Assignment", "The Hungarian algorithm."),
    "experimental": ("Aggregation", "Aggregate the gradients of single examples."),
    "race": ("The race", "Compare optimizers and learning rates from Python."),
    "types": (
        "Types and rules",
        "The types of transformations, and the rules that they are made of.",
    ),
    "numerics": ("Numerics", "Functions of one array, for writing optimizers."),
    "check": ("Checks", "Checks of arguments, for writing optimizers."),
    "engine": (
        "Engine",
        "What turns rules into transformations: the rest of `steepest.core` and "
        "`steepest.engine`. These names may change.",
    ),
}
ELSEWHERE = {
    "combine": "wrappers",
    "contrib": "transformations",
    "contrib._mechanic": "wrappers",
    "contrib._sam": "wrappers",
    "contrib._schedule_free": "wrappers",
    "contrib._split_real_and_imaginary": "wrappers",
    "core": "types",
    "engine": "steps",
    "matrix": "transformations",
    "optimizers": "transformations",
    "schedules._inject": "wrappers",
    "training": "steps",
    "transforms": "transformations",
}
# Arguments of optimizers that have no default, and `key`, without which they warn.
REQUIRED = {
    "adam_learning_rate": 0.1,
    "alpha": 0.1,
    "key": 0,
    "l2_norm_clip": 1.0,
    "learning_rate": 0.1,
    "noise_multiplier": 1.0,
    "optimism": 0.1,
    "seed": 0,
}
SIDE = 1000


def page_of(thing: Thing) -> str:
    """The page that has the entry of a thing."""
    if thing.is_optimizer:
        return f"optimizers/{thing.name.removeprefix('steepest.')}"
    module = thing.module.removeprefix("steepest.")
    page = ELSEWHERE.get(module) or ELSEWHERE.get(thing.room, thing.room)
    top = thing.name.count(".") == 1
    return "engine" if page in ("steps", "types") and not top else page


@cache
def pages() -> dict[str, str]:
    """All pages of the reference, by their path without `.md`."""
    by_page: dict[str, list[Thing]] = {}
    for thing in things().values():
        by_page.setdefault(page_of(thing), []).append(thing)
    made = {"index": _index(), "names": _names()}
    recipes = [thing for thing in things().values() if thing.is_optimizer]
    made["optimizers/index"] = _optimizers(recipes)
    for page, members in by_page.items():
        if page.startswith("optimizers/"):
            made[page] = _optimizer(members[0])
        else:
            made[page] = _group(page, members)
    return made


def _toctree(entries: Iterable[str], *options: str) -> str:
    return fenced("{toctree}", "\n".join([*options, "", *entries]))


def _table(header: str, rows: Iterable[Iterable[str]]) -> str:
    lines = [header, re.sub(r"[^|]+", "---", header)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _cell(text: str) -> str:
    """Markdown inside a table, where a bar would end the cell, in code too."""
    return re.sub(r"(?<!\\)\|", r"\\|", escaped(text))


def _index() -> str:
    parts = ["# API reference", "Every public name has one entry."]
    parts.append(
        "Most names are in `steepest` itself; `steepest.contrib`, `steepest.losses`, "
        "`steepest.projections`, `steepest.tree` and others have the rest, as in "
        "Optax. {doc}`names` lists every module."
    )
    rows = [
        ["{doc}`Optimizers <optimizers/index>`", "Each with its formula and state."]
    ]
    rows += [[f"{{doc}}`{x} <{page}>`", _cell(y)] for page, (x, y) in GROUPS.items()]
    rows.append(["{doc}`Every name <names>`", "By module, second names included."])
    parts.append(_table("| page | contents |", rows))
    parts.append(_toctree(["optimizers/index", *GROUPS, "names"], ":hidden:"))
    return "\n\n".join(parts)


def _names() -> str:
    parts = ["# Every name", "The names of each module, with links to their entries."]
    every = [
        full for thing in things().values() for full in [thing.name, *thing.others]
    ]
    for door in sorted(doors()):
        mine = sorted(x for x in every if x.rpartition(".")[0] == door)
        if mine:
            listed = ", ".join(
                f"{{py:obj}}`{full.rpartition('.')[2]} <{links()[full]}>`"
                for full in mine
            )
            parts += [f"## {door}", listed]
    return "\n\n".join(parts)


def _module_doc(module: str) -> str:
    return ast.get_docstring(parsed(module)) or ""


def _group(page: str, members: list[Thing]) -> str:
    title, intro = GROUPS[page]
    parts = [f"# {title}", escaped(intro)]
    by_module: dict[str, list[Thing]] = {}
    for thing in members:
        by_module.setdefault(thing.module, []).append(thing)
    for module, inside in sorted(by_module.items()):
        doc = _module_doc(module)
        name = doc.partition("\n\n")[0].rstrip(".").replace("\n", " ")
        parts.append(f"## {escaped(name.partition(': ')[0])}")
        is_class = lambda x: isinstance(x.node, ast.ClassDef)
        for thing in sorted(inside, key=lambda x: (is_class(x), x.node.lineno)):
            parts += [entry(thing), _picture(thing, "../")]
        parts += [f"- {text}" for text in references(doc)]
    return "\n\n".join(parts)


def _optimizers(recipes: list[Thing]) -> str:
    parts = ["# Optimizers"]
    parts.append(
        f"Bytes: the state of a float32 matrix of {SIDE} x {SIDE}, with the default "
        "arguments, divided by its number of parameters."
    )
    rows = []
    for thing in sorted(recipes, key=lambda x: x.name):
        page = page_of(thing).removeprefix("optimizers/")
        rows.append([f"{{doc}}`{page} <{page}>`", _cell(thing.summary), _size(thing)])
    parts.append(_table("| optimizer | update | bytes per parameter |", rows))
    pages = [page_of(x).removeprefix("optimizers/") for x in recipes]
    parts.append(_toctree(sorted(pages), ":hidden:"))
    return "\n\n".join(parts)


def _optimizer(thing: Thing) -> str:
    page = page_of(thing).removeprefix("optimizers/")
    parts = [f"# {page}", entry(thing)]
    for other in _formulas(thing):
        parts += [f"## From `{other.short}`", paragraphs(head(other.doc))]
    if picture := _picture(thing, "../../"):
        parts += ["## Trajectory", picture]
    parts += ["## State", _state(thing)]
    found = references(_module_doc(thing.module))
    if found:
        parts += ["## References", "\n".join(f"- {text}" for text in found)]
    parts.append(f"Source: [`{_file(thing)}`](../../../{_file(thing)})")
    return "\n\n".join(parts)


def _picture(thing: Thing, up: str) -> str:
    """The path of an optimizer or wrapper on two test functions, if it was drawn."""
    full = thing.name.removeprefix("steepest.")
    taken = f"steepest.{thing.short}" in things()
    for stem in [full] if taken else [full, thing.short]:
        if (PICTURES / f"{stem}.svg").exists():
            file = f"{up}pictures/trajectories/{stem}.svg"
            about = f":alt: The path of {stem} on two test functions"
            return fenced(f"{{image}} {file}", about)
    return ""


def _file(thing: Thing) -> str:
    return f"src/{thing.module.replace('.', '/')}.py"


def _formulas(thing: Thing) -> list[Thing]:
    """The transformations of a recipe that have the formula, the nearest first.

    Its docstring names them; if not, they are in the same file.
    """
    found: list[Thing] = []
    todo = [thing]
    while todo:
        for text in re.findall(r"`([\w.]+)`", head(todo.pop(0).doc)):
            other = things().get(links().get(text, ""))
            if other and other not in [thing, *found] and _has_formula(other):
                found.append(other)
                todo.append(other)
    if not found:
        inside = [x for x in things().values() if x.module == thing.module]
        found = [x for x in inside if x.short.startswith("scale_by_")]
    return found


def _has_formula(thing: Thing) -> bool:
    """Whether it is a recipe, or a transformation with its formula in the docstring."""
    return thing.is_optimizer or "\n\n    " in head(thing.doc)


class Leaf:
    """An array of a state.

    Attributes:
        owner: the name of its class.
        field: its path inside an object of this class.
        type: its dtype and shape.
        bytes: its size.
    """

    def __init__(self, owner: str, field: str, x) -> None:
        import jax

        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            x = jax.eval_shape(jax.random.key_data, x)
        self.owner, self.field = owner, field
        self.type = f"{x.dtype}[{', '.join(map(str, x.shape))}]"
        self.bytes = x.size * x.dtype.itemsize


@cache
def _state_of(name: str) -> list[Leaf]:
    import jax

    import steepest

    maker = steepest
    for part in name.split(".")[1:]:
        maker = getattr(maker, part)
    given = {
        key: REQUIRED[key]
        for key, x in inspect.signature(maker).parameters.items()
        if x.default is x.empty or key == "key"
    }
    params = {"w": jax.ShapeDtypeStruct((SIDE, SIDE), "float32")}
    state = jax.eval_shape(maker(**given).init, params)
    leaves: list[Leaf] = []

    def visit(node, owner: str, field: str) -> None:
        if hasattr(node, "dtype"):
            leaves.append(Leaf(owner, field, node))
        elif hasattr(node, "_fields"):
            for key in node._fields:
                visit(getattr(node, key), type(node).__name__, key)
        elif isinstance(node, dict):
            for value in node.values():
                visit(value, owner, field)
        elif isinstance(node, list | tuple):
            for value in node:
                visit(value, owner, field)
        else:
            for value in jax.tree.leaves(node):
                visit(value, owner, field)

    visit(state, "", "")
    return leaves


def state_of(thing: Thing) -> list[Leaf]:
    """The arrays in the state of an optimizer, for one matrix."""
    return _state_of(thing.name)


def _size(thing: Thing) -> str:
    """Bytes of state per parameter."""
    size = sum(leaf.bytes for leaf in state_of(thing)) / SIDE**2
    return f"{size:.3g}" if size >= 1e-3 else "0"  # a count is next to nothing


def _state(thing: Thing) -> str:
    leaves = state_of(thing)
    if not leaves:
        return "No state."
    rows = []
    for leaf in leaves:
        about = _cell(_about(leaf.owner, leaf.field))
        rows.append([f"`{leaf.owner}`", f"`{leaf.field}`", f"`{leaf.type}`", about])
    text = (
        f"**{_size(thing)} bytes per parameter**, measured with `jax.eval_shape` on a "
        f"float32 matrix of {SIDE} x {SIDE}, with the default arguments:"
    )
    return f"{text}\n\n{_table('| class | field | array | meaning |', rows)}"


def _about(owner: str, field: str) -> str:
    """The comment on a field of a state class."""
    for thing in things().values():
        if isinstance(thing.node, ast.ClassDef) and thing.node.name == owner:
            for child in thing.node.body:
                if isinstance(child, ast.AnnAssign):
                    if ast.unparse(child.target) == field:
                        return comment_of(thing.module, child)
    return ""
