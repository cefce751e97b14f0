"""A metric whose name contradicts the direction that wins is noted."""

import re
from dataclasses import replace

import pytest

from steepest.race import race
from steepest.race._direction import direction
from steepest.race.problems import known, load

from .small import LINE


def accuracy(params, data):
    return LINE.loss(params, data)


def top1_acc(params, data):
    return LINE.loss(params, data)


def log_loss(params, data):
    return LINE.loss(params, data)


@pytest.mark.parametrize(
    ("how", "noted"),
    [
        ({"metric": accuracy}, "A lower `accuracy` wins.*a higher one is better, make"),
        ({"metric": top1_acc}, "A lower `top1_acc` wins"),
        ({"metric": accuracy, "better": "higher"}, None),
        ({"metric": lambda params, data: 0.0, "measure": "mean IoU"}, "`mean IoU`"),
        ({"metric": accuracy, "measure": "test error"}, None),
        ({"measure": "error of accuracy", "better": "higher"}, None),
        ({"metric": log_loss, "better": "higher"}, 'better="lower"'),
        ({"metric": None, "better": "higher"}, "A higher `loss` wins"),
        ({"metric": lambda params, data: 0.0, "better": "higher"}, None),
        ({"measure": "lossless", "better": "higher"}, None),
        ({}, None),
    ],
)
def test_a_name_that_contradicts_is_noted(how, noted):
    remarks = [*direction(replace(LINE, **how))]
    if noted is None:
        assert not remarks
    else:
        (remark,) = remarks
        assert re.search(noted, remark)


@pytest.mark.parametrize("name", known())
def test_embedded_problems_have_a_direction(name):
    assert not [*direction(load(name))]


def test_the_race_notes_it():
    problem = replace(LINE, metric=accuracy)
    (remark,) = race(problem, ["sgd"], seeds=1, steps=1).remarks
    assert remark.startswith("A lower `accuracy` wins in this race.")
