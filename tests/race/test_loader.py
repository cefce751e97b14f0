"""Loaders are read ahead of the race: every run sees the same batches."""

from collections import namedtuple
from itertools import count

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.race import Problem, race
from steepest.race._models import _loader
from steepest.race._models._data import mean_over_rows, prepared
from steepest.race._models._loader import is_loader, read, to_arrays

LIMIT = 1 << 20
ROWS = np.arange(40, dtype=np.float32).reshape(20, 2)


def _loader_of(rows, size=4):
    return [{"x": rows[k : k + size]} for k in range(0, len(rows), size)]


def _stream():
    for k in count():
        yield {"x": np.full((4, 2), k, np.float32)}


class Tensor:
    """Like a torch tensor on a device."""

    def __init__(self, x):
        self.x, self.moved = x, False

    def detach(self):
        return self

    def cpu(self):
        self.moved = True
        return self

    def __array__(self, dtype=None, copy=None):
        assert self.moved
        return np.asarray(self.x, dtype)


class Dataset:
    """Like a Hugging Face dataset: rows, which it can iterate in batches."""

    shape = 20, 2

    def __len__(self):
        return 20

    def __getitem__(self, k):
        return {"x": ROWS[k].tolist(), "label": k}

    def iter(self, batch_size):
        for k in range(0, 20, batch_size):
            rows = range(k, min(k + batch_size, 20))
            yield {"x": ROWS[list(rows)].tolist(), "label": list(rows)}


class Loader:
    """Like torch's: another iterator at every epoch, batches in lists."""

    def __iter__(self):
        return iter([[Tensor(x["x"]), Tensor(x["x"][:, 0])] for x in _loader_of(ROWS)])


Pair = namedtuple("Pair", "x y")


@pytest.mark.parametrize(
    "data, expected",
    [
        (ROWS, False),
        (jnp.ones(3), False),
        ({"x": ROWS}, False),
        (Pair(ROWS, ROWS), False),
        (_loader_of(ROWS), True),
        (_stream, True),
        (_stream(), True),
        (Loader(), True),
        (Dataset(), True),
    ],
)
def test_what_is_a_loader(data, expected):
    assert is_loader(data) == expected


def test_values_become_arrays():
    given = {
        "tensor": Tensor(np.ones(2)),
        "column": [[1, 2], [3, 4]],
        "pair": Pair(np.ones(1, np.float64), np.arange(2)),
        "list": [jnp.ones(1), np.ones(1, bool)],
    }
    result = to_arrays("f", given)
    assert isinstance(result["pair"], Pair)
    assert result["column"].shape == (2, 2)
    kinds = {x.dtype.name for x in jax.tree.leaves(result)}
    assert kinds == {"float32", "int32", "bool"}


@pytest.mark.parametrize("x", ["word", ["a", "b"], object(), [[1], [2, 3]]])
def test_other_values_are_errors(x):
    with pytest.raises(TypeError, match=r"^f\['t'\].* cannot be converted to an array"):
        to_arrays("f", {"t": x})


def test_an_array_of_strings_is_called_so():
    with pytest.raises(TypeError, match=r"^f is a ndarray of dtype <U1 that cannot be"):
        to_arrays("f", np.array(["a", "b"]))


@pytest.mark.parametrize(
    ("x", "dtype"),
    [
        ([2**33], "int64"),
        (np.array([1, -(2**31) - 1]), "int64"),
        (np.array([2**32], np.uint64), "uint64"),
    ],
)
def test_integers_that_would_wrap_are_errors(x, dtype):
    with pytest.raises(ValueError, match=rf"^f\['id'\] has the integer .*{dtype}"):
        to_arrays("f", {"id": x})


@pytest.mark.parametrize("x", [2**31 - 1, -(2**31), np.uint64(2**32 - 1)])
def test_integers_that_fit_are_kept(x):
    assert int(to_arrays("f", [x])[0] if isinstance(x, int) else to_arrays("f", x)) == x


@pytest.mark.parametrize(
    "loader, expected",
    [
        (_loader_of(ROWS), 5),
        (lambda: iter(_loader_of(ROWS)), 5),
        (_stream, 7),
        (Loader(), 5),
        (Dataset(), 5),
    ],
)
def test_as_many_batches_are_read_as_there_are(loader, expected):
    result = read("f", loader, 7, LIMIT, 4)
    assert result.count == expected and not result.full and result.rest is None
    x = jax.tree.leaves(result.arrays)[-1 if isinstance(loader, Dataset) else 0]
    assert x.shape == (expected, 4, 2)


def test_the_buffer_has_a_limit():
    result = read("f", _stream, 100, 10 * 32, 4)
    assert result.full and result.count == 10
    with pytest.raises(MemoryError, match=r"did not end within.*islice"):
        read("f", _stream, None, 10 * 32, 4)
    with pytest.raises(MemoryError, match=r"batches of .* but `buffer_bytes` is"):
        read("f", _stream, 100, 31, 4)


