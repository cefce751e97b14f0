"""The page in a real browser: light and dark, on desktop and phone."""

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path

import pytest

from .outcomes import page_of

NAMES = ("chromium", "chromium-browser", "google-chrome")
FRAMES = [  # a race, and the width of the screen
    ("digits", 1280),
    ("digits", 390),
    ("many optimizers", 390),
    ("many decades", 390),
    ("halving", 390),
    ("all diverged", 1280),
    ("nothing but missing", 390),
]
INSPECT = Path(__file__).with_name("inspect.js").read_text("utf-8")


def _run(browser, folder, *flags):
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={folder / 'user'}", "--enable-logging=stderr"]
    command += ["--disable-dev-shm-usage", "--window-size=1280,1000", *flags]
    return subprocess.run(command, capture_output=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """The first browser that works."""
    for result in filter(None, map(shutil.which, NAMES)):
        blank = _run(result, tmp_path_factory.mktemp("blank"), "about:blank")
        if b"<html" in blank.stdout:
            return result
    pytest.skip("no Chromium here that runs (Debian: apt install chromium)")


def _opened(browser, folder, text, *flags):
    """The output of a page's script, and the errors of the browser."""
    file = folder / "page.html"
    file.write_text(text, "utf-8")
    done = _run(browser, folder, *flags, file.as_uri())
    told = re.search(r'<pre id="result">(.*?)</pre>', done.stdout.decode(), re.DOTALL)
    assert told, done.stderr.decode()[-2000:]
    complaints = [s for s in done.stderr.decode().splitlines() if "CONSOLE" in s]
    return json.loads(unescape(told[1])), complaints


@pytest.fixture(scope="module")
def light(browser, tmp_path_factory):
    """Several pages side by side, in frames of several widths."""
    frames = "".join(
        f'<iframe style="width: {width}px; height: 900px" '
        f'srcdoc="{escape(page_of(name))}"></iframe>'
        for name, width in FRAMES
    )
    script = (
        INSPECT
        + """
    addEventListener("load", () => {
      const docs = [...document.querySelectorAll("iframe")].map(f => f.contentDocument);
      const seen = docs.map(inspect), touched = touch(docs[0]), used = use(docs[0]);
      tell({ seen, touched, used, zoomed: [docs[0], docs[1]].map(zoom) });
    });
    """
    )
    text = f"<!doctype html><meta charset=utf-8>{frames}<script>{script}</script>"
    return _opened(browser, tmp_path_factory.mktemp("light"), text)


@pytest.fixture(scope="module")
def dark(browser, tmp_path_factory):
    """The file itself."""
    script = (
        f'<script>{INSPECT} addEventListener("load", () => tell(inspect(document)))'
    )
    text = page_of("digits").replace("</body>", f"{script}</script></body>")
    flag = "--blink-settings=preferredColorScheme=0"
    return _opened(browser, tmp_path_factory.mktemp("dark"), text, flag)


def test_there_are_no_errors_and_nothing_is_fetched(light, dark):
    assert light[1] == [] and dark[1] == []
    assert all(seen["fetched"] == [] for seen in [*light[0]["seen"], dark[0]])


@pytest.mark.parametrize(
    "frame", range(len(FRAMES)), ids=[f"{n} {w}" for n, w in FRAMES]
)
def test_pictures_are_whole(light, frame):
    """All there, with no text cut off, overlapping or too small to read."""
    (name, width), seen = FRAMES[frame], light[0]["seen"][frame]
    assert seen["width"] == width and seen["scroll"] <= width, "the page scrolls aside"
    assert seen["pictures"] == (0 if name.startswith("nothing") else 5)
    assert seen["empty"] == [] and seen["outside"] == [] and seen["touching"] == []
    assert seen["smallest"] >= 11


def _channels(colour):
    return [int(c) / 255 for c in re.findall(r"\d+", colour)[:3]]


def _contrast(a, b):
    """As defined in WCAG 2."""
    bright = []
    for colour in (a, b):
        r, g, blue = (
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
            for c in _channels(colour)
        )
        bright.append(0.2126 * r + 0.7152 * g + 0.0722 * blue + 0.05)
    return max(bright) / min(bright)


def test_light_and_dark_differ_and_both_can_be_read(light, dark):
    day, night = light[0]["seen"][0], dark[0]
    assert sum(_channels(day["paper"])) > 2.5 > 0.5 > sum(_channels(night["paper"]))
    for seen in (day, night):
        assert _contrast(seen["ink"], seen["paper"]) > 12
        assert _contrast(seen["soft"], seen["paper"]) > 4.5
        assert len(set(seen["colours"])) == 8
        assert all(_contrast(c, seen["paper"]) > 3 for c in seen["colours"])
        assert seen["outside"] == [] and seen["touching"] == []


def test_one_optimizer_is_picked_out(light):
    """With a click on its mark; Escape deselects it."""
    touched = light[0]["touched"]
    whole, picked = {"on": ["1"], "off": ["1"]}, {"on": ["1"], "off": ["0.12"]}
    assert touched["before"] == touched["again"] == whole
    assert touched["clicked"] == picked


def test_optimizers_can_be_hidden(light):
    """With a button, or with a name in a plot; the names and the others stay."""
    touched = light[0]["touched"]
    assert touched["buttons"] == 8 and touched["pressed"] == ["true", "false", "true"]
    hidden = {"lines": 0, "names": 1, "others": 7}
    assert touched["shown"] == {"lines": 1, "names": 1, "others": 7}
    assert touched["hidden"] == touched["named"] == hidden
    assert touched["alone"] == {"lines": 1, "names": 1, "others": 0}
    assert touched["back"] == touched["shown"]


@pytest.mark.parametrize("frame", [0, 1], ids=["wide", "narrow"])
def test_plots_can_be_zoomed(light, frame):
    """With a box or an interval; a double click, Escape or the button resets it."""
    zoomed = light[0]["zoomed"][frame]
    whole, box = zoomed["whole"], zoomed["box"]
    assert whole["hidden"] and not box["hidden"]
    assert whole["view"][2] == pytest.approx(2 * box["view"][2], rel=0.01)
    assert whole["view"][3] == pytest.approx(4 * box["view"][3], rel=0.01)
    assert box["ticks"] != whole["ticks"] and len(box["ticks"]) >= 3
    steps = [float(x.replace(",", "")) for x in box["ticks"] if x.isdigit()]
    assert steps and all(250 <= x <= 750 for x in steps)
    assert box["under"].startswith("at 500"), "the middle of the plot"
    assert box["outside"] == [] and box["touching"] == []
    interval = zoomed["interval"]["view"]
    assert interval[1::2] == whole["view"][1::2] and interval[2] < whole["view"][2]
    for way in ("escape", "double", "button", "click"):
        assert zoomed[way]["view"] == pytest.approx(whole["view"], abs=0.1), way
        assert zoomed[way]["hidden"] and zoomed[way]["ticks"] == whole["ticks"]


def test_marks_tell_their_numbers(light):
    touched = light[0]["touched"]
    assert touched["silent"]
    assert re.search(r" at \S+\naccuracy 0\.\d+ ± 0\.\d+", touched["tip"])
    assert touched["right"] <= 1280 and touched["top"] >= 0


def test_the_table_can_be_sorted(light):
    """By any column, in both directions; missing numbers come last."""
    used = light[0]["used"]
    assert used["up"][0] == "sgd" and used["up"][-1] == "lbfgs"
    assert used["down"][0] == "lbfgs" and used["sorted"] == "descending"
    assert used["again"] == used["before"] and used["before"][0] == "muon"


def test_the_pointer_shows_the_values_of_all_lines(light):
    used = light[0]["used"]
    lines = used["under"].splitlines()
    assert re.fullmatch(r"at 0\.\d+", lines[0])
    assert len(lines) > 5 and all(re.search(r": [\d.e-]+$", x) for x in lines[1:])
    assert used["target"] == 2, "the target, and the line under the pointer"


def test_numbers_and_code_can_be_taken_away(light):
    used = light[0]["used"]
    assert used["files"] == ["Download table.csv", "Download results.json"]
    assert used["copies"] == 2
