# SPDX-License-Identifier: BSD-3-Clause
"""Compiled functions against eager ones: `python -m bench.compile [--rounds N] [NAME...]`.

`--first` measures the first call of a small function instead, from which everything is compiled, in
fresh processes without and with caches, and compares with tensors of the CPU.

Each program runs eagerly on puone, compiled on puone, and compiled by inductor for CPU tensors, in
turn in one process; the figures are medians of the rounds. Ends with status 1 if a compiled program
on puone is slower than its limit. Of matrix products, which a compiler leaves to the library, the
time alone is measured, too: no compiled program can be faster than they are.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

import torch_puone  # noqa: F401 - registers the device


class Times(NamedTuple):
    """Median seconds."""

    eager: float
    compiled: float
    for_cpu: float
    cpu_eager: float
    products: float = 0.0  # alone


class Program(NamedTuple):
    function: Callable[..., Any]
    shapes: list[tuple[int, ...]]
    eager: float  # how many times faster than eager it shall be
    cpu: float = 0.8  # and than inductor for the CPU
    products: Callable[..., Any] | None = None  # of matrices, alone

    def wanted(self, times: Times) -> float:
        """How many times faster than eager: near what the products leave, if that is less."""
        if not times.products:
            return self.eager
        return min(self.eager, 0.95 * times.eager / times.products)

    def is_met(self, times: Times) -> bool:
        return (
            times.eager / times.compiled >= self.wanted(times)
            and times.for_cpu / times.compiled >= self.cpu
        )


def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Eight pointwise operators."""
    return ((((x * y + x).relu() - y) * 0.5).abs() + 1).sqrt() * x


def mlp(gelu: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    def function(x: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
        return x + gelu(torch.nn.functional.layer_norm(x, x.shape[-1:]) @ up) @ down

    return function


def gelu_of_formula(x: torch.Tensor) -> torch.Tensor:
    """That of GPT-2's published code: eight operators."""
    return 0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0))))