def test_a_buffer_that_does_not_fit_is_an_error(monkeypatch):
    monkeypatch.setattr(_loader, "available", lambda device: 100)
    with pytest.raises(MemoryError, match=r"needs .* for 4 batches.*free"):
        read("f", _stream, 4, LIMIT, 4)


def test_only_the_last_batch_may_be_smaller():
    result = read("f", _loader_of(ROWS[:18]), 9, LIMIT, 4)
    assert result.count == 4 and result.rest["x"].shape == (2, 2)
    odd = [*_loader_of(ROWS[:6]), *_loader_of(ROWS)]
    with pytest.raises(ValueError, match=r"batch 1 is float32\[2,2\], .*drop_last"):
        read("f", odd, 9, LIMIT, 4)
    with pytest.raises(ValueError, match=r"batch 1 is float32\[20\].*`\(x, y\)`"):
        read("f", [ROWS, ROWS[:, 0]], 9, LIMIT, 4)


@pytest.mark.parametrize(
    "loader, says",
    [
        ([], "gave no batches"),
        (lambda: None, "is a NoneType, expected arrays, an iterable"),
        ([{"x": 1.0, "y": 2}], r"single examples, set .*`{'x': ..., 'y': ...}`"),
        ([(np.ones(2), 1)] * 3, r"single examples, set .* as arrays, `\(x, y\)`"),
        ([{}], "gives nothing"),
    ],
)
def test_loaders_without_batches_are_errors(loader, says):
    with pytest.raises((TypeError, ValueError), match=f"^f .*{says}"):
        read("f", loader, 3, LIMIT, 4)


def _prepared(data, validation=None, steps=4, **how):
    return prepared("f", data, validation, 4, steps, LIMIT, **how)


def test_rows_are_held_out_of_arrays():
    result = _prepared((ROWS, np.arange(20)))
    train, held = result.data["train"], result.data["validation"]
    assert train[0].shape == (18, 2) and held[0].shape == (2, 2)
    assert sorted([*train[1], *held[1]]) == list(range(20))
    np.testing.assert_array_equal(train[0][:, 0], 2 * train[1])
    assert len(_prepared((ROWS,), 0.5).data["validation"][0]) == 10
    assert len(_prepared(np.zeros(30_000)).data["validation"]) == 1000


def test_all_rows_are_one_batch_if_they_are_few():
    result = _prepared(ROWS[:5])
    assert result.cycle == 1
    assert result.batches(jax.random.key(0), result.data).shape == (4, 2)


def test_batches_of_a_loader_come_in_order_and_repeat():
    result = _prepared(_loader_of(ROWS[:18]), {"x": -ROWS}, steps=9)
    assert result.cycle == 4 and result.batch_size == 4
    pick = lambda step: result.batches(jax.random.key(step), result.data, step)["x"]
    np.testing.assert_array_equal(pick(1), ROWS[4:8])
    np.testing.assert_array_equal(pick(5), ROWS[4:8])
    assert result.remarks == (
        "The last batch of the loader has 2 rows instead of 4, and is not used.",
    )


def test_the_last_batches_of_a_loader_are_held_out():
    """So many are read that every step still has its own."""
    result = _prepared(_stream, 0.25, steps=12)
    assert result.cycle == 12 and len(result.data["validation"]["x"]) == 4 * 4
    held = result.data["validation"]["x"]
    assert held.min() > result.data["train"]["x"].max() and held.ndim == 2


def _epochs(shuffle=False):
    """A loader that never ends: one epoch after the other."""
    rng = np.random.default_rng(0)
    while True:
        yield from _loader_of(rng.permutation(ROWS) if shuffle else ROWS)


def test_a_loader_that_repeats_its_batches_counts_as_one_epoch():
    """So that the rows held out are not trained on."""
    endless, once = (_prepared(x, steps=30) for x in (_epochs(), _loader_of(ROWS)))
    jax.tree.map(np.testing.assert_array_equal, endless.data, once.data)
    assert endless.cycle == once.cycle == 4 and not endless.remarks


def test_held_out_rows_that_are_also_trained_on_are_noted():
    (message,) = _prepared(_epochs(shuffle=True), steps=30).remarks
    assert message.startswith("12 of the 12 rows held out for validation are also")
    assert message.endswith("Pass a `validation` set.")
    assert not _prepared(_epochs(shuffle=True), {"x": -ROWS}, steps=30).remarks


@pytest.mark.parametrize(("twice", "noted"), [(0, False), (4, False), (5, True)])
def test_few_rows_may_be_there_twice(twice, noted):
    rows = np.arange(400, dtype=np.float32)
    rows[360 : 360 + twice] = rows[:twice]  # 40 are held out
    assert bool(_prepared(_loader_of(rows), steps=100).remarks) == noted


