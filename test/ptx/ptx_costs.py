# SPDX-License-Identifier: BSD-3-Clause
"""What kernels cost, without a card: a model, from what ptxas allotted and from the addresses that
the executor saw.

python test/ptx/ptx_costs.py     prints the table of costs.yaml as it is now
"""

from __future__ import annotations

import math
import os
import re
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from ptx_kernels import ExactLaunch, in_child, wrong_answers
from suites import CUDA

from hal_conformance.answers import (
    STORAGE,
    Case,
    In,
    Out,
    dense,
    dims,
    elementwise_args,
    rounded,
    transposed,
)
from hal_conformance.kernels import DType
from hal_conformance.known_answers.cumulative import KERNELS as SCANS
from hal_conformance.known_answers.gemm import Tf32, numbers, product
from hal_conformance.known_answers.order import order
from hal_conformance.known_answers.reduction import reduce_case
from hal_conformance.known_answers.softmax import forward

SECTOR = 32
F32, BF16, U8 = DType.FLOAT32, DType.BFLOAT16, DType.UINT8
DENSE = 1 << 16
SQUARE = (128, 256)


def unjudged(values: Any, dtype: DType, **options: Any) -> Out:
    """An output whose contents the known answers judge, at other sizes."""
    return Out(None, dtype, shape=np.shape(values), **options)


@dataclass(frozen=True)
class Launch:
    """A case, and the bytes that it must move at least."""

    case: Case
    loads: int
    stores: int


def _elementwise(kernel: str, type: DType, inputs: list[In], **options: Any) -> Launch:
    shape = np.broadcast_shapes(*(np.shape(each.values) for each in inputs))
    out = unjudged(np.empty(shape), options.pop("out_type", type), **options)
    case = Case(kernel, "", elementwise_args(type, [out], inputs), check=lambda _: None)
    loads = sum(np.size(each.values) * STORAGE[each.dtype].itemsize for each in inputs)
    return Launch(case, loads, math.prod(shape) * STORAGE[out.dtype].itemsize)


def _dense(kernel: str, type: DType, count: int) -> Launch:
    return _elementwise(
        kernel, type, [In(rounded(numbers((DENSE,), type, i), type), type) for i in range(count)]
    )


def _broadcast() -> Launch:
    row, matrix = numbers(SQUARE[1:], F32, 1), numbers(SQUARE, F32, 2)
    return _elementwise("add", F32, [In(matrix, F32), In(row, F32)])


def _copy(layout: Any, source: DType, target: DType) -> Launch:
    x = rounded(numbers(SQUARE, source, 1), source)
    args = {
        **dims(SQUARE),
        "in_dtype": source,
        "out_dtype": target,
        "out": unjudged(x, target),
        "in": In(x, source, layout),
    }
    case = Case("copy", "", args, check=lambda _: None)
    return Launch(case, x.size * STORAGE[source].itemsize, x.size * STORAGE[target].itemsize)


def _sum(shape: tuple[int, ...], over: tuple[int, ...]) -> Launch:
    x = numbers(shape, F32, 1)
    kept = tuple(1 if d in over else size for d, size in enumerate(shape))
    case = reduce_case("sum", "", In(x, F32), over, [unjudged(np.empty(kept), F32), None], F32)
    return Launch(Case("sum", "", case.args, check=lambda _: None), 4 * x.size, 4 * math.prod(kept))


def _cumsum() -> Launch:
    scan = next(scan for scan in SCANS if scan.kernel == "cumsum")
    return Launch(scan.case(F32, ((DENSE,), (0,))), 4 * DENSE, 4 * DENSE)


def _sort() -> Launch:
    case = order("sort", F32, numbers((DENSE,), F32, 1), 0, DENSE)
    return Launch(case, 4 * DENSE, (4 + 8) * DENSE)


def _softmax() -> Launch:
    x = numbers((64, 1024, 1), F32, 1)
    case = forward((F32, F32), x, 0, "")
    return Launch(case, 4 * x.size, 4 * x.size)


def _gemm(
    dtype: DType, size: int, shape: tuple[int, int, int] = (128, 128, 64), **options: Any
) -> Launch:
    m, n, k = shape
    case = product(dtype, (1, m, n, k), **options)
    return Launch(case, size * (m * k + k * n), size * m * n)


LAUNCHES: dict[str, Callable[[], Launch]] = {
    "add of float32, dense": partial(_dense, "add", F32, 2),
    "add of bfloat16, dense": partial(_dense, "add", BF16, 2),
    "exp of float32, dense": partial(_dense, "exp", F32, 1),
    "sqrt of bfloat16, dense": partial(_dense, "sqrt", BF16, 1),
    "where of float32, dense": lambda: _elementwise(
        "where",
        F32,
        [
            In(np.arange(DENSE) % 3 == 0, DType.BOOL),
            In(numbers((DENSE,), F32, 1), F32),
            In(numbers((DENSE,), F32, 2), F32),
        ],
    ),
    "add of float32, a row to each": _broadcast,
    "copy of float32": partial(_copy, dense, F32, F32),
    "copy of float32 to bfloat16": partial(_copy, dense, F32, BF16),
    "copy of float32, transposed": partial(_copy, transposed, F32, F32),
    "sum of float32, along rows": partial(_sum, SQUARE, (1,)),
    "sum of float32, along columns": partial(_sum, SQUARE, (0,)),
    "sum of float32, of all": partial(_sum, (DENSE,), (0,)),
    "cumsum of float32, of a line": _cumsum,
    "sort of float32, of a line": _sort,
    "softmax of float32": _softmax,
    "gemm of float32": partial(_gemm, F32, 4),
    "gemm of float32, as TF32": partial(_gemm, F32, 4, tf32=Tf32.EXACT),
    "gemm of bfloat16": partial(_gemm, BF16, 2),
    "gemm of bfloat16, odd columns": partial(_gemm, BF16, 2, (128, 129, 64)),
    "gemm of bfloat16, long depth": partial(_gemm, BF16, 2, (128, 128, 4096)),
}


