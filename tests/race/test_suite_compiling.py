"""Programs of the suite are compiled in threads, and run as soon as they can."""

import threading

from steepest.race.suite import arms_named
from steepest.race.suite._compiling import compiling
from steepest.race.suite._members import Members

from .suites import TINY


class Compiled(Members):
    """A program that takes no time to compile."""

    def __init__(self, arm, size, data):
        self.arm = arm

    def compile(self):
        return self


def _turns(arms, slow, before, left=lambda: 60.0):
    """What was compiled, and the order in which the arms come.

    The slow arm is only compiled when as many others as `before` have come.
    """
    began, go, order = [], threading.Event(), []

    def make(arm, size, data):
        began.append(arm.name)
        if arm.name == slow:
            assert go.wait(60)
        return Compiled(arm, size, data)

    with compiling(TINY, arms, {}, 4, left=left, make=make) as programs:
        for arm, program in programs:
            order.append(arm.name)
            if len(order) == before:
                go.set()
            if left() > 0:
                assert program().arm is arm
    return began, order


def test_an_arm_runs_when_its_program_and_its_numbers_are_there():
    """The first program is compiled alone; a slow one does not hold up the others."""
    arms = arms_named(["adamw", "muon", "muon int8", "lion", "lion int8"])
    began, order = _turns(arms, "muon", 3)
    assert began[0] == order[0] == "adamw"
    assert order[1:3] == ["lion", "lion int8"]  # the int8 twin of Muon waits for it
    assert order[3:] == ["muon", "muon int8"]


def test_a_program_that_is_not_ready_is_not_waited_for_at_the_end():
    arms = arms_named(["adamw", "lion"])
    began, order = _turns(arms, "adamw", 2, lambda: 0.0)
    assert order == ["adamw", "lion"] and began == ["adamw"]
