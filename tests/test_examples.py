"""The code in the docs and the examples runs."""

import importlib.util
import re
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
# Sphinx writes the reference: its examples are doctests.
PAGES = [x for x in (ROOT / "docs").rglob("*.md") if x.parent.name != "reference"]
DOCS = [ROOT / "README.md", *sorted(PAGES)]


@pytest.fixture(autouse=True)
def _as_jax_comes():
    """JAX's default promotion, as users have it."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_in_the_docs_runs(path: Path, monkeypatch, tmp_path):
    """A page says in a comment which packages it needs: `<!-- needs: a b -->`."""
    monkeypatch.chdir(tmp_path)
    text, scope = path.read_text(), {"__name__": "docs"}
    needs = " ".join(re.findall(r"<!-- needs: (.*?) -->", text)).split()
    for package in needs:  # not imported here: the page may have to set it up first
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    with warnings.catch_warnings():
        if needs:  # warnings of other packages are not ours to fix
            warnings.simplefilter("ignore")
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


def test_every_difference_names_a_test_that_exists():
    path = ROOT / "docs" / "from-optax.md"
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


def test_tensor_parallel_training_is_that_of_one_device():
    main = importlib.import_module("examples.tensor_parallel").main
    losses, alone = main(30), main(30, jax.devices()[:1])
    np.testing.assert_allclose(losses, alone, 1e-3)
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.filterwarnings("ignore")
def test_fsdp_goes_on_from_a_checkpoint_on_other_devices(tmp_path):
    pytest.importorskip("orbax.checkpoint")
    main = importlib.import_module("examples.fsdp").main
    losses = main(tmp_path / "whole")
    assert losses[-1] < 0.3 * losses[0]
    before = main(tmp_path / "parts", 60)  # the last checkpoint is of step 50
    after = main(tmp_path / "parts", devices=jax.devices()[:2])
    assert (before, len(after)) == (losses[:60], 50)
    np.testing.assert_allclose(after, losses[50:], 1e-5)
