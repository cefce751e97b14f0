"""The changelog is made from the fragments."""

import pytest

from tools import changelog


def _write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name.replace('__', '.')}.md").write_text(text)
    return changelog.fragments(folder)


def test_the_committed_changelog_is_what_the_command_writes():
    committed = (changelog.ROOT / "CHANGELOG.md").read_text()
    made = changelog.render(committed, changelog.fragments(changelog.ROOT / "changes"))
    assert committed == made, "run: make changelog"


def test_fragments_are_sorted_by_issue_and_grouped_by_kind(tmp_path):
    texts = {"_10__fixed": "- ten", "_9__fixed": "- nine", "_9__race__added": "- race"}
    changes = _write(tmp_path, **{k.removeprefix("_"): t for k, t in texts.items()})
    made = changelog.section("[Unreleased]", changes)
    assert made == (
        "## [Unreleased]\n\n### Added\n\n- race\n\n### Fixed\n\n- nine\n- ten\n"
    )


def test_released_sections_are_kept(tmp_path):
    changes = _write(tmp_path, **{"1__added": "- one"})
    first = changelog.render("", changes, "[0.1.0] - 2026-01-01")
    later = changelog.render(first, _write(tmp_path, **{"1__added": "- two"}))
    assert later.index("- two") < later.index("## [0.1.0]") < later.index("- one")
    assert changelog.render(later, []).count("## [") == 2


@pytest.mark.parametrize("name, text", [("1__new", "- x"), ("1__added", "x")])
def test_a_bad_fragment_is_an_error_that_names_it(tmp_path, name, text):
    with pytest.raises(SystemExit, match=name.replace("__", ".")):
        _write(tmp_path, **{name: text})


def test_a_release_removes_the_fragments(tmp_path, monkeypatch):
    monkeypatch.setattr(changelog, "ROOT", tmp_path)
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes/README.md").write_text("# Changes\n")
    _write(tmp_path / "changes", **{"1__added": "- one"})
    assert changelog.main(["--check"]) == 1
    assert changelog.main(["--release", "0.1.0"]) == 0
    assert [path.name for path in (tmp_path / "changes").iterdir()] == ["README.md"]
    assert "## [0.1.0] - " in (tmp_path / "CHANGELOG.md").read_text()
    with pytest.raises(SystemExit, match="no fragments"):
        changelog.main(["--release", "0.2.0"])
