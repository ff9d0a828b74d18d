# SPDX-License-Identifier: BSD-3-Clause
"""Compiles the C++ programs that the tests run, plainly and for sanitizers.

`make test` does so before the tests, which compile what has changed since: a test that has to
compile takes minutes, while others wait for it.
"""

from __future__ import annotations

from sanitizers import SANITIZERS, build
from suites import STANDIN, build_target

DRIVER_TESTS = ("driver_tests", "allocator_tests")
STANDIN_TESTS = ("standin_tests", "standin_driver_tests", "standin_device_error_tests")
# For the HAL suite.
SANITIZED_DRIVER = "puone_cuda_standin"


def main() -> None:
    has_standin = STANDIN.exists()
    for sanitizer in SANITIZERS:
        targets = [*DRIVER_TESTS]
        if has_standin and sanitizer:
            targets += STANDIN_TESTS
        if has_standin and "address" in sanitizer:
            targets.append(SANITIZED_DRIVER)
        for target in targets:
            print(f"{target} ({sanitizer or 'plain'})", flush=True)
            build(sanitizer, target=target)
    for target in (
        (*STANDIN_TESTS, "standin_blas_tests", "puone_fake_nccl", "standin_liars")
        if has_standin
        else ()
    ):
        print(target, flush=True)
        build_target(target)


if __name__ == "__main__":
    main()
