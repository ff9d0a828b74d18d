# SPDX-License-Identifier: BSD-3-Clause
"""How fast generated kernels are: `python -m bench.module [--rounds N] [--driver PATH]`.

A kernel of a module that computes a * b + c, and the driver's own "addcmul" for the same, on
float32, in turn in one process: the time of a launch and its synchronisation. Also the time of a
compilation, and of one that the cache answers. Ends with status 1 if the generated kernel takes
more than LIMIT times as long.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from ctypes import byref, c_void_p
from pathlib import Path

from hal_conformance import abi, contract, kernels, modules
from hal_conformance.abi import ModuleAccessFlags
from hal_conformance.driver import Driver
from hal_conformance.kernels import DType

ROOT = Path(__file__).parents[1]
LIMIT = 1.2
SOURCE = b"""\
struct Args {
  Arguments arguments;
  const float *a, *b, *c;
  float* out;
};
PUONE_MODULE_MAP(fused, Args) {
  args.out[i] = args.a[i] * args.b[i] + args.c[i];
}
"""


class Args(ctypes.Structure):
    _fields_ = [
        ("arguments", abi.ModuleArguments),
        *((name, c_void_p) for name in ("a", "b", "c", "out")),
    ]


def declaration() -> abi.ModuleKernel:
    flags = dict.fromkeys("abc", ModuleAccessFlags.READ) | {"out": ModuleAccessFlags.WRITE}
    accesses = [modules.dense(name, name, flag, 4, Args) for name, flag in flags.items()]
    return abi.ModuleKernel(
        name=b"fused",
        args_size=ctypes.sizeof(Args),
        access_count=len(accesses),
        accesses=(abi.ModuleAccess * len(accesses))(*accesses),
    )


def addcmul(out: int, inputs: list[int], count: int) -> ctypes.Structure:
    """Arguments of "addcmul": out = c + 1 * a * b."""
    args = contract.struct("puone_elementwise_args")()
    args.ndim, args.sizes[0] = 1, count
    args.compute = args.common = DType.FLOAT32
    for place, address in enumerate([out, *inputs]):
        args.dtypes[place] = DType.FLOAT32
        args.operands[place] = kernels.operand(address, [4])
    ctypes.memmove(args.parameters, modules.floats([1.0]), 4)
    return args


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compilations(hal: Driver) -> tuple[float, float]:
    """Of the source, and of it again."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["PUONE_MODULE_CACHE"] = cache
        hal.ok(hal.module().target(-1, byref(abi.ModuleTarget())))  # asks the compiler once
        first = seconds(lambda: modules.compiled(hal, SOURCE))
        again = seconds(lambda: modules.compiled(hal, SOURCE))
        return first, again


def measure(hal: Driver, count: int, rounds: int) -> list[tuple[float, float]]:
    """(generated, own) for each round, in seconds."""
    stream, size = hal.stream(), 4 * count
    a, b, c, out = (hal.malloc(size) for _ in range(4))
    for block in (a, b, c, out):
        hal.memset(block, 0, size, stream)
    module = modules.loaded(hal, modules.compiled(hal, SOURCE))
    status, fused = modules.try_find(hal, module, declaration())
    hal.ok(status)
    own, own_args = hal.kernel("addcmul"), addcmul(out, [c, a, b], count)
    args = Args(abi.ModuleArguments(count=count), a, b, c, out)

    def run(kernel: int | None, given: ctypes.Structure) -> None:
        hal.ok(hal.api.kernel_launch(kernel, byref(given), ctypes.sizeof(given), stream, None))
        hal.synchronize(stream)

    def both() -> tuple[float, float]:
        return seconds(lambda: run(fused, args)), seconds(lambda: run(own, own_args))

    for _ in range(5):
        both()
    return [both() for _ in range(rounds)]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.module",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=201)
    parser.add_argument("--elements", type=int, default=1_000_000)
    parser.add_argument("--driver", type=Path, default=ROOT / "build" / "lib" / "libpuone_sim.so")
    options = parser.parse_args()
    hal = Driver(options.driver)
    hal.ok(hal.api.init())
    first, again = compilations(hal)
    rounds = measure(hal, options.elements, options.rounds)
    generated, own = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(one / other for one, other in rounds)
    hal.ok(hal.api.shutdown())
    print(f"compile          {first * 1e3:8.1f} ms")
    print(f"from the cache   {again * 1e3:8.2f} ms")
    print(f"generated        {generated * 1e6:8.1f} us for {options.elements} elements")
    print(f"addcmul          {own * 1e6:8.1f} us")
    print(f"ratio            {ratio:8.2f}, allowed {LIMIT}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
