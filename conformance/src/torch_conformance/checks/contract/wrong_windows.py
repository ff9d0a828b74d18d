# SPDX-License-Identifier: BSD-3-Clause
"""A pool with a wrong window raises the exception that the CPU raises."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch.nn import functional

from torch_conformance.authoring.api import Device, check, noise, raised

_POOLS: dict[str, tuple[Callable[..., Any], int]] = {
    "max_1d": (functional.max_pool1d, 1),
    "max_2d": (functional.max_pool2d, 2),
    "max_3d": (functional.max_pool3d, 3),
    "avg_1d": (functional.avg_pool1d, 1),
    "avg_2d": (functional.avg_pool2d, 2),
    "avg_3d": (functional.avg_pool3d, 3),
}
#: Wrong options of a window, and what is right in the other dimensions.
_WINDOWS: dict[str, list[tuple[int, int]]] = {
    "kernel_size": [(0, 2), (-1, 2), (9, 2)],
    "stride": [(0, 1), (-1, 1)],
    "padding": [(2, 0), (-1, 0)],
    "dilation": [(0, 1), (-1, 1), (9, 1)],
}


def _wrong_windows(case: str) -> list[dict[str, tuple[int, ...]]]:
    """The options of a pool of which one is wrong in one dimension."""
    size = _POOLS[case][1]
    right = {"kernel_size": (2,) * size}
    return [
        {**right, option: (good,) * d + (bad,) + (good,) * (size - d - 1)}
        for option, values in _WINDOWS.items()
        if option != "dilation" or case.startswith("max")
        for bad, good in values
        for d in range(size)
    ]


@check("contract/wrong_window", "ERR-001", cases=_POOLS)
def wrong_windows_raise_the_cpus_exception(dev: Device, case: str) -> None:
    """A pool with a wrong window in any one dimension raises the type that the CPU raises."""
    pool, size = _POOLS[case]
    image = noise((2, 3, 5, 6, 7)[: size + 2])
    there = image.to(dev.device())
    for options in _wrong_windows(case):
        expected = raised(partial(pool, image, **options))
        try:
            error = raised(partial(pool, there, **options), by=dev.synchronize)
        except AssertionError as accepted:
            raise AssertionError(f"{options}: {accepted}") from None
        assert isinstance(error, type(expected)), f"{options}: {error!r} instead of {expected!r}"
