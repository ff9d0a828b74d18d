# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch reads off torch.<device> is found by following the device module through a file."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest
from trees import installed_tree, write_tree

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.extract import device_module, module_reads
from torch_backend_ci.surface.model import Declaration

DOCUMENT = Path(__file__).parents[3] / "docs" / "surface" / "python.md"
REQUIRED, GUARDED = False, True


def reads_of(source: str) -> dict[str, tuple[bool, bool]]:
    """Attribute -> (guarded everywhere, called somewhere)."""
    found = module_reads.reads(ast.parse(textwrap.dedent(source)))
    names = {read.name for read in found}
    return {
        name: (
            all(read.guarded for read in found if read.name == name),
            any(read.called for read in found if read.name == name),
        )
        for name in names
    }


def extracted(root: Path, files: dict[str, str]) -> dict[str, Declaration]:
    tree = write_tree(root, {"torch/__init__.py": ""} | files)
    return {d.name: d for d in device_module.extract(tree, catalogue.load())}


@pytest.mark.parametrize(
    "giver",
    [
        "torch.get_device_module(device)",
        "_get_device_module(device_type)",
        "getattr(torch, device.type)",
        "getattr(torch, device_type, None)",
        "getattr(torch, self.use_device)",
        "getattr(torch, torch._C._get_privateuse1_backend_name())",
        "cast(Any, _get_device_handle(mesh.device_type))",
        "_FSDPDeviceHandle.from_device(device)",
        "torch.cuda if x else getattr(torch, device_type)",
        "state._device_handle",
        "self.device_module",
    ],
)
def test_an_expression_that_gives_the_device_module_is_followed(giver: str) -> None:
    called, bound = f"({giver}).x()", f"m = {giver}\nm.x()"
    assert reads_of(called) == reads_of(bound) == {"x": (REQUIRED, True)}


@pytest.mark.parametrize(
    "source",
    [
        "getattr(torch, 'cuda').x()",
        "getattr(torch, dtype_name).x()",
        "getattr(other, device_type).x()",
        "[getattr(torch, device_type).x() for device_type in GPU_TYPES]",
        "m = torch.cuda\nm.x()",
        "m = torch.get_device_module()\nm.x = 1",
        "torch.get_device_module().__name__",
    ],
)
def test_what_is_no_read_of_it_is_left_alone(source: str) -> None:
    assert reads_of(source) == {}


@pytest.mark.parametrize(
    "source",
    [
        "def f(device_handle): device_handle.x()",
        "def f(h: _FSDPDeviceHandle): h.x()",
        "m = torch.get_device_module()\ndef f(): m.x()",
        "def f():\n    m = torch.get_device_module()\n    def g(): return m.x()",
        "class A:\n  def f(self): self.m = torch.get_device_module()\n  def g(self): self.m.x()",
        "(m := torch.get_device_module()).y\nm.x()",
        "for i in y:\n  with torch.get_device_module().x():\n    pass",
        "_get_device_attr(lambda m: m.x())",
        "_get_custom_mod_func('x')",
        "name = 'x'\ngetattr(torch.get_device_module(), name)()",
    ],
)
def test_it_is_followed_through_names_scopes_and_customary_parameters(source: str) -> None:
    assert reads_of(source)["x"] == (REQUIRED, True)


@pytest.mark.parametrize(
    "source",
    [
        "if hasattr(m, 'x'):\n    m.x()",
        "if ready and hasattr(m, 'x') and not m.x(): pass",
        "if not hasattr(m, 'x'): pass\nelse: m.x()",
        "def f():\n    if not hasattr(m, 'x'): return\n    m.x()",
        "m.x() if hasattr(m, 'x') else None",
        "not hasattr(m, 'x') or m.x()",
        "try:\n    m.x()\nexcept AttributeError:\n    pass",
        "try:\n    m.x()\nexcept (ValueError, Exception): y = 1",
        "f = getattr(m, 'x', None)\nif f: f()",
        "getattr(m, 'x', print)()",
        "(f := getattr(m, 'x', None)) and f()",
        "try:\n    _get_custom_mod_func('x')()\nexcept RuntimeError: pass",
        "need = ['x']\nif all(hasattr(m, n) for n in need): getattr(m, 'x', None)()",
    ],
)
def test_a_read_that_may_fail_is_guarded(source: str) -> None:
    assert reads_of(f"m = torch.get_device_module()\n{source}") == {"x": (GUARDED, True)}


@pytest.mark.parametrize(
    "source",
    [
        "if not hasattr(m, 'x'): raise AssertionError\nm.x()",
        "if m is None or not hasattr(m, 'x'):\n    raise AssertionError\nm.x()",
        "for n in ['x']:\n    if not hasattr(m, n): raise AssertionError\nm.x()",
        "assert hasattr(m, 'x')\nm.x()",
        "try:\n    m.x()\nexcept AttributeError:\n    raise RuntimeError",
        "try:\n    m.x()\nexcept ValueError:\n    pass",
        "if hasattr(m, 'y'):\n    m.x()",
        "if hasattr(m, 'x'):\n    pass\nm.x()",
        "if m and m.x(): pass",
    ],
)
def test_a_read_that_must_succeed_is_required(source: str) -> None:
    assert reads_of(f"m = torch.get_device_module()\n{source}")["x"] == (REQUIRED, True)


