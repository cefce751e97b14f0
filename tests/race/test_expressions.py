"""Optimizers written as text: what they mean, and which are errors."""

import jax
import jax.numpy as jnp
import pytest
from hypothesis import example, given, settings, strategies as st

import steepest
from steepest import contrib
from steepest.race.entrants import (
    entrant,
    is_reference,
    schedule_of,
    split_list,
    tidy,
    transformation_of,
)

RATE, STEPS = 0.25, 100
COSINE = steepest.cosine_decay_schedule(RATE, STEPS)
MEANINGS = {
    "adamw": lambda: steepest.adamw(RATE),
    "adamw()": lambda: steepest.adamw(RATE),
    "steepest.adamw": lambda: steepest.adamw(RATE),
    "contrib.prodigy": lambda: contrib.prodigy(RATE),
    "prodigy": lambda: contrib.prodigy(RATE),
    "adafactor": lambda: steepest.adafactor(RATE),
    "adamw(learning_rate=3*rate)": lambda: steepest.adamw(3 * RATE),
    "adamw(-(1 - rate) // 2 + 2**-1 + 1.0)": lambda: steepest.adamw(0.5),
    "sgd(momentum=0.9, nesterov=True)": lambda: steepest.sgd(RATE, 0.9, True),
    "sgd(cosine_decay_schedule(rate, steps))": lambda: steepest.sgd(COSINE),
    "sgd(rate / steps)": lambda: steepest.sgd(RATE / STEPS),
    "chain(clip_by_global_norm(0.1), adamw(b2=0.95))": lambda: steepest.chain(
        steepest.clip_by_global_norm(0.1), steepest.adamw(RATE, b2=0.95)
    ),
    "chain(scale_by_adam, scale_by_learning_rate)": lambda: steepest.adam(RATE),
    "schedule_free(sgd)": lambda: contrib.schedule_free(steepest.sgd(RATE), RATE),
    'adamw(mu_dtype="bfloat16")': lambda: steepest.adamw(RATE, mu_dtype=jnp.bfloat16),
    'adamw(mask=not_matching("b"), weight_decay=1)': lambda: steepest.adamw(
        RATE, weight_decay=1, mask={"b": False, "w": True}
    ),
    'route({"b": None, ".*": sgd})': lambda: steepest.masked(
        steepest.chain(steepest.sgd(RATE), steepest.freeze("b")), True
    ),
    "named_chain(('a', sgd), ('b', scale(2.0)))": lambda: steepest.sgd(2 * RATE),
    "prodigy(betas=(0.5, 0.5))": lambda: contrib.prodigy(RATE, (0.5, 0.5)),
    "lbfgs(linesearch=None)": lambda: steepest.lbfgs(RATE, linesearch=None),
}


def _step(tx):
    params = {"b": jnp.array([0.5, -2.0]), "w": jnp.array([1.0, 3.0])}
    grads = jax.tree.map(lambda p: p - 1, params)
    return tx.update(grads, tx.init(params), params)[0]


@pytest.mark.parametrize("text", MEANINGS)
def test_what_an_expression_means(text):
    one = entrant(text, steps=STEPS)
    assert one.name == text and one.swept
    wanted = _step(MEANINGS[text]())
    result = _step(one.make(RATE))
    for name, x in wanted.items():
        assert jnp.allclose(result[name], x, rtol=1e-6), name


@pytest.mark.parametrize(
    "text", ["lbfgs", "polyak_sgd", "adamw(1e-3)", "chain(clip(1.0), sgd(0.1))"]
)
def test_without_a_place_for_the_rate_there_is_nothing_to_sweep(text):
    assert not entrant(text, steps=STEPS).swept


def test_lookahead_has_the_numbers_of_its_paper():
    params = steepest.LookaheadParams.init_synced(jnp.array([0.0]))
    states = []
    for text in ("lookahead(sgd)", "lookahead(sgd, 5, slow_step_size=0.5)"):
        tx, p = entrant(text, steps=STEPS).make(1.0), params
        state = tx.init(p)
        for _ in range(5):
            updates, state = tx.update(jnp.array([-1.0]), state, p)
            p = steepest.apply_updates(p, updates)
        states.append(float(p.slow[0]))
    assert states == [2.5, 2.5]


def test_a_schedule_takes_the_place_of_the_rate_at_any_depth():
    schedule = "linear_schedule(rate, 0, steps)"
    for text in ("sgd", "chain(clip(9.0), sgd())", "chain(sgd(rate), scale(0.5))"):
        one = entrant(text, steps=2, schedule=schedule)
        tx, g = one.make(1.0), jnp.array([1.0])
        state, result = tx.init(g), []
        for _ in range(2):
            u, state = tx.update(g, state)
            result.append(float(u[0]))
        own = "rate" in text
        assert one.swept and result == ([-0.5, -0.5] if own else [-1.0, -0.5])
    assert not entrant("sgd", steps=2, schedule="constant_schedule(0.1)").swept
    assert entrant("sgd", steps=2, schedule="rate * 2").swept


