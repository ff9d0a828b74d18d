# SPDX-License-Identifier: BSD-3-Clause
"""The message of an error names the sizes that are wrong."""

from __future__ import annotations

import re

from torch_conformance.authoring.api import Device, check, noise, raised
from torch_conformance.checks.contract._wrong_arguments import WRONG

#: Those of which the message has the sizes, on every device that has one.
_SIZED = (
    "add_sizes",
    "mm_sizes",
    "bmm_batches",
    "linear_sizes",
    "cat_dimensions",
    "stack_sizes",
    "index_sizes",
    "layer_norm_shape",
)


@check("contract/message", "CONTRACT-007", cases=_SIZED)
def messages_have_the_sizes(dev: Device, case: str) -> None:
    """The message of an error about sizes has the numbers that the CPU's has."""
    expected = raised(lambda: WRONG[case](noise((3, 4))))
    x = noise((3, 4)).to(dev.device())
    error = raised(lambda: WRONG[case](x), by=dev.synchronize)
    missing = _numbers(expected) - _numbers(error)
    assert not missing, f"{sorted(missing)} are not in: {error}"


def _numbers(error: Exception) -> set[str]:
    """The numbers of a message: both of `3x4`, and not that of `mat1`."""
    text = str(error).partition("Exception raised from")[0]
    return set(re.findall(r"(?<!\d)(?<![^\W\dx])\d+", text))
