"""The checks of a release: what may be in the wheel."""

import tomllib
import zipfile

import pytest

import steepest
from tools import matrix, release

METADATA = """\
Metadata-Version: 2.4
Name: steepest
Version: 9.0
Summary: x
License-Expression: Apache-2.0
Requires-Python: >=3.11
Project-URL: Homepage, x
"""
GOOD = {
    "steepest/py.typed": "",
    "steepest/__main__.py": "",
    "steepest-9.0.dist-info/METADATA": METADATA,
}


def _wheel(folder, **files):
    path = folder / "steepest-9.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**GOOD, **files}.items():
            if text is not None:
                archive.writestr(name, text)
    return path


def test_a_good_wheel_passes(tmp_path):
    assert release.check_wheel(_wheel(tmp_path)) == "9.0"


@pytest.mark.parametrize(
    "files, message",
    [
        ({"tests/test_x.py": ""}, "expected only steepest"),
        ({"steepest/tests/test_x.py": ""}, "contains tests"),
        ({"steepest/py.typed": None}, "py.typed"),
        (
            {
                "steepest-9.0.dist-info/METADATA": METADATA.replace(
                    "Project-URL: Homepage, x\n", ""
                )
            },
            "no Project-URL",
        ),
    ],
)
def test_a_bad_wheel_is_rejected(tmp_path, files, message):
    with pytest.raises(SystemExit, match=message):
        release.check_wheel(_wheel(tmp_path, **files))


def test_the_oldest_versions_can_be_read_from_the_metadata():
    text = (release.ROOT / "pyproject.toml").read_text()
    needed = tomllib.loads(text)["project"]["dependencies"]
    assert all(name.count(">=") == 1 and "," not in name for name in needed)
    assert matrix.oldest(["jax>=0.10"]) == ["jax==0.10"]


def test_the_citation_has_the_version_of_the_package():
    text = (release.ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {steepest.__version__}\n" in text
