"""The text of the suite: what is read, held out and left out."""

import pytest

from steepest.race.suite._text import is_copied, long_lines, sources, without_licence

from .suites import LOREM


def test_licences_and_copies_are_left_out():
    code = b"import os\n"
    assert without_licence(b"# Copyright 2020\n# All\n\n" + code) == code
    assert without_licence(b"# A comment\n" + code) == b"# A comment\n" + code
    known = set(long_lines(LOREM))
    assert is_copied(LOREM, known) and is_copied(b"x = 1\n", known)
    other = b"".join(b"a line of its own, number %d\n" % k for k in range(9))
    assert not is_copied(other + LOREM[:90], known)


@pytest.fixture
def installation(tmp_path, monkeypatch):
    """A Python with 40 files of 100 bytes, and as many in installed packages."""
    library, packages = tmp_path / "lib", tmp_path / "lib" / "site-packages"
    for folder, letter in ((library, "s"), (packages / "some", "p")):
        folder.mkdir(parents=True)
        for k in range(40):
            text = f"# {letter} {k}, a line of its own".ljust(99) + "\n"
            (folder / f"file{k}.py").write_text(text)
    (packages / "large.py").write_text("# a table of numbers\n" * 10_000)
    (packages / "gone.py").symlink_to(packages / "nowhere.py")
    paths = {"stdlib": library, "purelib": packages, "platlib": packages}
    monkeypatch.setattr("sysconfig.get_paths", lambda: paths)
    sources.cache_clear()
    yield
    sources.cache_clear()


def test_installed_packages_add_what_the_standard_library_lacks(installation):
    library = sources(38 * 100)
    assert len(library.train) == 38 * 100 and len(library.held_out) == 2 * 100
    assert b"# p" not in library.train.tobytes()
    more = sources(60 * 100)
    assert len(more.train) == 60 * 100 and len(more.held_out) == 4 * 100
    assert more.train.tobytes().startswith(library.train.tobytes())
    assert more.train.tobytes().count(b"# p") == 22
    every = sources(10**9)  # more than there is: passes over the text
    assert len(every.train) == 76 * 100 and b"table" not in every.train.tobytes()


def test_packages_do_not_replace_the_standard_library(installation, tmp_path):
    for path in (tmp_path / "lib").glob("*.py"):
        path.unlink()
    with pytest.raises(FileNotFoundError, match=r"lib has 0 Python files\. Use a"):
        sources(100)
