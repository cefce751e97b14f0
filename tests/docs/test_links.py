"""Links inside the repository lead somewhere, from the README and from every page."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
from _ext.files import with_file_links

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "docs" / "reference"
MADE_BY_SPHINX = {"reference/index"}
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(p for p in sorted(ROOT.glob("docs/**/*.md")) if GENERATED not in p.parents),
]
INLINE = r"!?\[[^\]]*\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)"
HTML = r"(?:src|href|srcset)=\"([^\"]+)\""
REFERENCE = r"^\[[^\]]+\]: <?(\S+?)>?$"
PICTURE = r"^```+\{(?:image|figure)\} (\S+)$"
pages = pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: str(page.relative_to(ROOT))
)


def _prose(text: str) -> str:
    """A page without its code."""
    text = re.sub(r"^(```+)(?!\{)[^\n]*\n.*?^\1$", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", lambda m: "x" * len(m[0]), text)


def _anchors(page: Path) -> set[str]:
    """The anchors of the headings, as GitHub and MyST make them."""
    text = re.sub(r"^(```+).*?^\1$", "", page.read_text(), flags=re.M | re.S)
    anchors: set[str] = set()
    for title in re.findall(r"^#+ (.*)$", text, re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        number = 0
        while (unique := f"{slug}-{number}" if number else slug) in anchors:
            number += 1
        anchors.add(unique)
    return anchors | set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))


@pages
def test_links_lead_somewhere(page: Path):
    text = _prose(page.read_text())
    targets = re.findall(INLINE, text) + re.findall(HTML, text)
    targets += re.findall(REFERENCE, text, re.M) + re.findall(PICTURE, text, re.M)
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_relative_to(ROOT) and file.exists(), target
        assert not anchor or file.suffix != ".md" or anchor in _anchors(file), target


@pages
def test_cards_and_tables_of_contents_name_pages(page: Path):
    text = page.read_text()
    names = re.findall(r"^:link: (\S+)\n:link-type: doc$", text, re.M)
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.M | re.S):
        entries = [line for line in block.splitlines() if line and line[0] != ":"]
        names += [name for name in entries if "*" not in name]
    for name in set(names) - MADE_BY_SPHINX:
        assert (page.parent / f"{name}.md").exists(), name


def test_every_page_is_in_the_table_of_contents():
    """A page in one of these folders is found by a glob; others need their line."""
    home = ROOT / "docs" / "index.md"
    listed = home.read_text()
    globs = re.findall(r"^([\w/-]+\*)$", listed, re.M)
    for page in PAGES:
        if ROOT / "docs" in page.parents and page != home:
            name = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
            by_glob = any(fnmatch(name, pattern) for pattern in globs)
            assert by_glob or re.search(rf"^{name}$", listed, re.M), name


def test_anchors_are_github_s(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One, `two_x`\n```\n# no\n```\n## A (b) c\n## A (b) c\n")
    assert _anchors(page) == {"one-two_x", "a-b-c", "a-b-c-1"}


def test_links_to_files_lead_to_the_repository():
    page = ROOT / "docs" / "guides" / "x.md"
    text = "[a](../../src/steepest/__init__.py#L1), [b](../race.md), [c](../../tests)"
    there = "https://git.invalid/steepest"
    assert with_file_links(text, page, there) == (
        f"[a]({there}/blob/main/src/steepest/__init__.py#L1), [b](../race.md), "
        f"[c]({there}/tree/main/tests)"
    )
    assert with_file_links(text, page, "") == "a, [b](../race.md), c"
