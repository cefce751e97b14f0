"""What a step on an H200 consists of, counted without a GPU: kernels and bytes.

    python -m pip install --no-deps jax-cuda12-plugin jax-cuda12-pjrt    # JAX's version
    python -m benchmarks.counted soap "soap, keep_stacks" --tree gpt2 --most 10

XLA compiles the step of an optimizer of matrices for an H200, which takes its plugin
and `ptxas` of the CUDA toolkit, but no GPU. Without one it does not choose the fastest
kernels, so products are those of cuBLAS. What it fuses, and what is read and written
between kernels, is the same. An H200 moves about 4 GB in a millisecond.

Work that is due every few steps, a turn, stands in conditions: the bytes of a turn are
those of all turns together, once each, although no step has all of them. Loops count
once. Large arrays of which a kernel reads or writes only a part count whole, unless it
slices them first. The scratch memory of cuBLAS does not count.
"""

import argparse
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

import steepest

from .abstract_gpu import abstract_gpu
from .matrix import hidden, OURS
from .table import amount, markdown
from .trees import Tree, TREES

_FLAGS = {
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
    "XLA_FLAGS": "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false",
}
_H200 = """
gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  shared_memory_per_block_optin: 232448
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 150000000000
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  cuda_compute_capability { major: 9 }
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 8 }
device_description_str: "NVIDIA H200"
"""


class Kernel(NamedTuple):
    """One launch.

    Attributes:
        name: in the program.
        kind: what computes it.
        in_turn: whether it only runs if something is due.
        read: bytes.
        written: bytes.
        shape: of the result.
    """

    name: str
    kind: str
    in_turn: bool
    read: int
    written: int
    shape: str


class _Line(NamedTuple):
    name: str
    shape: str
    op: str
    names: list[str]  # of the operands
    text: str


def program(tx: Any, tree: Tree) -> str:
    """The compiled program of a step and the addition to the params, as text.

    Args:
        tx: the optimizer.
        tree: the params.
    """
    there = topologies.get_topology_desc(
        "h200", platform="cuda", topology="1x1x1", target_config=_H200
    )
    place = SingleDeviceSharding(there.devices[0])
    put = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place)
    params = jax.tree.map(put, tree.shapes)
    state = jax.tree.map(put, jax.eval_shape(tx.init, params))

    def step(params: Any, state: Any, grads: Any) -> Any:
        updates, state = tx.update(grads, state, params)
        return steepest.apply_updates(params, updates), state

    with abstract_gpu():
        traced = jax.jit(step, donate_argnums=(0, 1)).trace(params, state, params)
        lowered = traced.lower(lowering_platforms=("cuda",))
    return lowered.compile().as_text()


def kernels(text: str) -> list[Kernel]:
    """All launches of a program, in its order.

    Args:
        text: of a compiled program.
    """
    parts, entry = _parts(text)
    return list(_launches(parts, entry, False))


_NO_LAUNCH = {"parameter", "constant", "bitcast", "tuple", "get-tuple-element"}
_INDEX = re.compile(r"/\*index=\d+\*/")  # a comment, after five parts of a tuple
_LINE = re.compile(r"\s+(?:ROOT )?%([\w.\-]+) = (\([^=]*?\)|\S+) ([\w\-]+)\((.*)")
_CALLED = re.compile(r"(?:body|calls|to_apply|true_computation|false_computation)=%")


def _parts(text: str) -> tuple[dict[str, list[_Line]], str]:
    """The lines of each computation, and the name of the outermost."""
    parts: dict[str, list[_Line]] = {}
    here: list[_Line] = []
    entry = ""
    for line in _INDEX.sub("", text).splitlines():
        if head := re.match(r"(ENTRY )?%([\w.\-]+) \(.*\{$", line):
            here = parts[head[2]] = []
            entry = head[2] if head[1] else entry
        elif found := _LINE.match(line):
            name, shape, op, rest = found.groups()
            names = re.findall(r"%([\w.\-]+)", rest[: _closing(rest)])
            here.append(_Line(name, shape, op, names, line))
    return parts, entry


def _closing(text: str) -> int:
    """Where the bracket closes that opened before the text."""
    depth = 1
    for k, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return k
    return len(text)


