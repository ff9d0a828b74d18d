# SPDX-License-Identifier: BSD-3-Clause
"""The OpInfo forward samples as an upstream test file has them, for comparison with the suite.

One test for each operator and dtype out of `instantiate_device_type_tests`, upstream's sampling
with its reseeding before every sample, `torch.testing.assert_close`. Run by throughput.py.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase

from torch_conformance.opinfo import policy

torch.set_num_threads(1)

_DTYPES = None if os.environ.get("BENCH_DTYPES") == "all" else (torch.float32,)
_OPERATORS = [op for op in op_db if policy.applies(op)]


class TestForward(TestCase):
    """Every sample against a second run of itself, as CPU against CPU."""

    @ops(_OPERATORS, **({} if _DTYPES is None else {"allowed_dtypes": _DTYPES}))
    def test_forward(self, device: str, dtype: torch.dtype, op: Any) -> None:
        count = 0
        for sample in op.sample_inputs(device, dtype, requires_grad=False):
            count += 1
            expected = op(sample.input, *sample.args, **sample.kwargs)
            actual = op(sample.input, *sample.args, **sample.kwargs)
            if op.name not in policy.UNINITIALISED and op.name not in policy.RANDOM:
                try:
                    torch.testing.assert_close(actual, expected, equal_nan=True)
                except (AssertionError, RuntimeError, NotImplementedError):
                    pass  # Random or sparse samples; here only the time matters.
        with open(os.environ["BENCH_COUNTS"], "a", encoding="ascii") as file:
            file.write(f"{count}\n")


instantiate_device_type_tests(TestForward, globals(), only_for="cpu")
