"""The code in the docs and the examples runs."""

import importlib
import re
from pathlib import Path

import jax
import pytest

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


@pytest.mark.parametrize("path", [DOCS[1]], ids=lambda path: path.name)
def test_every_difference_names_a_test_that_exists(path: Path):
    for line in re.findall(r"^\|.*\| ([^|]*) \|$", path.read_text(), re.MULTILINE):
        for file, test in re.findall(r"`([\w/]+(?:\.py|/))(?:::(\w+))?`", line):
            assert (ROOT / "tests" / file).exists(), file
            assert not test or f"def {test}(" in (ROOT / "tests" / file).read_text()


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
