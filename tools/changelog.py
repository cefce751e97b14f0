"""Write `CHANGELOG.md` from the fragments in `changes/`.

    python -m tools.changelog                  # write the unreleased section
    python -m tools.changelog --check          # exit with 1 if the file is not current
    python -m tools.changelog --release 0.1.0  # name the section, remove the fragments

Released sections are kept as they are in the file. Needs only the standard library.
"""

import argparse
import datetime
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")
HEADER = """\
# Changelog

The format is [Keep a Changelog](https://keepachangelog.com/en/1.1.0/), and versions
follow [Semantic Versioning](https://semver.org/). `make changelog` writes the
unreleased section from the fragments in `changes/`: edit those, not this file.
"""
_NAME = re.compile(rf"(\d+)(?:\.([\w-]+))?\.({'|'.join(KINDS)})\.md")
_RELEASED = re.compile(r"^## \[(?!Unreleased\])", re.MULTILINE)


class Fragment(NamedTuple):
    """The changes of one kind in one issue."""

    issue: int
    name: str
    kind: str
    text: str  # a Markdown list


def fragments(folder: Path) -> list[Fragment]:
    """All fragments of a folder, by issue number and name.

    Args:
        folder: the folder. Every `.md` file in it except `README.md` is a fragment.
    """
    result = []
    for path in folder.glob("*.md"):
        if path.name == "README.md":
            continue
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise SystemExit(
                f"changes/{path.name}: expected NUMBER.KIND.md or NUMBER.NAME.KIND.md, "
                f"where KIND is one of: {', '.join(KINDS)}. Rename the file."
            )
        text = path.read_text(encoding="utf-8").strip()
        lines = text.splitlines()
        if not text or any(not line.startswith(("- ", "  ")) for line in lines):
            raise SystemExit(
                f"changes/{path.name}: expected a Markdown list. Start every change "
                "with '- ' and indent the lines that continue it by two spaces."
            )
        issue, name, kind = match.groups()
        result.append(Fragment(int(issue), name or "", kind, text))
    return sorted(result)


def section(title: str, changes: list[Fragment]) -> str:
    """One section of the changelog, with one heading for each kind of change.

    Args:
        title: the heading, without `##`.
        changes: the fragments, in the order in which they appear under each heading.
    """
    parts = [f"## {title}\n"]
    for kind in KINDS:
        texts = [change.text for change in changes if change.kind == kind]
        if texts:
            parts.append(f"### {kind.capitalize()}\n\n" + "\n".join(texts) + "\n")
    return "\n".join(parts)


def render(old: str, changes: list[Fragment], title: str = "[Unreleased]") -> str:
    """The changelog.

    Args:
        old: the present file, whose released sections are kept.
        changes: the fragments.
        title: the heading of the section that they form.
    """
    released = _RELEASED.search(old)
    kept = [old[released.start() :]] if released else []
    new = [section(title, changes)] if changes or title == "[Unreleased]" else []
    return "\n".join([HEADER, *new, *kept])


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: its arguments, those of the process by default.
    """
    parser = argparse.ArgumentParser(prog="tools.changelog", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--release", metavar="VERSION", help="close the section")
    options = parser.parse_args(arguments)

    folder, path = ROOT / "changes", ROOT / "CHANGELOG.md"
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    changes = fragments(folder)
    title = "[Unreleased]"
    if options.release:
        if not changes:
            raise SystemExit("There are no fragments in changes/: nothing to release.")
        title = f"[{options.release}] - {datetime.date.today().isoformat()}"
    new = render(old, changes, title)
    if options.check:
        if new != old:
            print("CHANGELOG.md is not current. Run: make changelog", file=sys.stderr)
        return int(new != old)
    path.write_text(new, encoding="utf-8")
    if options.release:
        for fragment in folder.glob("*.md"):
            if fragment.name != "README.md":
                fragment.unlink()
    print(f"CHANGELOG.md: {len(changes)} fragments under {title}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
