# SPDX-License-Identifier: BSD-3-Clause
"""The package knows nothing of puone: a copy of it serves another backend."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

from interpreter import Python

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "reference_backend" / "torch_puone" / "migrate"
FRESHCHIP = ROOT / "test" / "subjects" / "freshchip"


def test_it_imports_only_itself_torch_libcst_and_pythons_library() -> None:
    for file in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.level <= 1, file
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", None) or alias.name for alias in node.names]
                assert not any(name.startswith("torch_puone") for name in names), file


def test_a_copy_runs_cuda_code_on_another_backend(tmp_path: Path, python: Python) -> None:
    shutil.copytree(PACKAGE, tmp_path / "migrate", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "program.py").write_text(
        "import torch\n"
        "x = torch.arange(6.0).view(2, 3).cuda().requires_grad_()\n"
        "(x * x + 1).sum().backward()\n"
        "assert x.is_cuda and torch.cuda.is_available() and torch.cuda.device_count() == 1\n"
        "assert not hasattr(torch.cuda, 'get_device_name')\n"
        "print(x.grad.device, x.grad.tolist(), flush=True)\n"
    )
    done = python(
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(FRESHCHIP)!r}]\n"
        "import torch, torch_freshchip\n"
        "from migrate.__main__ import main\n"
        f"main(['--device', 'freshchip', {str(tmp_path / 'program.py')!r}])\n"
        "assert 'torch_puone' not in sys.modules\n"
    )
    assert done.stdout == "freshchip:0 [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]\n", done.stderr
    assert done.stderr.count("CudaUse") == 5
