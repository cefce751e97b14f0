"""Every fault at every file operation, and every damage: `python -m tests.race.faults`.

Each case must end with the results of an undisturbed race, or with a one-line error.
The tests use a sample of the damage; the command uses every bit and every length, and
prints a table. Its argument is the fraction of the damage to use.
"""

import itertools
import os
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from steepest.race._files import read_sealed

from .faulty import Disk, FAULTS, outcome, raced, without_training

FILES = "race.json", "runs/sgd.json", "runs/adam.json", "runs/adam.begun"
OTHERS = "runs/.lock", "report.html", "results.json", "loss.svg"


def operations(folder):
    """The file operations of a race, in order, and its results.

    Args:
        folder: empty, or from an interrupted race.
    """
    disk = Disk()
    results = raced(folder, disk)
    shutil.rmtree(folder)
    return disk.asked, results


def faults(folder):
    """Every fault at every operation: rows of (race, fault, operation, now, later).

    `now` is how the race with the fault ends, and `later` how it resumes.
    """
    path, good = folder / "faulty", folder / "good"
    _, expected = operations(path)
    for race in ("new", "resumed"):
        begin = lambda race=race: race == "resumed" and shutil.copytree(good, path)
        if race == "resumed":
            stopped(good)
        begin()
        asked, _ = operations(path)
        for fault, at in itertools.product(FAULTS, range(len(asked))):
            if asked[at] not in FAULTS[fault]:
                continue
            begin()
            disk = Disk(at, fault)
            now = outcome(lambda disk=disk: raced(path, disk), expected)
            for left in [*path.glob("*/*.json"), *path.glob("race.json")]:
                read_sealed(left)  # complete, or missing
            later = outcome(lambda: raced(path), expected)
            if debris := [p.name for p in path.rglob(".steepest-*")]:
                later = "WRONG", str(debris)
            yield race, fault, asked[at], now, later
            shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(good)


def stopped(folder):
    """A race that was killed in the middle of its second optimizer."""
    for at in itertools.count():
        outcome(lambda at=at: raced(folder, Disk(at)), "")
        if (folder / "runs/adam.begun").exists():
            return
        shutil.rmtree(folder, ignore_errors=True)


def flips(content, share):
    """A file with one bit changed: for all bits, or every n-th one."""
    every = max(1, round(1 / share))
    for place in range(0, 8 * len(content), every):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        yield bytes(changed)


def cuts(content, share):
    """A file that is shorter or longer."""
    every = max(1, round(1 / share / 8))
    yield from (content[:end] for end in range(0, len(content), every))
    yield from (content + more for more in (b"\0", b"\n", b"}", content))


def damage(folder, share):
    """Every damage to every file of a race: rows of (damage, file, how it ends).

    Args:
        folder: a folder to work in.
        share: fraction of the bits and lengths.
    """
    good, path = folder / "good", folder / "damaged"
    _, expected = operations(path)
    for kind in ("stopped", "done"):
        stopped(good)
        if kind == "done":
            raced(good)
        for file in [x for x in (*FILES, *OTHERS) if (good / x).exists()]:
            yield from _changed(good, path, file, share, expected)
            yield from _replaced(good, path, file, expected)
        yield from _swapped(good, path, expected)
        shutil.rmtree(good)


def _changed(good, path, file, share, expected):
    """Changed bytes. A rejected file must not be modified."""
    content = (good / file).read_bytes()
    shutil.copytree(good, path)
    share = share if file in FILES else share / 50  # the others are never read
    for how, all_of_them in (("a bit", flips), ("cut", cuts)):
        for changed in all_of_them(content, share):
            (path / file).write_bytes(changed)
            result = outcome(lambda: raced(path), expected)
            if result[0] == "equal":
                shutil.rmtree(path)
                shutil.copytree(good, path)
            elif (path / file).read_bytes() != changed:
                result = "WRONG", "not left as it was"
            yield how, file, result
    shutil.rmtree(path)


def _replaced(good, path, file, expected):
    """Something else in place of a file."""
    precious = path.with_name("precious")
    kinds = {
        "missing": lambda p: None,
        "link": lambda p: p.symlink_to(precious),
        "link to nowhere": lambda p: p.symlink_to(p.with_name("nowhere")),
        "link to itself": lambda p: p.symlink_to(p),
        "link to a device": lambda p: p.symlink_to("/dev/zero"),
        "fifo": os.mkfifo,
        "folder": lambda p: p.mkdir(),
        "hard link": lambda p: os.link(precious, p),
    }
    for how, put in kinds.items():
        shutil.copytree(good, path)
        (path / file).rename(precious)
        content = precious.read_bytes()
        put(path / file)
        result = outcome(lambda: raced(path), expected)
        if precious.read_bytes() != content:
            result = "WRONG", "what the link leads to was overwritten"
        yield how, file, result
        shutil.rmtree(path)
        precious.unlink()


def _swapped(good, path, expected):
    """Each file in place of each other one, also from another race."""
    twin = path.with_name("twin")  # the same race, run again
    stopped(twin)
    if not (good / "runs/adam.begun").exists():
        raced(twin)
    other = path.with_name("other")
    raced(other, steps=2)
    files = [x for x in FILES if (good / x).exists()]
    for source, (here, there) in itertools.product(
        (good, twin, other), itertools.product(files, files)
    ):
        if (source == good and here == there) or not (source / there).exists():
            continue
        shutil.copytree(good, path)
        shutil.copy(source / there, path / here)
        yield f"from {source.name}", here, outcome(lambda: raced(path), expected)
        shutil.rmtree(path)
    shutil.rmtree(twin)
    shutil.rmtree(other)


def table(headers, counts):
    """Rows of text, and how often each kind of ending occurred."""
    ends = sorted({end for _, end in counts})
    rows = dict.fromkeys(row for row, _ in counts)
    widths = [
        max(len(x) for x in column) for column in zip(headers, *rows, strict=True)
    ]
    line = lambda texts, numbers: "  ".join(
        [*map(str.ljust, texts, widths), *(f"{x:>16}" for x in numbers)]
    )
    yield line(headers, ends)
    for row in rows:
        yield line(row, [counts[row, end] for end in ends])


def main(share=1.0):
    """Print both tables; the exit code is nonzero if anything went wrong."""
    wrong = []
    with tempfile.TemporaryDirectory(prefix="faults-") as here, without_training():
        counts = Counter()
        for race, fault, name, now, later in faults(Path(here)):
            counts[(race, fault, name), f"{now[0]}, {later[0]}"] += 1
            if "WRONG" in (now[0], later[0]):
                wrong.append((race, fault, name, *now, *later))
        print(f"{counts.total()} faults; how the race ends, and how it goes on:")
        print("\n".join(table(("race", "fault", "operation"), counts)))
        counts = Counter()
        for how, file, result in damage(Path(here), share):
            counts[(how, file), result[0]] += 1
            if result[0] == "WRONG":
                wrong.append((how, file, *result))
        print(f"\n{counts.total()} damaged folders; how the race goes on:")
        print("\n".join(table(("damage", "file"), counts)))
    print(f"\n{len(wrong)} wrong", *wrong[:20], sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main(*map(float, sys.argv[1:])))