def test_attributes_of_attributes_are_told() -> None:
    source = """\
    m = torch.get_device_module()
    if hasattr(m, "_utils") and hasattr(m._utils, "index"):
        m._utils.index(0)
    """
    assert reads_of(source) == {"_utils": (GUARDED, False), "_utils.index": (GUARDED, True)}


@pytest.mark.parametrize(
    "source",
    [
        "if device.type == 'hpu': m.x()",
        "if device_type in ('cuda', 'xpu'): m.x()",
        "def f():\n    if device_type != 'cuda': return\n    m.x()",
        "def f():\n    if device_type != 'cuda': raise ValueError\n    m.x()",
        "m.x() if device.type == 'mps' else None",
        "def f():\n    assert device.type == 'cuda'\n    m.x()",
    ],
)
def test_what_only_another_device_reaches_is_left_alone(source: str) -> None:
    assert reads_of(f"m = torch.get_device_module()\n{source}") == {}


def test_the_readers_of_an_attribute_are_collected(tmp_path: Path) -> None:
    found = extracted(
        tmp_path,
        {
            "torch/b.py": "\ntorch.get_device_module().x()\n",
            "torch/a.py": "getattr(torch.get_device_module(), 'x', None)\n",
            "torch/cuda/own.py": "torch.get_device_module().own()\n",
        },
    )
    assert set(found) == {"torch.<device>.x"}
    declaration = found["torch.<device>.x"]
    assert declaration.facts == {
        "called": True,
        "readers": ["torch/a.py", "torch/b.py"],
        "required_by": ["torch/b.py"],
    }
    assert (declaration.file, declaration.line) == ("torch/b.py", 2)


@pytest.mark.parametrize(
    ("devices", "imported"),
    [
        ("device.is_cuda() || device.is_xpu()", False),
        ("device.is_cuda() /* not PrivateUse1 */ || device.is_xpu() // is_privateuseone", False),
        ("device.is_cuda() || device.is_xpu() || device.is_privateuseone()", True),
        ("device_type == at::DeviceType::PrivateUse1", True),
    ],
)
def test_a_device_that_is_initialised_lazily_needs_its_module(
    tmp_path: Path, devices: str, imported: bool
) -> None:
    header = (
        f"inline void maybe_initialize_device(at::Device& device) {{\n  if ({devices}) {{}}\n}}\n"
    )
    found = extracted(tmp_path, {device_module.LAZY_INIT_HEADER: header})
    assert set(found) == ({"torch.<device>"} if imported else set())
    if imported:
        assert found["torch.<device>"].line == 2


def test_a_file_that_is_no_python_is_named(tmp_path: Path) -> None:
    with pytest.raises(CiError, match=r"torch/a\.py:1"):
        extracted(tmp_path, {"torch/a.py": "get_device_module(\n"})


def test_the_documented_contract_is_the_one_of_the_installed_torch() -> None:
    rows = [_row(d) for d in device_module.extract(installed_tree(), catalogue.load())]
    assert "\n".join(rows) in DOCUMENT.read_text(), "put these rows there:\n" + "\n".join(rows)


def _row(declaration: Declaration) -> str:
    """A row of the table in the documentation."""
    name = declaration.name.removeprefix("torch.<device>").lstrip(".") or "(the module)"
    name += "()" if declaration.facts.get("called") else ""
    required = declaration.facts.get("required_by", ())
    optional = sorted(set(declaration.facts["readers"]) - set(required))
    if declaration.kind == "module":
        required, optional = optional, []
    return f"| `{name}` | {_where(required)} | {_where(optional)} |"


def _where(files: Sequence[str]) -> str:
    """The readers without what all have in common, no more than three."""
    short = [f.removeprefix("torch/").removeprefix("include/") for f in files]
    more = f" +{len(short) - 3}" if len(short) > 3 else ""
    return ", ".join(f"`{file}`" for file in short[:3]) + more


def test_the_installed_torch_asks_for_what_backends_had_to_find_out() -> None:
    declarations = device_module.extract(installed_tree(), catalogue.load())
    found = {d.name.removeprefix("torch.<device>").lstrip("."): d.facts for d in declarations}
    required = {name for name, facts in found.items() if not facts.get("guarded")}
    assert {"", "current_device", "device", "device_count", "get_amp_supported_dtype"} <= required
    assert {"get_rng_state", "is_available", "is_initialized", "set_rng_state"} <= required
    assert {"manual_seed_all", "_is_in_bad_fork", "_utils._get_device_index"} <= set(found)
    assert not {"manual_seed_all", "_is_in_bad_fork"} & required
