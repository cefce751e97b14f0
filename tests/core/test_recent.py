"""The bounded cache; and no other cache lives as long as the process.

Keys come from the user, so an unbounded cache fills the memory in a long search.
"""

import ast
import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import steepest
from steepest.core import Recent

SRC = Path(steepest.__file__).parent
FILES = sorted(SRC.rglob("*.py"))
GROWS = "dict", "set", "list", "defaultdict", "OrderedDict", "WeakKeyDictionary"
# Files with a container that cannot grow without bound, and why.
BOUNDED = {
    "core/_recent.py": "the bounded cache itself",
    "engine/placement/_streamed.py": "lives only as long as its trace",
    "engine/step/_select.py": "lives only as long as its trace",
    "exchange/_install.py": "the path of a module, always empty",
}


def test_the_least_recently_used_value_is_dropped():
    recent = Recent(2)
    assert [recent(k, lambda k=k: -k) for k in (1, 2, 1, 3)] == [-1, -2, -1, -3]
    assert (1 in recent, 2 in recent, 3 in recent) == (True, False, True)
    assert len(recent) == 2
    assert recent.values() == [-1, -3]


def test_a_value_is_made_once():
    made = []
    recent = Recent(4)
    for _ in range(3):
        recent("a", lambda: made.append(1))
    assert made == [1]


def test_an_error_is_not_remembered():
    recent = Recent(2)
    with pytest.raises(ZeroDivisionError):
        recent("a", lambda: 1 // 0)
    assert recent("a", lambda: 5) == 5


def test_computing_a_value_may_use_the_cache():
    recent = Recent(4)
    assert recent("outer", lambda: recent("inner", lambda: 1) + 1) == 2


@pytest.fixture
def switch_often():
    """Threads take turns every microsecond, so that a missing lock shows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_two_threads_get_the_same_value():
    recent, together = Recent(2), threading.Barrier(4, timeout=60)

    def make():
        together.wait()  # all four have found nothing, and all four compute a value
        return object()

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: recent("a", make), range(4)))
    assert len(set(map(id, made))) == 1


def test_threads_that_drop_each_others_values(switch_often):
    recent = Recent(3)

    def work(start):
        for k in range(400):
            key = (start * 7 + k) % 11
            assert recent(key, lambda key=key: key * key) == key * key
            assert len(recent) <= 3

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_starts_empty(again):
    """An optimizer with a cache can be copied, including its lock."""
    recent = Recent(3)
    recent("a", lambda: 1)
    other = again(recent)
    assert (len(other), other.size) == (0, 3)


def _is_growing(value):
    """Whether it is an empty container that may be filled later."""
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.List):
        return not value.elts
    name = getattr(value, "func", None)
    name = getattr(name, "id", getattr(name, "attr", None))
    return isinstance(value, ast.Call) and name in GROWS and not value.args


def _assigned(nodes):
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_growing(node.value):
            yield node.targets[0] if isinstance(node, ast.Assign) else node.target


def _memories(tree):
    """Names of containers that may grow while the process or an optimizer lives."""
    found = [ast.unparse(target) for target in _assigned(tree.body)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            inside = [ast.unparse(target) for target in _assigned(ast.walk(node))]
            found += [name for name in inside if name.startswith("self.")]
            cached = [ast.unparse(x) for x in node.decorator_list]
            endless = {"cache", "functools.cache", "lru_cache(maxsize=None)"}
            if endless & set(cached) and node.args.args:
                found.append(node.name)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_every_cache_is_bounded(path):
    name = str(path.relative_to(SRC))
    if name.startswith("race/") or name in BOUNDED:
        return
    assert not _memories(ast.parse(path.read_text())), "use `core.Recent`"


def test_an_unbounded_cache_would_be_detected():
    lines = "KNOWN: dict = {}", "SEEN = set()", "@cache\ndef f(x): ..."
    lines += ("class A:\n def __init__(self):\n  self.x = OrderedDict()",)
    for line in lines:
        assert _memories(ast.parse(line)), line
    for line in ("N = {1: 2}", "@cache\ndef f(): ...", "def f():\n x = []"):
        assert not _memories(ast.parse(line)), line
