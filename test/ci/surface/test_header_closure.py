# SPDX-License-Identifier: BSD-3-Clause
"""Which headers can be included alone is told without compiling each of them alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cpp_trees import CATALOGUE
from trees import write_tree

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.extract import headers
from torch_backend_ci.surface.extract.cpp.includes import Includes
from torch_backend_ci.surface.extract.cpp.libclang import Cursor

DEVICE = "#pragma once\nnamespace c10 { struct Device { int index; }; }\n"


def extract(root: Path, files: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Name -> facts of every header of these torch/include/c10/core files, and the language."""
    tree = write_tree(
        root, {f"torch/include/c10/core/{name}": text for name, text in files.items()}
    )
    return {d.name: dict(d.facts) for d in headers.extract(tree, CATALOGUE)}


# Allocator.h comes first and Other.h last, so that Other.h always finds what others declare.
@pytest.mark.parametrize(
    ("use", "lacking"),
    [
        ("namespace c10 { Device f(); }", "Device"),
        ("namespace c10 { inline int f() { return at(); } }", "at"),
        ("namespace c10 { inline int f(int x) { return x + limit; } }", "limit"),
        ("namespace c10 { template <class T> T f() { return twice<T>(1); } }", "twice"),
        ("namespace c10 { struct S : Box<int> {}; }", "Box"),
        ("namespace c10 { index_t f(); }", "index_t"),
        ("inline int f(int x) { return TIMES_TWO(x); }", "TIMES_TWO"),
    ],
)
def test_a_header_that_does_not_bring_along_what_it_uses_is_told(
    tmp_path: Path, use: str, lacking: str
) -> None:
    provider = """#pragma once
    #define TIMES_TWO(x) (2 * (x))
    namespace c10 { struct Device {}; int at(); constexpr int limit = 4; using index_t = int;
    template <class T> struct Box {}; template <class T> T twice(T x); }"""
    alone = extract(
        tmp_path / "a", {"Device.h": provider, "Other.h": f'#include "Device.h"\n{use}'}
    )
    assert alone == {"c10/core/Device.h": {"alone": True}, "c10/core/Other.h": {"alone": True}}
    lacks = extract(tmp_path / "b", {"Device.h": provider, "Other.h": f"#pragma once\n{use}"})
    assert lacks["c10/core/Other.h"] == {
        "error": f"torch/include/c10/core/Other.h:2: {lacking} is declared in "
        "torch/include/c10/core/Device.h, not included"
    }


def test_what_clang_gives_the_same_hash_is_not_taken_for_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cursor, "hash", 1)
    told = extract(
        tmp_path,
        {
            "Device.h": DEVICE,
            "Other.h": "#ifdef __GXX_RTTI\nstruct One {};\n#endif\n"
            "One make();\nc10::Device device();\nOne again();",
        },
    )
    assert told["c10/core/Device.h"] == {"alone": True}
    assert told["c10/core/Other.h"]["error"].startswith(
        "torch/include/c10/core/Other.h:5: Device is declared in"
    )


def test_what_a_header_includes_must_bring_along_its_own_needs(tmp_path: Path) -> None:
    found = extract(
        tmp_path,
        {
            "Device.h": DEVICE,
            "inner.h": "#pragma once\nnamespace c10 { Device f(); }",
            "Other.h": '#include "inner.h"',
        },
    )
    assert "inner.h:2: Device" in found["c10/core/Other.h"]["error"]


def test_a_forward_declaration_or_an_alias_of_ones_own_is_enough(tmp_path: Path) -> None:
    found = extract(
        tmp_path,
        {
            "Device.h": "namespace c10 { struct Device {}; using List = int; int f(); }",
            "Other.h": """namespace c10 { struct Device; Device* g(); int f();
            inline int h() { return f(); } } namespace at { using List = int; List i(); }""",
        },
    )
    assert found["c10/core/Other.h"] == {"alone": True}


def test_a_type_of_c_may_be_declared_again_by_torch_before_and_behind(tmp_path: Path) -> None:
    system = tmp_path / "system.h"
    system.write_text('#pragma once\nextern "C" { typedef struct _object PyObject; }\n')
    stub = "#pragma once\nstruct _object; using PyObject = _object;\n"
    found = extract(
        tmp_path / "tree",
        {
            "Allocator.h": stub,
            "Device.h": f'#include "{system}"\n{stub}',
            "Other.h": f'#include "{system}"\nnamespace c10 {{ PyObject* f(); }}',
        },
    )
    assert found["c10/core/Other.h"] == {"alone": True}


def test_operators_found_by_their_arguments_are_no_needs(tmp_path: Path) -> None:
    found = extract(
        tmp_path,
        {
            "Device.h": "namespace c10 { struct D {}; int operator+(D, D); }",
            "Other.h": "namespace c10 { template <class T> int sum(T a, T b) { return a + b; } }",
        },
    )
    assert found["c10/core/Other.h"] == {"alone": True}


def test_a_header_that_fails_where_it_comes_first_is_not_alone(tmp_path: Path) -> None:
    found = extract(tmp_path, {"Allocator.h": "namespace c10 { Device f(); }", "Device.h": DEVICE})
    assert found == {
        "c10/core/Allocator.h": {
            "error": "torch/include/c10/core/Allocator.h:1: unknown type name 'Device'"
        },
        "c10/core/Device.h": {"alone": True},
    }


def test_a_header_that_needs_one_that_is_not_shipped_says_which(tmp_path: Path) -> None:
    found = extract(tmp_path, {"Device.h": DEVICE, "Other.h": "#include <nccl.h>"})
    assert found["c10/core/Other.h"]["error"].endswith("Other.h:1: 'nccl.h' file not found")
    assert found["c10/core/Device.h"] == {"alone": True}


def test_if_no_header_compiles_there_is_nothing_to_say(tmp_path: Path) -> None:
    with pytest.raises(CiError, match="no header compiles"):
        extract(tmp_path, {"Other.h": "#include <nccl.h>"})


def test_the_highest_standard_that_an_error_demands_is_the_language(tmp_path: Path) -> None:
    text = """#if __cplusplus < 201703L
    #error C++17
    #endif
    #if (defined(_MSVC_LANG) && _MSVC_LANG < 202002L) || \\
        (!defined(_MSVC_LANG) && __cplusplus < 202002L)
    #error C++20 or later
    #endif
    #if __cplusplus < 202302L
    int older;
    #endif"""
    assert extract(tmp_path, {"Device.h": text})["C++ standard"] == {"minimum": 20}


def test_files_that_include_each_other_have_one_closure() -> None:
    graph = Includes([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a")])
    everything = graph.bit("a") | graph.bit("b") | graph.bit("c") | graph.bit("d")
    assert [graph.closure(file) for file in "abc"] == [everything] * 3
    assert graph.closure("d") == graph.bit("d")
    assert graph.closure("e") == everything | graph.bit("e")
