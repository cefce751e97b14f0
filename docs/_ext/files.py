"""Links from the pages to files of the repository."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\((\.\./[^)\s]+)\)")


def with_file_links(text: str, page: Path, repository: str) -> str:
    """The text of a page with links to the repository for files outside `docs`.

    In the page they are relative, so they also work where the repository is shown.

    Args:
        text: the page.
        page: its path.
        repository: the address of the repository. If it is empty, only the text of such
            a link is left.
    """

    def replaced(match: re.Match[str]) -> str:
        shown, target = match.groups()
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve()
        if file.is_relative_to(DOCS):
            return match[0]
        if not repository:
            return shown
        kind = "tree" if file.is_dir() else "blob"
        where = f"{repository}/{kind}/main/{file.relative_to(ROOT).as_posix()}"
        return f"[{shown}]({where}{'#' + anchor if anchor else ''})"

    return LINK.sub(replaced, text)
