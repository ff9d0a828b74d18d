# SPDX-License-Identifier: BSD-3-Clause
"""Becoming `torch.puone`: whatever is imported first, by whom, and how often."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from interpreter import WITHOUT_EDITABLE, Python

WORKS = """
import sys
import torch_puone
assert torch.puone is torch_puone is sys.modules["torch.puone"]
assert torch.device("puone:1").type == "puone"
assert not torch.puone.is_initialized()
x = torch.arange(6, device="puone")
assert x.is_puone and x.cpu().tolist() == list(range(6))
"""


@pytest.mark.parametrize("autoload", [False, True], ids=["explicit", "autoload"])
@pytest.mark.parametrize("order", ["import torch_puone, torch", "import torch"])
def test_it_works_in_either_import_order(python: Python, order: str, autoload: bool) -> None:
    done = python(f"{order}\n{WORKS}", autoload=autoload)
    assert done.returncode == 0, done.stderr
    assert done.stdout == done.stderr == ""


def test_the_entry_point_is_installed_and_is_all_that_torch_needs(python: Python) -> None:
    done = python("import torch; print(torch.puone.__name__)", autoload=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "torch_puone\n"


def test_without_autoload_torch_does_not_load_it(python: Python) -> None:
    done = python("import sys, torch; print('torch_puone' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


def test_it_may_be_imported_again(python: Python) -> None:
    code = """
import importlib, sys, torch, torch_puone
importlib.reload(torch_puone)
assert torch.puone is torch_puone
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_a_submodule_is_the_same_object_under_both_names(python: Python) -> None:
    code = """
import torch, torch_puone
import torch.puone.amp, torch.puone.memory, torch.puone.random, torch.puone.streams
for name in ("amp", "memory", "random", "streams"):
    part = getattr(torch_puone, name)
    assert getattr(torch.puone, name) is part, name
    assert __import__(f"torch.puone.{name}", fromlist=["x"]) is part, name
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_a_taken_name_is_a_clear_error_and_registers_nothing(python: Python) -> None:
    code = """
import torch
torch.utils.rename_privateuse1_backend("npu")
try:
    import torch_puone
except ImportError as error:
    print(error)
import sys
assert not hasattr(torch, "puone") and "torch_puone._C" not in sys.modules
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert "'npu' has it already" in done.stdout
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in done.stdout


def test_the_library_alone_names_the_device_and_python_adds_its_half(
    python: Python, root: Path
) -> None:
    code = f"""
import ctypes, torch
from torch._C._autograd import DeviceType
ctypes.CDLL({str(root / "build" / "lib" / "libtorch_puone.so")!r}, ctypes.RTLD_GLOBAL)
assert torch._C._get_privateuse1_backend_name() == "puone"
assert torch.accelerator.current_accelerator().type == "puone"
assert not hasattr(DeviceType, "PUONE")
import torch_puone
assert DeviceType.PUONE.name == "PUONE"
x = torch.ones(2, device="puone", requires_grad=True)
x.sum().backward()
assert x.grad.cpu().tolist() == [1, 1]
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_a_missing_extension_is_a_clear_error(python: Python, root: Path, tmp_path: Path) -> None:
    shutil.copytree(
        root / "reference_backend" / "torch_puone",
        tmp_path / "torch_puone",
        ignore=shutil.ignore_patterns("*.so", "_build.py", "lib", "__pycache__"),
    )
    code = f"""{WITHOUT_EDITABLE}
sys.path.insert(0, {str(tmp_path)!r})
import torch_puone
"""
    done = python(code)
    assert done.returncode == 1
    assert "ImportError: torch_puone._C, the compiled part" in done.stderr
    assert "make build" in done.stderr


def test_the_methods_are_generated(python: Python) -> None:
    code = """
import torch, torch_puone
from torch.nn.utils.rnn import pack_sequence
assert torch.ones(2).puone().is_puone
assert torch.nn.Linear(2, 2).puone().weight.is_puone
assert pack_sequence([torch.ones(2)]).puone().data.is_puone
assert torch.ones(2).untyped_storage().puone().is_puone
assert torch.ones(2, dtype=torch.complex64).untyped_storage().puone().device.type == "puone"
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
