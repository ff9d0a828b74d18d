# SPDX-License-Identifier: BSD-3-Clause
"""Four thousand quick checks. With BENCH_BROKEN set, 1,000 of them fail and 50 end their process.

They are spread over all of them, and fail in the ways and words of a backend early in its life:
operators that are missing, results that are wrong in different places, capabilities that raise,
assertions, and deaths by several signals in several functions.
"""

from __future__ import annotations

import ctypes
import os
import signal

import torch

from torch_conformance.authoring.check import check
from torch_conformance.authoring.device import Device

CASES = tuple(f"n{i}" for i in range(500))
IS_BROKEN = bool(os.environ.get("BENCH_BROKEN"))
EVERY_CRASH, EVERY_FAILURE = 80, 4
OPERATORS = tuple(
    f"aten::{name}{overload}"
    for name in ("cumsum", "erfinv", "fft_r2c", "gather", "index_add", "linalg_qr", "sort", "topk")
    for overload in ("", ".out", ".dim")
)


def _dereference(number: int) -> None:
    ctypes.string_at(number % 7)


def _abort(number: int) -> None:
    print(f"terminate called after throwing an instance of 'chip::Error'\n  what():  code {number}")
    os.abort()


def _leave(number: int) -> None:
    os._exit(number % 3)


def _divide(number: int) -> None:
    os.kill(os.getpid(), signal.SIGFPE)


def _is_wrong(dev: Device, number: int) -> None:
    actual = torch.arange(number % 37 + 2.0, device=dev.device())
    expected = torch.arange(number % 37 + 2.0)
    expected[number % 2] += number + 1
    dev.assert_equal(actual, expected)


def _lacks_an_operator(dev: Device, number: int) -> None:
    name = OPERATORS[number // 20 % len(OPERATORS)]
    raise NotImplementedError(
        f"Could not run '{name}' with arguments from the 'chip' backend. This could be because the "
        "operator doesn't exist for this backend, or was omitted during the build process."
    )


def _lacks_a_dtype(dev: Device, number: int) -> None:
    name = OPERATORS[number // 20 % len(OPERATORS)].removeprefix("aten::")
    dtype = ("Half", "BFloat16", "ComplexFloat", "Bool")[number // 100 % 4]
    raise RuntimeError(f"\"{name}_chip\" not implemented for '{dtype}'")


def _asserts(dev: Device, number: int) -> None:
    count, expected = number % 5, number % 5 + number
    assert count == expected, f"{count} events instead of {expected}"


def _runs_out(dev: Device, number: int) -> None:
    raise RuntimeError(f"chip:{number % 2} out of memory: tried to allocate {number}.5 MiB")


DEATHS = (_dereference, _abort, _leave, _divide)
FAILURES = (_is_wrong, _lacks_an_operator, _lacks_a_dtype, _asserts, _runs_out)


def _misbehave(dev: Device, number: int) -> None:
    if not IS_BROKEN:
        return
    if number % EVERY_CRASH == 7:
        DEATHS[number // EVERY_CRASH % len(DEATHS)](number)
    elif number % EVERY_FAILURE == 0:
        FAILURES[number // EVERY_FAILURE % len(FAILURES)](dev, number)


def _chapter(index: int) -> None:
    @check(f"broken/topic_{index}", "BROKEN-001", cases=CASES)
    def works(dev: Device, case: str) -> None:
        """Adds on the device, and compares."""
        number = index * len(CASES) + int(case[1:])
        base = torch.full((4,), float(number))
        dev.assert_equal(base.to(dev.device()) + 1, base + 1)
        _misbehave(dev, number)


for _index in range(8):
    _chapter(_index)