def products_of_mlp(x: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    return (x @ up) @ down


def batch_norm(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.batch_norm(x, None, None, training=True).relu()


MILLION = 1 << 20
OF_MLP: list[tuple[int, ...]] = [(4096, 256), (256, 1024), (1024, 256)]
PROGRAMS = {
    "chain": Program(chain, [(MILLION,), (MILLION,)], 3.0),
    "softmax": Program(lambda x: torch.softmax(x * 2, -1), [(8192, 128)], 1.3),
    "layer_norm": Program(
        lambda x, b: torch.nn.functional.layer_norm(x + b, (128,)), [(8192, 128), (128,)], 1.3
    ),
    "gelu_mlp": Program(mlp(torch.nn.functional.gelu), OF_MLP, 1.3, products=products_of_mlp),
    "gelu_formula": Program(mlp(gelu_of_formula), OF_MLP, 1.3),
    # Of more than a million elements, so that the cost of a call, most of it PyTorch's, is small.
    "bias_gelu": Program(
        lambda x, b: torch.nn.functional.gelu(x + b), [(32768, 128), (128,)], 0.85
    ),
    "gelu_norm": Program(
        lambda x: torch.nn.functional.layer_norm(torch.nn.functional.gelu(x), (128,)),
        [(32768, 128)],
        0.85,
    ),
    "batch_norm": Program(batch_norm, [(256, 32, 32, 16)], 0.85),
    "standardise": Program(lambda x: (x - x.mean(0)) / x.std(0), [(32768, 128)], 0.85),
    "sum": Program(lambda x: x.sum(), [(4 * MILLION,)], 0.85),
    "sum_of_columns": Program(lambda x: x.sum(0), [(32768, 128)], 0.85),
    "transposition": Program(lambda x: x.t().contiguous() + 1, [(2048, 2048)], 0.85),
}


def seconds(call: Callable[[], object]) -> float:
    """Of one call behind another of its kind.

    Threads of OpenMP spin for some milliseconds when a call for the CPU has ended, on the cores
    that the next call needs.
    """
    time.sleep(0.01)
    call()
    torch.accelerator.synchronize()
    start = time.perf_counter()
    call()
    torch.accelerator.synchronize()
    return time.perf_counter() - start


def measure(program: Program, rounds: int) -> Times:
    torch.manual_seed(0)
    host = [torch.randn(shape) / shape[-1] ** 0.5 for shape in program.shapes]
    device = [tensor.to("puone") for tensor in host]
    torch._dynamo.reset()
    compiled, for_cpu = torch.compile(program.function), torch.compile(program.function)
    result = compiled(*device)
    torch.testing.assert_close(result.cpu(), program.function(*host), rtol=1e-3, atol=1e-4)
    calls: list[Callable[[], object]] = [
        lambda: program.function(*device),
        lambda: compiled(*device),
        lambda: for_cpu(*host),
        lambda: program.function(*host),
    ]
    products = program.products
    if products is not None:
        calls.append(lambda: products(*device))
    for call in calls:
        for _ in range(3):
            call()
    times = [[seconds(call) for call in calls] for _ in range(rounds)]
    return Times(*(statistics.median(column) for column in zip(*times, strict=True)))


FIRST = """
import sys, time, torch, torch_puone
x = torch.ones(1000, device=sys.argv[1])
start = time.perf_counter()
torch.compile(lambda x: (x * 2 + 1).relu().sum())(x).item()
print(time.perf_counter() - start)
"""


def first_call(device: str, caches: str) -> float:
    """Seconds, in a fresh process."""
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor",
        "PUONE_MODULE_CACHE": f"{caches}/modules",
    }
    command = [sys.executable, "-c", FIRST, device]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def compare_first_calls(rounds: int) -> int:
    """Print the medians; 1 if the device takes more than twice as long as the CPU."""
    without: dict[str, list[float]] = {"puone": [], "cpu": []}
    with_caches: dict[str, list[float]] = {"puone": [], "cpu": []}
    for _ in range(rounds):
        for device in without:
            with tempfile.TemporaryDirectory() as caches:
                without[device].append(first_call(device, caches))
                with_caches[device].append(first_call(device, caches))
    for name, times in (("without caches", without), ("second process", with_caches)):
        ours, cpu = (statistics.median(times[device]) for device in ("puone", "cpu"))
        print(f"first call, {name}: {ours:.2f} s, {ours / cpu:.2f} of inductor's for the CPU")
    return int(statistics.median(without["puone"]) > 2 * statistics.median(without["cpu"]))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.compile",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, help="51, or 5 with --first")
    parser.add_argument("--first", action="store_true", help="the first call of a small function")
    parser.add_argument("names", nargs="*", choices=[*PROGRAMS, []], metavar="NAME")
    options = parser.parse_args()
    if options.first:
        return compare_first_calls(options.rounds or 5)
    torch.set_num_threads(2)
    missed = 0
    print(
        f"{'program':16}{'eager ms':>10}{'compiled':>10}{'CPU eager':>10}{'compiled':>10}  ratios"
    )
    for name in options.names or PROGRAMS:
        program = PROGRAMS[name]
        times = measure(program, options.rounds or 51)
        met = program.is_met(times)
        missed += not met
        columns = (times.eager, times.compiled, times.cpu_eager, times.for_cpu)
        print(
            f"{name:16}{''.join(f'{each * 1e3:10.2f}' for each in columns)}"
            f"  {times.eager / times.compiled:.2f} of eager (wanted {program.wanted(times):.2f}),"
            f" {times.for_cpu / times.compiled:.2f} of the CPU (wanted {program.cpu:.2f}),"
            f" inductor's own gain {times.cpu_eager / times.for_cpu:.2f}"
            f"{'' if met else '  MISSED'}",
            flush=True,
        )
        if times.products:
            print(
                f"{'':16}{times.products * 1e3:10.2f} ms are products of matrices: at most"
                f" {times.eager / times.products:.2f} of eager is possible"
            )
    print(f"{missed} of {len(options.names or PROGRAMS)} missed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
