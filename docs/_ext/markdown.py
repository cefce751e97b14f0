"""Docstrings, signatures and references as MyST Markdown."""

import ast
import re
from copy import deepcopy
from inspect import cleandoc
from textwrap import dedent, indent

from .surface import comment_of, path_of, Thing

SECTION = re.compile(r"^(Args|Returns|Attributes|Raises):$")
FIELD = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*): ")


def escaped(text: str) -> str:
    """Plain text with `code` in it as Markdown."""
    parts = re.split(r"(`[^`]*`)", text)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([\\*_<>\[\]{}$#|~])", r"\\\1", parts[i])
    return "".join(parts)


def head(doc: str) -> str:
    """A docstring up to its arguments and examples."""
    return re.split(r"\n\n(?=(?:Args|Returns|Attributes):\n|>>> )", doc)[0]


def paragraphs(doc: str) -> str:
    """A docstring as Markdown."""
    parts = []
    for block in re.split(r"\n\n(?!    )", doc):
        first, _, rest = block.partition("\n")
        if section := SECTION.match(first):
            parts.append(_section(section[1], dedent(rest)))
        elif block.startswith(">>> "):
            parts.append(fenced("pycon", block))
        else:  # text, and formulas, which are indented
            for piece in re.split(r"\n\n+", block):
                code = piece.startswith("    ")
                plain = lambda text: _linked(escaped(text))
                parts.append(fenced("text", dedent(piece)) if code else plain(piece))
    return "\n\n".join(_joined(parts))


def fenced(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def _joined(parts: list[str]) -> list[str]:
    """Formulas with an empty line between them are one block."""
    joined: list[str] = []
    for part in parts:
        if joined and part.startswith("```text") and joined[-1].startswith("```text"):
            joined[-1] = f"{joined[-1][:-3]}\n{part.removeprefix('```text')[1:]}"
        else:
            joined.append(part)
    return joined


def _section(title: str, body: str) -> str:
    if title == "Returns":
        return f":returns: {indented(body)}"
    items = re.split(r"\n(?=\S)", body.strip("\n"))
    rows = []
    for item in items:
        names, text = FIELD.match(item), FIELD.sub("", item, count=1)
        if names is None:  # a paragraph inside the section
            rows.append(escaped(item))
            continue
        kind = {"Args": "param", "Attributes": "ivar", "Raises": "raises"}[title]
        rows.append(f":{kind} {escaped(names[1])}: {indented(text)}")
    return "\n".join(rows)


def indented(text: str) -> str:
    """The text of a field, whose further lines must be indented."""
    return indent(escaped(cleandoc(text)), "    ").strip()


def signature(module: str, node: ast.FunctionDef, bound: bool = False) -> str:
    """The arguments as they are written in the source.

    Args:
        module: the module that defines the function.
        node: the definition.
        bound: whether to leave out the first argument, `self` or `cls`.
    """
    arguments = deepcopy(node.args)
    if bound:
        first = arguments.posonlyargs or arguments.args
        del first[0]
    for values in (arguments.defaults, arguments.kw_defaults):
        values[:] = [x and _as_written(module, x) for x in values]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(arguments)}){returns}"


def _as_written(module: str, value: ast.expr) -> ast.expr:
    """A number with its digits from the source: Python writes `1e-8` as `1e-08`."""
    if not (isinstance(value, ast.Constant) and isinstance(value.value, float)):
        return value
    written = ast.get_source_segment(path_of(module).read_text(), value)
    return ast.Name(written or ast.unparse(value))


def entry(thing: Thing) -> str:
    """A function, class or value with its signature and docstring."""
    node = thing.node
    if isinstance(node, ast.FunctionDef):
        return _directive(
            "function", thing.name + signature(thing.module, node), _described(thing)
        )
    if isinstance(node, ast.ClassDef):
        return _directive(
            "class", thing.name + _fields(thing.module, node), _class(thing, node)
        )
    value = ast.unparse(node.value) if node.value else ""
    text = fenced("py", value) if len(value) < 400 else ""
    return _directive("data", thing.name, f"{_described(thing)}\n\n{text}")


def _directive(kind: str, title: str, body: str, ticks: int = 6) -> str:
    fence = "`" * ticks
    return f"{fence}{{py:{kind}}} {title}\n\n{body.strip()}\n{fence}"


def _described(thing: Thing) -> str:
    text = paragraphs(thing.doc)
    aliases = [x for x in thing.others if x.rpartition(".")[2] != thing.short]
    if aliases:
        text += "\n\nAlso " + ", ".join(f"`{x}`" for x in aliases) + "."
    return text


def _fields(module: str, node: ast.ClassDef) -> str:
    """The arguments of a class: of its `__init__`, else its annotated fields."""
    for child in node.body:
        if isinstance(child, ast.FunctionDef) and child.name == "__init__":
            return signature(module, child, bound=True).partition(" -> ")[0]
    if any("Protocol" in ast.unparse(base) for base in node.bases):
        return ""
    fields = []
    for child in node.body:
        if isinstance(child, ast.AnnAssign) and not _private(child):
            default = f" = {ast.unparse(child.value)}" if child.value else ""
            fields.append(ast.unparse(child.target) + default)
    return f"({', '.join(fields)})" if fields else ""


def _private(child: ast.AnnAssign) -> bool:
    return ast.unparse(child.target).startswith("_")


def _class(thing: Thing, node: ast.ClassDef) -> str:
    parts = [_described(thing)]
    described = re.findall(r":ivar (\S+):", parts[0])
    fields = []
    for child in node.body:
        if isinstance(child, ast.AnnAssign) and not _private(child):
            name = ast.unparse(child.target)
            about = escaped(comment_of(thing.module, child))
            if about and name not in described:
                fields.append(f":ivar {escaped(name)}: {about}")
    if fields:
        parts.append("\n".join(fields))
    for child in node.body:
        if not isinstance(child, ast.FunctionDef):
            continue
        doc = ast.get_docstring(child)
        if child.name == "__init__" and doc:
            parts.append(paragraphs(doc))
        elif doc and not child.name.startswith("_"):
            marks = [ast.unparse(x).rpartition(".")[2] for x in child.decorator_list]
            is_value = {"property", "cached_property"} & set(marks)
            static = "staticmethod" in marks
            kind = "property" if is_value else "method"
            title = child.name + (
                "" if is_value else signature(thing.module, child, bound=not static)
            )
            parts.append(_directive(kind, title, paragraphs(doc), 5))
    return "\n\n".join(part for part in parts if part)


def references(doc: str) -> list[str]:
    """The papers in the docstring of a module, as Markdown."""
    found: list[str] = []
    for block in doc.split("\n\n")[1:]:
        if re.search(r",\s(19|20)\d\d\b", block):
            complete = True
            for line in block.splitlines():
                if complete and not line.startswith("("):
                    found.append(line)
                else:
                    found[-1] += " " + line
                complete = _is_complete(found[-1])
    return [_linked(escaped(text)) for text in found]


def _is_complete(text: str) -> bool:
    """Whether a reference ends here: after its year, its address or a remark."""
    address = r"(?:arXiv|doi|openreview)[: ]\S+|[\w.]+\.\w+/\S+|, (?:19|20)\d\d"
    if text.count("(") != text.count(")"):
        return False
    return re.search(rf"(?:{address})(?: \([^()]*\))?$", text) is not None


def _linked(text: str) -> str:
    """Identifiers of papers as links."""
    plain = lambda x: x.replace("\\", "")
    link = lambda shown, url: f"[{shown}](<{plain(url)}>)"
    arxiv, doi = "https://arxiv.org/abs/", "https://doi.org/"
    review = "https://openreview.net/forum?id="
    rules = [
        (r"arXiv:([\w.]*\w)", lambda m: link(m[0], arxiv + m[1])),
        (r"doi[: ](\S*[^\s;,])", lambda m: link(m[0], doi + m[1])),
        (r"openreview (\w+)", lambda m: link(m[0], review + m[1])),
        (r"(?<![\w/:.])[\w.-]+\.(?:org|io|cc|press|edu)/\S+",
         lambda m: link(m[0], f"https://{m[0]}")),
    ]  # fmt: skip
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text
