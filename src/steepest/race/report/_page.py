"""The report of a race: one page, with everything in it."""

from pathlib import Path

import numpy as np

from .._outcome import Outcome, Sweep
from ._captions import captions, reading
from ._columns import columns, notes, verdict
from ._markup import tag, words
from ._numbers import count, listed, number, rate, seconds
from ._picture import Picture, STYLE
from ._pictures import drawn
from ._plot import keyed, NARROW, WIDE
from ._svg import mark, series

_HERE = Path(__file__).parent
_CSS = STYLE + (_HERE / "page.css").read_text("utf-8")
_JS = (_HERE / "page.js").read_text("utf-8")

# Nothing is fetched from anywhere, and nothing can be.
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
    """The text of an HTML file: light or dark, for screens of any width, and paper.

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
        tag("footer", "Made by steepest, the race."),
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
        "steps of a run": count(max((s.planned for s in sweeps), default=0)),
        "parameters": count(max((s.parameters for s in sweeps), default=0)),
        "training": seconds(sum(s.seconds[-1] for s in sweeps)),
    }
    return tag(
        "header",
        tag("p", "The race", class_="over"),
        tag("h1", words(outcome.problem)),
        tag("p", words(outcome.about), class_="about"),
        tag("p", words(verdict(outcome)), class_="verdict"),
        _list("facts", facts) if sweeps else "",
    )


def _table(outcome: Outcome) -> str:
    headers, rows = columns(outcome)
    # Roles are said again, since a phone shows each row as a card.
    top = [tag("th", words(h), scope="col", role="columnheader") for h in headers]
    body = []
    for (key, _), texts in zip(keyed(outcome), rows, strict=True):
        name = _sign(key) + words(texts[0])
        cells = [tag("th", name, scope="row", role="rowheader")]
        for header, told in zip(headers[1:], texts[1:], strict=True):
            whole = words(told).replace(" = ", "&nbsp;=&nbsp;")
            cells.append(tag("td", whole, role="cell", data_label=header))
        body.append(tag("tr", *cells, role="row", data_s=str(key)))
    table = tag(
        "table",
        tag("thead", tag("tr", *top, role="row"), role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        role="table",
        aria_label="The optimizers, the best one first",
    )
    explained = (
        f"Each optimizer at its best learning rate, the best one first. "
        f"A {outcome.better} {outcome.measure} is better; ± is the standard deviation "
        "over the seeds."
    )
    return tag(
        "section",
        tag("h2", "Who is best"),
        tag("p", words(explained), class_="small"),
        tag("div", table, class_="scroll cards"),
    )


def _sign(key: int) -> str:
    """The colour and the sign of an optimizer."""
    inside = series(key, mark(key, 0, 0, 5))
    return tag(
        "svg", inside, class_="picture sign", viewBox="-7 -7 14 14", aria_hidden="true"
    )


def _notes(outcome: Outcome) -> str:
    found = [tag("li", words(note)) for note in notes(outcome)]
    return tag("ul", *found, class_="notes") if found else ""


def _figures(outcome: Outcome) -> list[str]:
    pick = tag("div", tag("span", "Pick one out:"), class_="pick", hidden="")
    pairs = zip(drawn(outcome, WIDE), drawn(outcome, NARROW), strict=True)
    told = captions(outcome)
    return [pick, *(_figure(wide, narrow, told[wide.name]) for wide, narrow in pairs)]


def _figure(wide: Picture, narrow: Picture, told: str) -> str:
    caption = tag("figcaption", tag("h2", words(wide.title)), tag("p", words(told)))
    return tag(
        "figure", caption, wide.inline("wide"), narrow.inline("narrow"), id=wide.name
    )


def _how(outcome: Outcome) -> str:
    items = [tag("li", words(told)) for told in reading(outcome)]
    return tag(
        "section", tag("h2", "How to read this"), tag("ul", *items, class_="how")
    )


def _settings(outcome: Outcome) -> str:
    target = outcome.target
    compiling = [f"{s.name} {seconds(s.compiling)}" for s in outcome.sweeps]
    facts = {
        "machine": outcome.machine,
        "measure": f"{outcome.measure}, {outcome.better} is better",
        "target": "none" if target is None else f"{target:g}",
        "learning rates": ", ".join(rate(r) for r in _rates(outcome)) or "none",
        "seeds": ", ".join(str(s) for s in _seeds(outcome)) or "none",
        "compiling": listed(compiling, len(compiling)) or "nothing",
    }
    inside = [tag("h2", "Settings"), _list("settings", facts)]
    if outcome.sweeps:
        inside.append(_everything(outcome))
    return tag("section", *inside)


def _everything(outcome: Outcome) -> str:
    """The numbers behind the picture of learning rates."""
    rates = [*_rates(outcome), *([None] if _some_unswept(outcome) else [])]
    top = [tag("th", words("optimizer"), scope="col")]
    top += [tag("th", words(_named(r)), scope="col") for r in rates]
    body = []
    for sweep in outcome.sweeps:
        cells = [tag("th", words(sweep.name), scope="row")]
        cells += [_cell(sweep, r) for r in rates]
        body.append(tag("tr", *cells))
    table = tag("table", tag("thead", tag("tr", *top)), tag("tbody", *body))
    told = f"The {words(outcome.measure)} at the end, for every learning rate"
    inside = tag("div", table, class_="scroll plain", tabindex="0")
    return tag("details", tag("summary", told), inside)


def _cell(sweep: Sweep, r: float | None) -> str:
    if r not in sweep.rates:
        return tag("td")
    k = sweep.rates.index(r)
    gone = int(sweep.diverged[k].sum())
    if gone:
        told = "diverged" if gone == len(sweep.seeds) else f"{gone} diverged"
        return tag("td", told, class_="gone")
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
