"""The benchmark of the import time."""

import pytest

from benchmarks import imports


def test_it_measures_both_libraries(capsys):
    imports.main(rounds=1)
    head, *rows = capsys.readouterr().out.splitlines()
    assert "best of 1" in head and len(rows) == 2
    assert all(float(row.split()[-1]) > 0 for row in rows)


@pytest.mark.parametrize("library", imports.LIBRARIES)
def test_making_an_optimizer_comes_after_the_import(library):
    imported, made = imports.measured(library)
    assert 0 < imported <= made
