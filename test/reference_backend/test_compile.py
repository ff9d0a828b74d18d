# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile besides inductor's kernels, which test/inductor is about."""

from __future__ import annotations

import pytest
from interpreter import Python

MODEL = """
import sys, torch
model = torch.nn.Linear(4, 2)
inputs = torch.ones(3, 4)
"""


def test_inductor_still_compiles_for_the_cpu(python: Python) -> None:
    code = f"""{MODEL}
import torch_puone
assert torch.allclose(torch.compile(model)(inputs), model(inputs))
"""
    done = python(code, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_backends_without_kernels_work(python: Python, backend: str) -> None:
    code = f"""{MODEL}
import torch_puone
expected = model(inputs)
model.to("puone")
out = torch.compile(model, backend={backend!r})(inputs.to("puone"))
out.sum().backward()
assert torch.allclose(out.cpu(), expected, atol=1e-6)
assert model.weight.grad.device.type == "puone"
"""
    done = python(code, timeout=300)
    assert done.returncode == 0, done.stderr


def test_importing_the_backend_does_not_import_the_compiler(python: Python) -> None:
    code = """
import sys, torch
before = "torch._inductor.codegen.common" in sys.modules, "torch._dynamo" in sys.modules
import torch_puone
after = "torch._inductor.codegen.common" in sys.modules, "torch._dynamo" in sys.modules
assert before == after == (False, False), (before, after)
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
