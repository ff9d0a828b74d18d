# SPDX-License-Identifier: BSD-3-Clause
"""Exported symbols, read from libraries that the test links."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from cpp_trees import CATALOGUE
from trees import write_tree

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.extract import symbols
from torch_backend_ci.surface.extract.elf import exported
from torch_backend_ci.torch_tree import TorchTree

SOURCE = """
namespace c10 {
struct Allocator { Allocator(); int allocate(unsigned long) const; static int count; };
Allocator::Allocator() {}
int Allocator::allocate(unsigned long) const { return 1; }
int Allocator::count = 0;
inline int weak() { return 2; }
int (*use)() = weak;
__attribute__((visibility("hidden"))) int hidden() { return 3; }
static int internal() { return 4; }
int (*use_internal)() = internal;
template <class T> int generic(T) { return 5; }
template int generic<char>(char);
}
namespace other { int f() { return 6; } }
extern "C" int answer() { return other::f(); }
"""


def linked(root: Path) -> TorchTree:
    """A torch whose three libraries are there; the second has the source."""
    tree = write_tree(root, {"torch/lib/a.cpp": SOURCE, "torch/lib/empty.cpp": ""})
    libraries = root / "torch" / "lib"
    for name in symbols.LIBRARIES:
        source = libraries / ("a.cpp" if name == "torch_cpu" else "empty.cpp")
        library = libraries / f"lib{name}.so"
        subprocess.run(["g++", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return replace(tree, libraries=libraries)


def test_what_a_library_exports_of_the_surface_is_found_by_its_cpp_name(tmp_path: Path) -> None:
    found = symbols.extract(linked(tmp_path), CATALOGUE)
    assert sorted(d.name for d in found) == [
        "answer",
        "c10::Allocator::Allocator()",
        "c10::Allocator::allocate(unsigned long) const",
        "c10::Allocator::count",
        "c10::use",
        "c10::use_internal",
    ]
    assert {d.facts["library"] for d in found} == {"torch_cpu"}


def test_without_libraries_there_are_no_symbols(tmp_path: Path) -> None:
    assert symbols.extract(write_tree(tmp_path, {}), CATALOGUE) == []


def test_what_is_no_library_is_refused(tmp_path: Path) -> None:
    tree = linked(tmp_path)
    library = tmp_path / "torch" / "lib" / "libc10.so"
    for content in (b"", b"text", library.read_bytes()[:3000]):
        library.write_bytes(content)
        with pytest.raises(CiError, match=r"libc10.so is not a readable shared library"):
            symbols.extract(tree, CATALOGUE)
    with pytest.raises(CiError, match="not a readable shared library"):
        exported(tmp_path / "gone.so")


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_ZNK3c109Allocator5cloneEPKvm", "c10::Allocator::clone"),
        ("_ZN3c109AllocatorC2Ev", "c10::Allocator"),
        ("_Z6answeri", "answer"),
        ("aoti_torch_empty_strided", "aoti_torch_empty_strided"),
        ("_ZNSt6vectorIiSaIiEE4sizeEv", ""),
        ("_ZTVN3c1010TensorImplE", ""),
    ],
)
def test_a_mangled_name_is_told_up_to_its_arguments(mangled: str, name: str) -> None:
    assert symbols.qualified_name(mangled) == name
