# SPDX-License-Identifier: BSD-3-Clause
"""torch.autocast("puone") casts what torch.autocast("cuda") casts."""

from __future__ import annotations

from interpreter import Python

COMPARE = """
import torch, torch_puone

def registered(key):
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = torch._C._dispatch_get_all_op_names()
    return {name for name in names if name.startswith("aten::") and has(name, key)}

cuda, own = registered("AutocastCUDA"), registered("AutocastPrivateUse1")
assert len(cuda) > 100
print(sorted(cuda - own), sorted(own - cuda))
"""


def test_the_operators_registered_for_autocast_are_cudas(python: Python) -> None:
    """cuDNN's two operators can only run on CUDA; nothing else may be missing, or be more."""
    done = python(COMPARE)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['aten::cudnn_convolution', 'aten::cudnn_convolution_transpose'] []\n"
