# SPDX-License-Identifier: BSD-3-Clause
"""The autocast chapter checks every operator that the installed torch casts on CUDA."""

from __future__ import annotations

import torch

from torch_conformance.checks.autocast import FP32, LOWER, PROMOTE, REFUSED, case_of

#: On CUDA's lists, but of cuDNN: no other device can have them.
OF_CUDNN = {"cudnn_convolution", "cudnn_convolution_transpose"}


def test_the_tables_hold_what_cuda_registers() -> None:
    registered = {
        name.removeprefix("aten::")
        for name in torch._C._dispatch_get_all_op_names()
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, "AutocastCUDA")
    }
    assert len(registered) > 100
    tables = {*LOWER, *FP32, *PROMOTE, *REFUSED}
    assert registered - OF_CUDNN - tables == set(), "to be added to the tables"
    # Entries of one torch that another does not have are `unsupported` there, but must be few.
    assert len(tables - registered) < 10


def test_an_operator_is_in_one_table_and_its_case_is_its_own() -> None:
    names = [*LOWER, *FP32, *PROMOTE, *REFUSED]
    assert len({case_of(name) for name in names}) == len(names)