@pytest.mark.parametrize(
    "data", [{"x": ROWS}, _loader_of(ROWS), lambda: _loader_of(ROWS)]
)
@pytest.mark.parametrize(("first", "shared"), [(0, 10), (12, 8), (19, 1), (20, 0)])
def test_a_validation_set_that_is_also_trained_on_is_noted(data, first, shared):
    own = np.concatenate([ROWS, -ROWS])[first : first + 10]
    remarks = _prepared(data, {"x": own}, steps=5).remarks
    assert [x.split(" are")[0] for x in remarks if "trained" in x] == (
        [f"{shared} of the 10 rows of `validation`"] if shared > 1 else []
    )


def test_arrays_with_the_same_rows_again_are_noted():
    (message,) = _prepared(np.tile(ROWS, (3, 1))).remarks
    assert message.startswith("6 of the 6 rows held out for validation are also")
    assert "has rows more than once. Pass a `validation` set." in message
    keyed = {"x": ROWS, "key": jax.random.split(jax.random.key(0), 20)}
    assert not _prepared(keyed).remarks


def test_lists_and_tuples_of_arrays_are_alike():
    """A torch loader gives lists, and the validation set is a tuple of arrays."""
    lists = [[x["x"], x["x"][:, 0]] for x in _loader_of(ROWS)]
    result = _prepared(lists, (-ROWS, -ROWS[:, 0]), steps=5)
    assert isinstance(result.data["validation"], list)
    np.testing.assert_array_equal(result.data["validation"][1], -ROWS[:, 0])


def test_a_validation_loader_is_read_to_its_end():
    result = _prepared(_stream, lambda: _loader_of(ROWS[:18]))
    np.testing.assert_array_equal(result.data["validation"]["x"], ROWS[:18])


def test_a_full_buffer_is_noted():
    result = prepared("f", _stream, {"x": ROWS}, 4, 50, 10 * 32)
    (message,) = result.remarks
    assert "10 batches instead of 50" in message and result.cycle == 10


@pytest.mark.parametrize("size", [3, 4, 20, 50])
def test_a_mean_over_batches_is_a_mean_over_rows(size):
    result = mean_over_rows(lambda x: jnp.mean(x[:, 0]), jnp.asarray(ROWS), size)
    np.testing.assert_allclose(result, ROWS[:, 0].mean(), rtol=1e-6)


@pytest.mark.parametrize(
    "arguments, says",
    [
        ((ROWS, 1.5), "validation is 1.5, expected"),
        (({"x": ROWS, "y": ROWS[:3]},), r"data has arrays of shapes .*same first axis"),
        ((np.zeros((0, 2)),), "data has no rows"),
        ((ROWS[:1],), "data has 1 rows, and 1 would be held out"),
        ((_loader_of(ROWS[:4]),), "data gave only 1 batch, and 1 would be"),
        ((_loader_of(ROWS[:7]),), r"data gave only 1 batch \(the last one, of 3 rows,"),
        (([{"x": ROWS}] * 3,), "data gave only 1 batch, again and again, and 1"),
        ((ROWS, None, 0), "steps is 0"),
        (
            ({"x": ROWS}, (ROWS, ROWS)),
            r"validation is \(\*, \*\), expected the structure.*data: {'x': \*}\.",
        ),
        (
            ((ROWS, ROWS[:, 0]), (ROWS, ROWS[:, :1])),
            r"validation\[1\] has shape \(20, 1\), expected as many axes as in data",
        ),
    ],
)
def test_wrong_data_is_an_error(arguments, says):
    with pytest.raises(ValueError, match=f"^f: {says}"):
        _prepared(*arguments)


def test_a_race_on_a_loader():
    """By hand: sgd on the mean of each batch, in order, twice through the loader."""
    problem = Problem.from_functions(
        lambda key: {"w": 0 * jax.random.normal(key, (2,))},
        lambda params, batch: jnp.mean(batch["x"] @ params["w"]),
        _loader_of(ROWS),
        validation={"x": -ROWS},
        steps=5,
    )
    outcome = race(problem, ["sgd"], learning_rates=[0.1], seeds=1, steps=7)
    means = [x["x"].mean(axis=0) for x in _loader_of(ROWS)]
    w = -0.1 * np.sum([*means, *means[:2]], axis=0)
    result = outcome.sweeps[0].metric[0, 0, -1]
    np.testing.assert_allclose(result, (-ROWS @ w).mean(), rtol=1e-5)
    assert outcome.measure == "validation loss"
    (message,) = outcome.remarks
    assert message.endswith("Make the problem with steps=7 to read more.")