def test_spaces_are_set_right_and_quotes_left_alone():
    one = entrant(" route({ 'a  b':\n sgd,  '.*':sgd}) ", steps=STEPS)
    assert one.name == "route({ 'a  b': sgd, '.*':sgd})"


def test_companions():
    f = schedule_of("warmup_cosine_decay_schedule(0, 1e-3, 100, 1000)")
    assert float(f(100)) == pytest.approx(1e-3)
    f = schedule_of("linear_schedule(rate, 0, steps)", rate=2, steps=4)
    assert float(f(2)) == 1
    assert schedule_of("rate / 2", rate=3.0)(7) == 1.5
    tx, g = transformation_of("sgd(momentum=0.9)"), jnp.array([1.0])
    assert float(tx.update(g, tx.init(g))[0][0]) == pytest.approx(-1e-3)


REFUSED = {
    "": "the text is empty",
    "adamww": "Did you mean adamw",
    "1 + 2": "this is a number, expected an optimizer",
    "'adamw'": "this is `'adamw'`",
    "[adamw]": "this is a list",
    "None": "this is `None`",
    "cosine_decay_schedule(1, 2)": "such as a schedule, expected an optimizer",
    "cosine_decay_schedule": "is missing `init_value` and `decay_steps`",
    "lookahead": "is missing `fast_optimizer`",
    "lookahead(linear_schedule(1, 0, 9))": "fast_optimizer is a function, such",
    "adamw(sgd)": "learning_rate is an optimizer, which it does not take",
    "chain(1)": "args is a number, expected an optimizer",
    "clip()": "clip is missing `max_delta`. Its arguments: max_delta.",
    "adamw(wieght_decay=0.1)": "Did you mean `weight_decay`? Its arguments: learning_r",
    "adamw(memory_type='bfloat16')": "Did you mean `memory_dtype`?",
    "adamw(b1=0, b1=1)": "`b1` is passed twice",
    "adamw(1, learning_rate=1)": "multiple values for argument 'learning_rate'",
    "scale(1, 2)": "too many positional arguments",
    "sgd(momentum=-1.0)": "momentum",
    "rate(1)": "called `rate`",
    "rate": "this is a number",
    "-adamw": "this is an optimizer, expected a number",
    "adamw + 1": "this is an optimizer, expected a number",
    "sgd(1 / 0)": "division by zero",
    "sgd((-8) ** 0.5)": "expected a real number",
    "sgd(10 ** 10 ** 10)": "too large",
    "sgd(2.0 ** 9999)": "Numerical result out of range",
    "sgd('a' * 10)": "this is `'a'`, expected a number",
    "sgd([0] * 10)": "this is a list, expected a number",
    "{[1]: 2}": "keys of a dict",
    "{**{}}": "keys of a dict",
    "adamw(**{})": "`**` is not allowed",
}
HOSTILE = [
    "__import__('os').system('true')",
    "().__class__.__bases__[0]",
    "adamw.__globals__",
    "contrib.__dict__",
    "steepest.contrib._sam",
    "adamw.func(1)",
    "adamw()()",
    "open('/etc/passwd')",
    "eval('1')",
    "(lambda: 1)()",
    "[x for x in (1, 2)]",
    "{x: 1 for x in (1, 2)}",
    "{1, 2}",
    "f'{1}'",
    "b'a'",
    "1j",
    "...",
    "adamw(*[1])",
    "(a := 1)",
    "adamw if 1 else sgd",
    "adamw or sgd",
    "not adamw",
    "~1",
    "1 < 2",
    "1 % 2",
    "1 << 99999999",
    "adamw[0]",
    "adamw; sgd",
    "import os",
    "adamw\0",
    "adamw(\u202e)",
    "\ud800",
    "(" * 300,
    "(" * 150 + ")" * 150,
    "-" * 1500 + "1",
    "chain(" * 100 + "adamw" + ")" * 100,
    "a" + ".a" * 900,
    "1 +" * 600 + "1",
    "9" * 1900 + "* 9" * 9,
    "x" * 9999,
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_says_why(text, as_users_do):
    with pytest.raises(ValueError) as refused:
        entrant(text, steps=STEPS)
    assert str(refused.value).startswith("optimizers: ")
    assert REFUSED[text] in str(refused.value)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:24])
def test_nothing_else_can_be_written(text):
    with pytest.raises(ValueError, match=r"^optimizers: "):
        entrant(text, steps=STEPS)


