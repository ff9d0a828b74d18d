# SPDX-License-Identifier: BSD-3-Clause
"""A call with wrong arguments raises the exception that the CPU raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from torch_conformance.authoring.api import Device, check, noise, raised
from torch_conformance.checks.contract._wrong_arguments import WRONG


@check("contract/wrong_arguments", "ERR-001", cases=WRONG)
def wrong_arguments_raise_the_cpus_exception(dev: Device, case: str) -> None:
    """A call with wrong arguments raises the type that the CPU raises, and changes nothing."""
    expected, x = raised(lambda: WRONG[case](noise((3, 4)))), noise((3, 4)).to(dev.device())
    error = raised(lambda: WRONG[case](x), by=dev.synchronize)
    kinds = (type(expected), *_raised_for_shapes(WRONG[case]))
    assert isinstance(error, kinds), f"{error!r} instead of {expected!r}"
    dev.assert_equal(x, noise((3, 4)))


def _raised_for_shapes(call: Callable[[Tensor], Any]) -> list[type[Exception]]:
    """What PyTorch's own functions of shapes raise, which a backend may use, if they raise.

    They do not always agree with the CPU's kernels.
    """
    try:
        call(noise((3, 4)).to("meta"))
    except Exception as error:
        return [] if isinstance(error, NotImplementedError) else [type(error)]
    return []