@dataclass
class Cost:
    """Of a launch: bytes of the sectors moved against the least, the bytes of an access, and
    instructions (of a warp, times 32) for a byte that has to be moved."""

    loads: float
    stores: float
    bytes_per_access: float
    instructions_per_byte: float


def cost(launch: Launch) -> Cost:
    """What the executor counts."""

    def run() -> list[list[int]]:
        with tempfile.TemporaryDirectory() as directory:
            os.environ["PUONE_PTX_TRAFFIC"] = f"{directory}/traffic"
            taken, wrong = wrong_answers([launch.case], ExactLaunch)
            assert taken == 1 and not wrong, wrong
            lines = Path(directory, "traffic").read_text().splitlines()
        return [[int(number) for number in line.split()[1:]] for line in lines]

    grids = in_child(run)
    loaded, loading, in_sectors, stored, storing, out_sectors, executed = map(
        sum, zip(*grids, strict=True)
    )
    return Cost(
        loads=in_sectors * SECTOR / max(1, launch.loads),
        stores=out_sectors * SECTOR / max(1, launch.stores),
        bytes_per_access=(loaded + stored) / max(1, loading + storing),
        instructions_per_byte=32 * executed / (launch.loads + launch.stores),
    )


# ---- what ptxas allotted ----


@dataclass(frozen=True)
class Allotted:
    registers: int
    stack: int  # bytes of a thread: local arrays, and registers that did not fit
    threads: int  # of a block, at most


def allotted(library: Path = CUDA) -> dict[str, Allotted]:
    """By entry, from the machine code that the driver embeds."""
    found = {}
    for image in _cubins(library.read_bytes()):
        found.update(_of_cubin(image))
    if not found:
        raise LookupError(f"{library} has PTX and no machine code: build it by `make build-all`")
    return found


def _cubins(data: bytes) -> Iterator[bytes]:
    at = data.find(b"\x50\xed\x55\xba\x01\x00\x10\x00")
    while at >= 0:
        (size,) = struct.unpack_from("<Q", data, at + 8)
        entry, end = at + 16, at + 16 + size
        while entry < end:
            kind, _, header, bytes = struct.unpack_from("<HHIQ", data, entry)
            if kind == 2:
                yield data[entry + header : entry + header + bytes]
            entry += header + bytes
        at = data.find(b"\x50\xed\x55\xba\x01\x00\x10\x00", end)


#: Attributes of .nv.info sections: a block's threads; by the symbol of a function, its stack and
#: registers.
_THREADS, _STACK, _REGISTERS = 0x05, 0x11, 0x2F


def _of_cubin(image: bytes) -> dict[str, Allotted]:
    assert image[:4] == b"\x7fELF", "the machine code is compressed"
    (sections,) = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, sections + size * i) for i in range(count)]

    def text(table: int, offset: int) -> str:
        begin = headers[table][4] + offset
        return image[begin : image.index(b"\0", begin)].decode()

    named = {text(names, header[0]): header for header in headers}
    table = named[".symtab"]
    symbols = [
        text(table[6], struct.unpack_from("<I", image, table[4] + 24 * i)[0])
        for i in range(table[5] // 24)
    ]
    by_symbol: dict[tuple[int, str], int] = {}
    for code, value in _attributes(image, named.get(".nv.info")):
        if code in (_STACK, _REGISTERS):
            symbol, amount = struct.unpack("<II", value)
            by_symbol[code, symbols[symbol]] = amount
    found = {}
    for name in named:
        if name.startswith(".text._Z"):
            entry = name.removeprefix(".text.")
            own = dict(_attributes(image, named.get(f".nv.info.{entry}")))
            if _THREADS not in own:
                continue  # a function that is called
            threads = math.prod(struct.unpack("<III", own[_THREADS]))
            registers, stack = by_symbol[_REGISTERS, entry], by_symbol[_STACK, entry]
            found[entry] = Allotted(registers, stack, threads)
    return found


def _attributes(image: bytes, header: Any) -> Iterator[tuple[int, bytes]]:
    if header is None:
        return
    at, end = header[4], header[4] + header[5]
    while at < end:
        form, code, size = struct.unpack_from("<BBH", image, at)
        at += 4
        if form == 4:  # the value is behind, of `size` bytes
            yield code, image[at : at + size]
            at += size


def template(entry: str) -> str:
    """The template of kernels that a mangled name is of, and the tiles that it is for."""
    names = [
        entry[length.end() : length.end() + int(length[0])] for length in re.finditer(r"\d+", entry)
    ]
    kernel = next((name for name in names if name.endswith("Kernel")), "others")
    tile = next((name for name in names if name.endswith("Tile")), None)
    return f"{kernel} of {tile}" if tile else kernel


def stacks() -> dict[str, int]:
    """By template, the largest stack, of those that have one."""
    found: dict[str, int] = {}
    for entry, each in allotted().items():
        if each.stack > 0:
            found[template(entry)] = max(each.stack, found.get(template(entry), 0))
    return found


def main() -> None:
    print("launches:")
    for name, launch in LAUNCHES.items():
        now = cost(launch())
        fields = ", ".join(f"{field}: {value:.3f}" for field, value in vars(now).items())
        print(f"  {name}: {{{fields}}}")
    print("stacks:")
    for kernel, stack in sorted(stacks().items()):
        print(f"  {kernel}: {stack}")


if __name__ == "__main__":
    main()
