# SPDX-License-Identifier: BSD-3-Clause
"""Becoming `torch.puone`: whatever is imported first, by whom, and how often."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from interpreter import WITHOUT_EDITABLE, Python

ROOT = Path(__file__).resolve().parents[2]

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
    done = python("import torch; print(torch.puone.__name__)", autoload=True, fresh=True)
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
import torch.puone.amp, torch.puone.faults, torch.puone.memory, torch.puone.sanitizer
for name in ("amp", "faults", "graphs", "memory", "random", "sanitizer", "streams", "tensor_tags"):
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


FAKE_BACKEND = """
import sys, torch
def load():
    torch.utils.rename_privateuse1_backend("fakechip")
    torch._register_device_module("fakechip", sys.modules[__name__])
"""


@pytest.fixture
def fakechip(tmp_path: Path) -> Path:
    """A directory in which another backend is installed, which `import torch` loads, too."""
    (tmp_path / "fakechip.py").write_text(FAKE_BACKEND)
    (tmp_path / "fakechip-1.dist-info").mkdir()
    (tmp_path / "fakechip-1.dist-info" / "METADATA").write_text("Name: fakechip\nVersion: 1\n")
    (tmp_path / "fakechip-1.dist-info" / "entry_points.txt").write_text(
        "[torch.backends]\nfakechip = fakechip:load\n"
    )
    return tmp_path


def test_behind_another_backend_the_error_names_its_package(python: Python, fakechip: Path) -> None:
    done = python("import fakechip; fakechip.load(); import torch_puone", env=path_of(fakechip))
    assert done.returncode == 1
    assert "'fakechip' (package fakechip) has it already" in done.stderr


def test_a_backend_that_comes_behind_gets_an_error_and_puone_works_on(
    python: Python, fakechip: Path
) -> None:
    code = f"""
import torch, torch_puone, fakechip
try:
    fakechip.load()
except RuntimeError as error:
    print(error)
assert not hasattr(torch, "fakechip")
{WORKS}"""
    done = python(code, env=path_of(fakechip))
    assert done.returncode == 0, done.stderr
    assert "Current backend: puone" in done.stdout


def test_two_installed_backends_are_named_by_import_torch(python: Python, fakechip: Path) -> None:
    done = python("import torch", autoload=True, env=path_of(fakechip))
    assert done.returncode == 1
    assert "fakechip" in done.stderr and "puone" in done.stderr
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in done.stderr


def path_of(folder: Path) -> dict[str, str]:
    """The environment with which the backend of a directory is found, and this one as well."""
    return {"PYTHONPATH": f"{folder}:{ROOT / 'reference_backend'}"}


def test_it_is_the_accelerator_beside_a_torch_that_was_built_for_another_one(
    python: Python,
) -> None:
    # Of a CUDA build of torch on a machine without a card: what torch.version and the build flags
    # say is all that a program can see before it asks for a device.
    code = f"""
import torch
torch.version.cuda = "13.0"
torch.backends.cuda.is_built = lambda: True
{WORKS}
assert torch.accelerator.current_accelerator().type == "puone"
assert not torch.cuda.is_available() and not torch.cuda.is_initialized()
with torch.autocast("puone"):
    product = torch.mm(x.view(2, 3).float(), x.view(3, 2).float())
assert product.dtype == torch.get_autocast_dtype("puone")
assert x.cpu().pin_memory().is_pinned()
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


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
