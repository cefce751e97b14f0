"""The argument `axis_name`."""

import pytest

from steepest.core import mesh_axes


def test_equal_names_are_one_object():
    """So that formulas with them are compiled once."""
    assert mesh_axes("f", "x") is mesh_axes("f", ["x"])
    assert mesh_axes("f", ("x", "y")).names == ("x", "y")
    assert mesh_axes("f", None) is None and mesh_axes("f", ()) is None


@pytest.mark.parametrize(
    "wrong, said",
    [
        (3, "f: axis_name is a int, expected the name of a mesh axis"),
        (["x", 3], r"f: axis_name is \['x', 3\], expected"),
        (("x", "x"), r"f: axis_name is \('x', 'x'\), with one name twice, expected"),
    ],
)
def test_bad_axis_names_are_refused(wrong, said):
    with pytest.raises(TypeError, match=said):
        mesh_axes("f", wrong)
