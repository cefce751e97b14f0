"""The code in the docs and the examples runs."""

import importlib
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import steepest
from docs import pictures

ROOT = Path(__file__).parent.parent
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture(autouse=True)
def _as_jax_comes():
    """JAX's default promotion, as users have it."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_python_in_the_docs_runs(path: Path):
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)
    scope: dict[str, object] = {"__name__": "docs"}
    for block in blocks:
        exec(compile(block, str(path), "exec"), scope)


@pytest.mark.parametrize(
    "package, page",
    [
        ("orbax.checkpoint", "checkpoints"),
        ("safetensors", "checkpoints"),
        ("torch", "from-torch"),
        ("tqdm", "logging"),
    ],
)
def test_the_recipe_for_a_package_runs(package, page):
    """Skipped where `test_python_in_the_docs_runs` left the recipe out."""
    text = (ROOT / "docs" / "guides" / f"{page}.md").read_text()
    assert re.search(rf"^    (import|from) {re.escape(package)}\b", text, re.MULTILINE)
    pytest.importorskip(package)


def test_links_between_pages_exist():
    for page in DOCS:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            file, _, heading = link.partition("#")
            if "://" in link:
                continue
            target = page.parent / file if file else page
            assert target.exists(), f"{page.name}: {link}"
            if heading:
                titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
                slugs = [re.sub(r"[^\w\- ]", "", t).replace(" ", "-") for t in titles]
                assert heading in [s.lower() for s in slugs], f"{page.name}: {link}"


def test_every_difference_names_a_test_that_exists():
    path = ROOT / "docs" / "from-optax.md"
    for line in re.findall(r"^\|.*\| ([^|]*) \|$", path.read_text(), re.MULTILINE):
        for file, test in re.findall(r"`([\w/]+(?:\.py|/))(?:::(\w+))?`", line):
            assert (ROOT / "tests" / file).exists(), file
            assert not test or f"def {test}(" in (ROOT / "tests" / file).read_text()


def test_the_gallery_shows_every_schedule_as_it_is():
    drawn = dict(pictures.schedules())
    made = {name for name in dir(steepest.schedules) if _is_schedule(name)}
    assert {file.stem for file in drawn} == made
    numbers = re.compile(r"-?\d+\.?\d*")
    for file, svg in drawn.items():
        committed = file.read_text("utf-8")
        assert numbers.sub("", committed) == numbers.sub("", svg), file.name
        old, new = (np.array(numbers.findall(x), float) for x in (committed, svg))
        # A tenth of a pixel may round differently on another machine.
        np.testing.assert_allclose(old, new, rtol=0, atol=0.11, err_msg=file.name)


def _is_schedule(name: str) -> bool:
    kinds = "_decay", "_schedule", "_schedules"
    return name.endswith(kinds) and not name.startswith("_")


WHERE_OPTAX_IS_USED = [
    "ensemble",
    "equinox_module",
    "flax_linen",
    "flax_nnx",
    "haiku_dicts",
    "scan_training",
]


@pytest.mark.parametrize("name", WHERE_OPTAX_IS_USED)
def test_it_trains_where_optax_is_used(name):
    losses = importlib.import_module(f"examples.{name}").main()
    assert losses[-1] < 0.3 * losses[0]
