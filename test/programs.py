# SPDX-License-Identifier: BSD-3-Clause
"""Compiles the C++ programs that the tests run; with `--rest`, what the nightly tests add: the
planted defects of the cuda driver, and programs with sanitizers.

`make test` and `make test-all` do so before the tests, which compile what has changed since: a test
that has to compile takes minutes, while others wait for it.
"""

from __future__ import annotations

import sys

from sanitizers import SANITIZERS, build
from suites import STANDIN, build_target

DRIVER_TESTS = ("driver_tests", "allocator_tests")
STANDIN_TESTS = ("standin_tests", "standin_driver_tests", "standin_device_error_tests")
STANDIN_PARTS = ("standin_blas_tests", "standin_dnn_tests", "puone_fake_nccl")
# For the HAL suite.
SANITIZED_DRIVER = "puone_cuda_standin"


def main() -> None:
    has_standin = STANDIN.exists()
    rest = "--rest" in sys.argv
    wanted = [name for name in SANITIZERS if name] if rest else [""]
    of_standin = ["standin_liars"] if rest else [*STANDIN_TESTS, *STANDIN_PARTS]
    for sanitizer in wanted:
        targets = [*DRIVER_TESTS]
        if has_standin and sanitizer:
            targets += STANDIN_TESTS
        if has_standin and "address" in sanitizer:
            targets.append(SANITIZED_DRIVER)
        for target in targets:
            print(f"{target} ({sanitizer or 'plain'})", flush=True)
            build(sanitizer, target=target)
    if has_standin:
        for target in of_standin:
            print(target, flush=True)
            build_target(target)


if __name__ == "__main__":
    main()
