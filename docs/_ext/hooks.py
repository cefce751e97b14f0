"""What the site adds to Sphinx: the reference, and links to names and to files."""

import re
import tomllib
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from . import surface
from .files import DOCS, ROOT, with_file_links
from .reference import pages


def project() -> dict:
    """The table `project` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def repository() -> str:
    """The address of the repository, or an empty string if there is none yet."""
    urls = {k.lower(): url for k, url in project().get("urls", {}).items()}
    url = urls.get("repository") or urls.get("source") or ""
    return "" if "//example.org" in url else url.rstrip("/").removesuffix(".git")


def write_reference(app: Sphinx) -> None:
    """Write the pages of the reference; a page that is unchanged is not touched."""
    folder = DOCS / "reference"
    made = {folder / f"{path}.md": text + "\n" for path, text in pages().items()}
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    for path in folder.rglob("*.md"):
        if path not in made:
            path.unlink()


def link_files(app: Sphinx, name: str, source: list[str]) -> None:
    """Links to files outside `docs` lead to the repository: see `with_file_links`."""
    page = Path(app.env.doc2path(name))
    source[0] = with_file_links(source[0], page, repository())


def drop_globs(app: Sphinx, name: str, source: list[str]) -> None:
    """Leave out patterns of the table of contents that match no page: Sphinx warns."""
    if name == app.config.root_doc:
        some = lambda m: m[0] if any(DOCS.glob(f"{m[1]}.md")) else ""
        source[0] = re.sub(r"^([\w/-]+\*)$", some, source[0], flags=re.M)


class LinkNames(SphinxTransform):
    """A public name in backticks becomes a link to its entry."""

    default_priority = 500

    def apply(self, **kwargs: object) -> None:
        """Replace the literals of this document."""
        for literal in list(self.document.findall(nodes.literal)):
            parents, node = [], literal.parent
            while node is not None:
                parents.append(node)
                node = node.parent
            where = surface.links().get(literal.astext().removesuffix("()"))
            skipped = nodes.reference | nodes.title | addnodes.pending_xref
            if where is None or any(isinstance(x, skipped) for x in parents):
                continue
            if any(where in x.get("ids", []) for x in _signatures(parents)):
                continue  # this is its entry
            options = {"refdomain": "py", "reftype": "obj", "refexplicit": True}
            xref = addnodes.pending_xref("", reftarget=where, **options)
            xref["refdoc"] = self.env.docname
            literal.replace_self(xref)
            xref += literal


def _signatures(parents: list[nodes.Node]) -> list[nodes.Element]:
    entries = [x for x in parents if isinstance(x, addnodes.desc)]
    return [y for x in entries for y in x.findall(addnodes.desc_signature)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_reference)
    app.connect("source-read", link_files)
    app.connect("source-read", drop_globs)
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
