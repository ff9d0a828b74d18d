# SPDX-License-Identifier: BSD-3-Clause
"""The backend on its first day does what it has, and says of the rest that it is missing."""

from __future__ import annotations

from pathlib import Path

from interpreter import Python

FRESHCHIP = Path(__file__).resolve().parent / "freshchip"


def test_twelve_operators_train_and_the_others_are_missing(python: Python) -> None:
    done = python(
        f"import sys; sys.path.insert(0, {str(FRESHCHIP)!r})\n"
        "import torch\n"
        "from torch_freshchip.operators import OPERATORS\n"
        "x = torch.arange(6.0).view(2, 3).to('freshchip').requires_grad_()\n"
        "(x * x + 1).sum().backward()\n"
        "assert x.grad.device.type == 'freshchip' and x.grad.tolist() == [[0, 2, 4], [6, 8, 10]]\n"
        "column = x.detach()[:, 1:2]\n"
        "assert (x.detach() @ x.detach().t() @ column).tolist() == [[61], [214]]\n"
        "try:\n"
        "    x.relu()\n"
        "except NotImplementedError as error:\n"
        # At once: an autograd thread that still lets go of Python objects when the interpreter
        # ends, ends the process (Python before 3.14 unwinds it through C++).
        "    print(len(OPERATORS), str(error).split(' with')[0], flush=True)\n"
    )
    assert done.stdout == "12 Could not run 'aten::relu'\n", done.stderr
