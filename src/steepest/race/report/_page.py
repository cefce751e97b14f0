"""The HTML report of a race: one self-contained page."""

import gzip
from base64 import b64encode
from pathlib import Path

import numpy as np

from .._outcome import Outcome, Sweep
from ._advice import recommendation
from ._again import command
from ._captions import captions, reading
from ._columns import columns, notes, sort_keys, verdict
from ._markup import tag, words
from ._numbers import count, listed, number, rate, seconds
from ._picture import Picture, STYLE
from ._pictures import drawn
from ._plot import keyed, NARROW, WIDE
from ._records import as_csv, standing_records
from ._results import results
from ._stopped import WHEN
from ._svg import mark, series

_DIGITS = 6  # of the numbers in the page; the file results.json has all
_HERE = Path(__file__).parent
_CSS = STYLE + (_HERE / "page.css").read_text("utf-8")
_JS = "".join((_HERE / name).read_text("utf-8") for name in ("page.js", "zoom.js"))

# The policy blocks all requests: the page works offline.
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
"""


def page(outcome: Outcome) -> str:
    """The report as HTML: light or dark, for screens of any width and for print.

    Args:
        outcome: of a race.
    """
    parts = [
        _header(outcome),
        _table(outcome) if outcome.sweeps else "",
        _notes(outcome),
        *(_figures(outcome) if outcome.sweeps else []),
        _how(outcome),
        _settings(outcome),
        tag("footer", "Made by steepest race."),
    ]
    title = tag("title", words(f"{outcome.problem}: which optimizer?"))
    body = tag("body", tag("main", *parts), f"<script>{_JS}</script>")
    return f"{_HEAD}{title}<style>{_CSS}</style>\n</head>\n{body}\n</html>\n"


def _header(outcome: Outcome) -> str:
    sweeps = outcome.sweeps
    facts = {
        "optimizers": count(len(sweeps)),
        "learning rates": count(len(_rates(outcome))),
        "seeds": count(len(_seeds(outcome))),
        "runs": count(sum(sweep.runs for sweep in sweeps)),
        "steps per run": count(max((s.planned for s in sweeps), default=0)),
        "parameters": count(max((s.parameters for s in sweeps), default=0)),
        "training time": seconds(sum(s.seconds[-1] for s in sweeps)),
    }
    return tag(
        "header",
        tag("p", "Optimizer race", class_="over"),
        tag("h1", words(outcome.problem)),
        tag("p", words(outcome.about), class_="about"),
        _advice(outcome),
        _list("facts", facts) if sweeps else "",
    )


def _advice(outcome: Outcome) -> str:
    """Which optimizer to use, with the code; the verdict if there is none."""
    advice = recommendation(outcome)
    if advice is None:
        return tag("p", words(verdict(outcome)), class_="verdict")
    first, second = advice.first, advice.second
    parts = [
        tag("h2", words(f"Use {first.title}")),
        tag("p", words(_capital(first.why))),
        _code(first.line),
    ]
    if second is not None:
        parts.append(tag("h3", words(f"Second choice: {second.title}")))
        parts.append(tag("p", words(_capital(second.why)), class_="small"))
        parts.append(_code(second.line))
    return tag("section", *parts, class_="use")


def _code(line: str) -> str:
    """A line of code, to which the script adds a button that copies it."""
    return tag("pre", tag("code", words(line)), class_="copy") if line else ""


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _table(outcome: Outcome) -> str:
    headers, rows = columns(outcome)
    # Explicit roles: on a phone the CSS shows each row as a card, not as a table row.
    top = [tag("th", words(h), scope="col", role="columnheader") for h in headers]
    body = []
    triples = zip(keyed(outcome), rows, sort_keys(outcome), strict=True)
    for (key, _), texts, sort in triples:
        name = _sign(key) + words(texts[0])
        cells = [tag("th", name, scope="row", role="rowheader")]
        for header, text, v in zip(headers[1:], texts[1:], sort[1:], strict=True):
            unbroken = words(text).replace(" = ", "&nbsp;=&nbsp;")
            known = None if np.isnan(v) else repr(v)
            told = {"data_label": header, "data_v": known}
            cells.append(tag("td", unbroken, role="cell", **told))
        body.append(tag("tr", *cells, role="row", data_s=str(key)))
    table = tag(
        "table",
        tag("thead", tag("tr", *top, role="row"), role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        role="table",
        aria_label="The optimizers, best first",
    )
    several = len(_seeds(outcome)) > 1
    explained = (
        "Each optimizer at its best learning rate, best first. "
        f"A {outcome.better} {outcome.measure} is better"
        + ("; ± is the standard deviation over the seeds." if several else ".")
    )
    return tag(
        "section",
        tag("h2", "Ranking"),
        tag("p", words(verdict(outcome))),
        tag("p", words(explained), class_="small"),
        tag("div", table, class_="scroll cards"),
    )


def _sign(key: int) -> str:
    """The coloured marker of an optimizer."""
    inside = series(key, mark(key, 0, 0, 5))
    return tag(
        "svg", inside, class_="picture sign", viewBox="-7 -7 14 14", aria_hidden="true"
    )


def _notes(outcome: Outcome) -> str:
    items = [tag("li", words(note)) for note in notes(outcome)]
    return tag("ul", *items, class_="notes") if items else ""


def _figures(outcome: Outcome) -> list[str]:
    hint = "Click a name to hide it, double-click to see it alone. Drag to zoom curves."
    inside = tag("span", hint, class_="hint"), tag("span", "Show:")
    pick = tag("div", *inside, class_="pick", hidden="")
    pairs = zip(drawn(outcome, WIDE), drawn(outcome, NARROW), strict=True)
    texts = captions(outcome)
    return [pick, *(_figure(wide, narrow, texts[wide.name]) for wide, narrow in pairs)]


def _figure(wide: Picture, narrow: Picture, text: str) -> str:
    caption = tag("figcaption", tag("h2", words(wide.title)), tag("p", words(text)))
    return tag(
        "figure", caption, wide.inline("wide"), narrow.inline("narrow"), id=wide.name
    )


def _how(outcome: Outcome) -> str:
    items = [tag("li", words(note)) for note in reading(outcome)]
    return tag(
        "section", tag("h2", "How to read this"), tag("ul", *items, class_="how")
    )


def _settings(outcome: Outcome) -> str:
    target = outcome.target
    compiling = [f"{s.name} {seconds(s.compiling)}" for s in outcome.sweeps]
    facts = {
        "machine": outcome.machine,
        "metric": f"{outcome.measure}, {outcome.better} is better",
        "target": "none" if target is None else f"{target:g}",
        "learning rates": ", ".join(rate(r) for r in _rates(outcome)) or "none",
        "seeds": ", ".join(str(s) for s in _seeds(outcome)) or "none",
        **({"halving": WHEN} if outcome.halving else {}),
        "compile time": listed(compiling, len(compiling)) or "none",
    }
    inside = [tag("h2", "Settings"), _list("settings", facts)]
    again = command(outcome)
    if again is not None:
        inside += [tag("p", "To run it again:", class_="again"), _code(again)]
    if outcome.sweeps:
        inside += [_everything(outcome), _downloads(outcome)]
    return tag("section", *inside)


def _downloads(outcome: Outcome) -> str:
    """The numbers as files, inside the page; the script offers them."""
    table = as_csv(standing_records(outcome))
    files = {"table.csv": table, "results.json": results(outcome, _DIGITS)}
    parts = []
    for name, text in files.items():
        packed = b64encode(gzip.compress(text.encode(), mtime=0)).decode()
        kind = {"type": "application/octet-stream", "data_file": name}
        parts.append(tag("script", packed, **kind))
    return tag("p", *parts, class_="files", hidden="")


def _everything(outcome: Outcome) -> str:
    """The numbers behind the learning-rate plot."""
    rates = [*_rates(outcome), *([None] if _some_unswept(outcome) else [])]
    top = [tag("th", words("optimizer"), scope="col")]
    top += [tag("th", words(_named(r)), scope="col") for r in rates]
    body = []
    for sweep in outcome.sweeps:
        cells = [tag("th", words(sweep.name), scope="row")]
        cells += [_cell(sweep, r) for r in rates]
        body.append(tag("tr", *cells))
    table = tag("table", tag("thead", tag("tr", *top)), tag("tbody", *body))
    summary = f"Final {words(outcome.measure)} at every learning rate"
    inside = tag("div", table, class_="scroll plain", tabindex="0")
    return tag("details", tag("summary", summary), inside)


def _cell(sweep: Sweep, r: float | None) -> str:
    if r not in sweep.rates:
        return tag("td")
    k = sweep.rates.index(r)
    gone = int(sweep.diverged[k].sum())
    if k not in sweep.running:
        then = f"stopped at step {count(sweep.stopped[k])}"
        return tag("td", words(f"{then}, diverged" if gone else then), class_="gone")
    if gone:
        text = "diverged" if gone == len(sweep.seeds) else f"{gone} diverged"
        return tag("td", text, class_="gone")
    return tag("td", words(number(float(np.mean(sweep.metric[k, :, -1])))))


def _named(r: float | None) -> str:
    return "no rate" if r is None else rate(r)


def _list(kind: str, facts: dict[str, str]) -> str:
    pairs = [
        tag("div", tag("dt", words(k)), tag("dd", words(v)))
        if kind == "facts"
        else tag("dt", words(k)) + tag("dd", words(v))
        for k, v in facts.items()
    ]
    return tag("dl", *pairs, class_=kind)


def _rates(outcome: Outcome) -> list[float]:
    return sorted({r for s in outcome.sweeps for r in s.rates if r is not None})


def _seeds(outcome: Outcome) -> list[int]:
    return sorted({seed for sweep in outcome.sweeps for seed in sweep.seeds})


def _some_unswept(outcome: Outcome) -> bool:
    return any(None in sweep.rates for sweep in outcome.sweeps)