@pytest.mark.parametrize(
    "text, place",
    [
        ("chain(clip(1.0), adamww)", "adamww"),
        ("lookahead(adamw(b1=1, wieght_decay=0.1))", "wieght"),
        ("route({'é': sgd, '.*': lambda: 1})", "lambda"),
        ("chain(sgd, clip())", "clip"),
        ("chain(sgd, )) ", ") "),
    ],
    ids=["name", "argument", "after an accent", "call", "grammar"],
)
def test_a_caret_stands_under_the_place(text, place):
    with pytest.raises(ValueError) as refused:
        entrant(text, steps=STEPS)
    *_, line, caret = str(refused.value).split("\n")
    assert line.strip() == text.strip()
    assert text[caret.index("^") - 4 :].startswith(place.strip())


LONG = {
    "quotes": '"\\' * 80_000,
    "a quotation without end": '"' * 160_001,
    "quotes in turns": "\"'" * 80_000,
    "brackets": "(" * 200_000,
    "commas": "," * 200_000,
    "spaces": " " * 200_000 + "x",
    "a name": "a" * 2_000_000,
    "digits": "9" * 2_000_000,
    "a list": "adamw," * 100_000 + "(",
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
@pytest.mark.parametrize("read", [tidy, transformation_of, schedule_of, split_list])
def test_long_texts_are_refused_at_once_and_not_repeated(read, text):
    """Earlier, the first of them took minutes, and errors had megabytes."""
    with pytest.raises(ValueError) as refused:
        read(text)
    assert len(str(refused.value)) < 1000


def test_the_place_is_shown_in_a_long_line():
    text = f"chain({'sgd, ' * 100}adamww{', sgd' * 100})"
    with pytest.raises(ValueError) as refused:
        transformation_of(text)
    *_, line, caret = str(refused.value).split("\n")
    assert line[caret.index("^") :].startswith("adamww") and len(line) < 140


def test_the_schedule_speaks_for_itself():
    for text in ("adamw", "'a'", "linear_schedul(rate, 0, 1)", "rte"):
        with pytest.raises(ValueError, match=r"^schedule: "):
            entrant("sgd", steps=STEPS, schedule=text)
        with pytest.raises(ValueError, match=r"^schedule: "):
            schedule_of(text, rate=1.0)


def test_the_names_of_numbers_in_a_schedule():
    """`lr` is no misspelt `lars`."""
    for text in ("cosine_decay_schedule(lr, steps)", "rate * lr"):
        with pytest.raises(ValueError, match="called `lr`, only `rate` and `steps`"):
            entrant("sgd", steps=STEPS, schedule=text)


def test_a_text_is_wanted(as_users_do):
    with pytest.raises(TypeError, match=r"optimizers: got a int, 5.* such as 'adamw'"):
        entrant(5, steps=STEPS)
    like = r"schedule: got a function.* such as 'cosine_decay_schedule\(rate, steps\)'"
    with pytest.raises(TypeError, match=like):
        entrant("sgd", steps=STEPS, schedule=lambda rate, steps: rate)


WORDS = ["adamw", "chain", "lookahead", "contrib", "linear_schedule", "rate", "steps"]
WORDS += ["(", ")", "(", ")", ",", ", ", "=", "b1", "'", '"', "[", "]", "{", "}", ":"]
WORDS += [
    "1",
    "0",
    "1e-3",
    "9" * 20,
    "True",
    "None",
    "lambda",
    "*",
    "**",
    "-",
    "/",
    ".",
]


@given(st.text(max_size=20) | st.lists(st.sampled_from(WORDS), max_size=9).map("".join))
@settings(max_examples=300)
@example("adamw(b1=rate**9)")
def test_any_text_is_read_or_refused(text):
    for read in (transformation_of, schedule_of, split_list):
        if is_reference(text):  # the user's own: another error
            continue
        try:
            read(text)
        except ValueError as error:
            assert str(error).startswith(("optimizers: ", "schedule: "))


def test_a_list_is_split_at_its_own_commas():
    items = ["adamw", """muon(routes={"a,)": 'adam,'})""", "lookahead(adamw, [5, 0.5])"]
    assert split_list(",".join(items)) == split_list(" , ".join(items)) == items


@pytest.mark.parametrize(
    "text, why",
    [
        ("adamw,lookahead(adamw", "expected a `)`"),
        ("adamw),sgd", "`)` closes nothing"),
        ("chain(sgd]", "`]` closes nothing"),
        ("freeze('a),sgd", "this quote is never closed"),
        ("adamw,,sgd", "this item is empty"),
        ("adamw,", "this item is empty"),
        (" ", "this item is empty"),
    ],
)
def test_a_list_that_cannot_be_split(text, why):
    with pytest.raises(ValueError, match=r"^optimizers: ") as refused:
        split_list(text)
    assert why in str(refused.value)
