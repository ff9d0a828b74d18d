# SPDX-License-Identifier: BSD-3-Clause
"""What backends use is collected from their files, and all of it is watched."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from trees import write_tree

from torch_backend_ci.checkout import ROOT
from torch_backend_ci.surface import catalogue, usage
from torch_backend_ci.surface.evidence import cpp, python
from torch_backend_ci.surface.evidence.declaring import Declaring
from torch_backend_ci.surface.extract.python_modules import Modules
from torch_backend_ci.surface.verbs.usage import dumps

KNOWN = catalogue.load()


def test_includes_and_qualified_names_of_sources_are_found_and_comments_are_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.cpp").write_text(
        '#include <c10/core/Allocator.h>\n#include "ATen/ATen.h"\n#include <vector>\n'
        "// #include <c10/util/Half.h>\n/* c10::Half */ c10::Device d; x::at::y; at::Tensor t;\n"
    )
    (text,) = cpp.sources(tmp_path)
    assert cpp.includes(text) == {"c10/core/Allocator.h", "ATen/ATen.h"}
    assert cpp.names(text) == {"c10::Device", "at::Tensor"}


def test_names_of_python_are_found_through_imports_and_attributes() -> None:
    source = (
        "import torch\nimport torch._inductor.ir as ir\nfrom torch._dynamo import utils as u\n"
        "import numpy\nir.Buffer(numpy.x)\nu.counters\ntorch._utils._get_device_index(0)\n"
    )
    assert python.paths(ast.parse(source)) >= {
        "torch._inductor.ir.Buffer",
        "torch._dynamo.utils.counters",
        "torch._utils._get_device_index",
    }


def test_only_names_that_the_torch_has_are_entries(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "torch", {"torch/__init__.py": "", "torch/m.py": "class C: ...\n"})
    (tmp_path / "b").mkdir()
    (tmp_path / "b/x.py").write_text("from torch.m import C, gone\nC._hidden\nimport torch.none\n")
    assert python.names(tmp_path / "b", Modules(tree.root)) == {"torch.m:C", "torch.m:C._hidden"}


def test_a_name_is_declared_by_the_header_of_its_class_and_namespace(tmp_path: Path) -> None:
    files = {
        "torch/include/c10/core/A.h": "namespace c10 { class C10_API Thing { void f(); }; }",
        "torch/include/ATen/B.h": "namespace at { struct Thing { }; TORCH_API int go(int x); }",
    }
    known = Declaring(write_tree(tmp_path, files))
    assert known.headers("c10::Thing::f") == {"c10/core/A.h"}
    assert known.headers("at::go") == {"ATen/B.h"}
    assert known.headers("c10::go") == set()


@pytest.mark.parametrize(
    ("name", "surface"),
    [
        ("c10d::symmetric_memory::SymmetricMemory", "distributed"),
        ("torch::profiler::impl::ProfilerStateBase", "profiler"),
    ],
)
def test_the_known_holes_are_watched(name: str, surface: str) -> None:
    header = {
        "distributed": "torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp",
        "profiler": "torch/csrc/profiler/orchestration/observer.h",
    }[surface]
    assert KNOWN.surface_of_file(f"torch/include/{header}") == surface, name


def test_names_that_our_own_backend_takes_of_inductor_and_dynamo_are_watched() -> None:
    ours = {n for n, users in usage.collected().python.items() if "puone" in users}
    compiling = {n for n in ours if n.startswith(("torch._inductor", "torch._dynamo"))}
    modules = {entry.partition(":")[0] for s in KNOWN.surfaces for entry in s.python}
    assert compiling
    assert {name.partition(":")[0] for name in compiling} <= modules


def test_all_that_our_own_backend_uses_is_collected() -> None:
    """Else run `make usage`."""
    included = {h for text in cpp.sources(ROOT / "csrc") for h in cpp.includes(text)}
    known = usage.collected().headers
    here = {h for h in included if not h.startswith("ATen/ops/")}
    old = {"ATen/NamedTensorUtils.h"}  # of a torch that the data is not of
    missing = {h for h in here - known.keys() - old if not _is_of_another_torch(h)}
    assert missing == set()


def _is_of_another_torch(header: str) -> bool:
    import torch

    folder = Path(torch.__file__).parent / "include"
    return not any((f / header).is_file() for f in (folder, folder / "torch/csrc/api/include"))


def test_what_a_surface_collects_is_watched_and_what_a_build_writes_is_not(tmp_path: Path) -> None:
    rules = tmp_path / "surfaces.yml"
    rules.write_text(
        "a:\n  title: a\n  headers: [c10/core/A.h]\n  collects: ['c10/*', 'torch.x*']\n"
        "b:\n  title: b\n  collects: ['c10/util/*']\n  python: [torch.y]\n"
    )
    users = ("npu",)
    headers = dict.fromkeys(
        ("c10/core/B.h", "c10/util/C.h", "ATen/D.h", "c10/macros/cmake_macros.h")
    )
    entries = dict.fromkeys(("torch.x:n", "torch.x", "torch.y:m"))
    known = usage.Usage(
        frozenset(users),
        {},
        dict.fromkeys(headers, users),
        dict.fromkeys(entries, users),
    )
    a, b = catalogue.load(rules, known).surfaces
    assert a.headers == ("c10/core/A.h", "c10/core/B.h")
    assert b.headers == ("c10/util/C.h",)
    assert (a.python, b.python) == (("torch.x:n",), ("torch.y",))
    both = catalogue.load(rules, known)
    assert both.chosen == {"c10/core/A.h"}
    assert both.surface_of_file("torch/include/torch/headeronly/util/C.h") == "b"


def test_the_written_data_is_read_back(tmp_path: Path) -> None:
    data = usage.Usage(frozenset({"a"}), {"c10::X": ("a",)}, {}, {"torch.m:n": ("a",)})
    (tmp_path / "u.yaml").write_text(dumps(data))
    assert usage.read(tmp_path / "u.yaml") == data


def test_usage_of_another_backend_stays_when_one_is_collected_again() -> None:
    one = usage.Usage(frozenset({"a"}), {"c10::X": ("a",)}, {}, {})
    both = usage.merged(one, {"b"}, {"cpp": {"c10::X": {"b"}}, "headers": {}, "python": {}})
    assert both.cpp == {"c10::X": ("a", "b")}
    assert both.backends == {"a", "b"}
