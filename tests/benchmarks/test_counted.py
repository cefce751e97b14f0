"""Kernels and bytes of a compiled program."""

import pytest

from benchmarks.counted import kernels, summary

PROGRAM = """\
HloModule jit_step, is_scheduled=true

%fused_part (p_0: f32[8,4], p_1: f32[4]) -> f32[1,4] {
  %p_0 = f32[8,4]{1,0} parameter(0)
  %slice.1 = f32[1,4]{1,0} slice(%p_0), slice={[2:3], [0:4]}
  %p_1 = f32[4]{0} parameter(1)
  ROOT %add.1 = f32[1,4]{1,0} add(%slice.1, %p_1)
}

%y (q: (f32[8,4], f32[4])) -> f32[8,4] {
  %q = (f32[8,4]{1,0}, f32[4]{0}) parameter(0)
  %first = f32[8,4]{1,0} get-tuple-element(%q), index=0
  ROOT %copied = f32[8,4]{1,0} copy(%first)
}

%n (r: (f32[8,4], f32[4])) -> f32[8,4] {
  %r = (f32[8,4]{1,0}, f32[4]{0}) parameter(0)
  ROOT %same = f32[8,4]{1,0} get-tuple-element(%r), index=0
}

ENTRY %main.2 (a: f32[8,4], b: f32[4], c: pred[]) -> f32[8,4] {
  %a = f32[8,4]{1,0} parameter(0), sharding={replicated}
  %b = f32[4]{0} parameter(1)
  %c = pred[] parameter(2)
  %part = f32[1,4]{1,0} fusion(%a, /*index=1*/%b), kind=kLoop, calls=%fused_part
  %c2 = (f16[8,8], s8[100]) custom-call(%a, %a), custom_call_target="__cublas$lt$matmul"
  %six = (f32[4], f32[4], f32[], f32[], f32[], /*index=5*/f32[4]) fusion(%b), calls=%n
  %t = (f32[8,4]{1,0}, f32[4]{0}) tuple(%a, %b)
  ROOT %d = f32[8,4] conditional(%c, %t, %t), true_computation=%y, false_computation=%n
}
"""


def test_launches_of_a_program():
    """A fusion reads of a sliced operand only the slice; a branch is part of a turn.

    The scratch memory of a product is not counted. XLA numbers the parts of long tuples
    in comments.
    """
    found = [(x.name, x.kind, x.in_turn, x.read, x.written) for x in kernels(PROGRAM)]
    assert found == [
        ("part", "fusion", False, 16 + 16, 16),
        ("c2", "matmul", False, 2 * 128, 128),
        ("six", "fusion", False, 16, 3 * 16 + 3 * 4),
        ("copied", "copy", True, 128, 128),
    ]


@pytest.mark.parametrize("words", ["step | all    |       3 |", "turn | copy   |"])
def test_they_are_added_by_kind(words):
    assert words in summary(kernels(PROGRAM))