def _launches(
    parts: dict[str, list[_Line]], name: str, in_turn: bool
) -> Iterator[Kernel]:
    shapes = {line.name: line.shape for line in parts[name]}
    for line in parts[name]:
        called = [line.text[x.end() :] for x in _CALLED.finditer(line.text)]
        called = [re.match(r"[\w.\-]+", x)[0] for x in called]  # pyright: ignore
        if line.op in _NO_LAUNCH:
            continue
        if line.op in ("while", "conditional", "call"):
            for inner in called:
                yield from _launches(parts, inner, in_turn or line.op == "conditional")
            continue
        read = [_bytes(shapes.get(x, "")) for x in line.names]
        if line.op == "fusion":
            read = _read_by(parts[called[0]], read)
        kind = re.search(r'custom_call_target="([^"]*)"', line.text)
        kind = kind[1].strip("_$").split("$")[-1] if kind else line.op
        # The scratch memory of a product is the only array of bytes that it returns.
        shape = re.sub(r"s8\[\d+\]", "", line.shape) if kind == "matmul" else line.shape
        written = _bytes(shape)
        yield Kernel(line.name, kind, in_turn, sum(read), written, line.shape)


def _read_by(lines: Sequence[_Line], sizes: Sequence[int]) -> list[int]:
    """What a fused kernel reads of each operand: of a sliced one only the slices."""
    read = list(sizes)
    for line in lines:
        index = re.search(r" parameter\((\d+)\)", line.text)
        users = [x for x in lines if line.name in x.names]
        if index and users and all("slice" in x.op for x in users):
            inside = (x for x in users if x.op != "dynamic-update-slice")
            read[int(index[1])] = sum(_bytes(x.shape) for x in inside)
    return read


_WIDTHS = {"pred": 1, "s8": 1, "u8": 1, "f16": 2, "bf16": 2, "s64": 8, "f64": 8}


def _bytes(shape: str) -> int:
    """The size of an array, or of all arrays of a tuple."""
    total = 0
    for dtype, sizes in re.findall(r"(\w+)\[([\d,]*)\]", shape):
        many = _WIDTHS.get(dtype, 4)
        for size in filter(None, sizes.split(",")):
            many *= int(size)
        total += many
    return total


def summary(found: Sequence[Kernel]) -> str:
    """Kernels and bytes by kind, for all steps and for turns.

    Args:
        found: the launches of a program.
    """
    many: Counter[tuple[bool, str]] = Counter()
    moved: Counter[tuple[bool, str]] = Counter()
    for kernel in found:
        for kind in ("all", kernel.kind):
            many[kernel.in_turn, kind] += 1
            moved[kernel.in_turn, kind] += kernel.read + kernel.written
    lines = [
        ["turn" if turn else "step", kind, str(many[turn, kind]), amount(size, "B")]
        for (turn, kind), size in sorted(moved.items(), key=lambda x: (x[0][0], -x[1]))
    ]
    return markdown(["run", "what", "kernels", "moved"], lines)


def main() -> None:
    """Print what the steps of some optimizers consist of."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counted")
    parser.add_argument("optimizers", nargs="+", choices=[*OURS], metavar="NAME")
    parser.add_argument("--tree", choices=[*TREES], default="gpt2")
    parser.add_argument("--most", type=int, default=0, help="list the largest kernels")
    args = parser.parse_args()
    for flag, value in _FLAGS.items():
        os.environ.setdefault(flag, value)
    jax.devices("cpu")  # the plugin of the GPU finds none
    jax.default_backend = lambda: "gpu"  # what steepest asks before it uses its kernels
    for name in args.optimizers:
        found = kernels(program(OURS[name](), hidden(TREES[args.tree])))
        print(f"{args.tree}, {name}:\n\n{summary(found)}\n")
        largest = sorted(found, key=lambda x: -(x.read + x.written))[: args.most]
        for kernel in largest:
            sizes = [amount(x, "B") for x in (kernel.read, kernel.written)]
            print(kernel.name, kernel.kind, *sizes, kernel.shape[:60])


if __name__ == "__main__":
    main()
