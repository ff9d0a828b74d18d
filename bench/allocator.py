# SPDX-License-Identifier: BSD-3-Clause
"""What threads and streams cost the device allocator: `python -m bench.allocator [--rounds N]`.

A million allocations by one thread for one stream, by four threads for two streams each, and by
four threads for the same eight streams, in turn, in C++ (test/cpp/allocator/bench.cpp). The cost is
processor time for each allocation and its free; elapsed time is for information: with more threads
than cores it says more about the machine. Ends with status 1 if four threads for eight streams of
their own cost more than LIMIT times a single one.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "drivers-plain"
LIMIT = 1.3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.allocator", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = measure(parser.parse_args().rounds)
    columns = zip(*rounds, strict=True)
    single, own, shared, *elapsed = (statistics.median(column) for column in columns)
    ratio = statistics.median(each[1] / each[0] for each in rounds)
    ratio_shared = statistics.median(each[2] / each[0] for each in rounds)
    print(f"1 thread,  1 stream          {single:7.0f} ns {elapsed[0]:7.0f} ns elapsed")
    print(f"4 threads, 2 streams each    {own:7.0f} ns {elapsed[1]:7.0f} ns elapsed {ratio:6.2f}x")
    print(
        f"4 threads, the same 8 streams{shared:7.0f} ns {elapsed[2]:7.0f} ns elapsed"
        f" {ratio_shared:6.2f}x"
    )
    return int(ratio > LIMIT)


def measure(rounds: int) -> list[list[float]]:
    """Build the benchmark and run it; nanoseconds, a row for each round."""
    options = ["-DPUONE_DRIVER_TESTS=ON", "-DPUONE_ALLOCATOR_TESTS=ON", "-DPUONE_SANITIZE="]
    options += [f"-DPython_EXECUTABLE={sys.executable}"]
    options += ["-DPUONE_KERNEL_LEVELS=baseline", "-DPUONE_KERNELS=basic"]
    source = ROOT / "csrc" / "drivers"
    configure = ["cmake", "-S", str(source), "-B", str(FOLDER), "-G", "Ninja", *options]
    for command in (configure, ["cmake", "--build", str(FOLDER), "--target", "allocator_bench"]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    command = [str(FOLDER / "lib" / "allocator_bench"), str(rounds)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [[float(word) for word in line.split()] for line in output.splitlines()]


if __name__ == "__main__":
    sys.exit(main())
