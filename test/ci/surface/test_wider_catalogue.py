# SPDX-License-Identifier: BSD-3-Clause
"""Of a listed header everything is watched, of what it includes, and of what it derives from."""

from __future__ import annotations

import json
from pathlib import Path

from cpp_trees import extract, facts
from trees import write_tree

from torch_backend_ci.surface.catalogue import Catalogue, Surface
from torch_backend_ci.surface.extract import cpp, headers
from torch_backend_ci.surface.model import Domain

LISTED = Catalogue((Surface("allocator", "memory", headers=("c10/core/A.h",)),))


def names(root: Path, files: dict[str, str]) -> set[str]:
    tree = write_tree(root, {f"torch/include/{name}": text for name, text in files.items()})
    return {d.name for d in cpp.extract(tree, LISTED)}


def test_every_declaration_of_a_listed_header_and_of_what_it_includes_is_watched(
    tmp_path: Path,
) -> None:
    text = (
        "#pragma once\n#define GUARD\n#define MACRO(x) x\n#include <c10/core/B.h>\n"
        "namespace a::b { struct S { int x; void f(); }; enum E { one };\n"
        "int g(); using T = int; }\n"
    )
    other = "#pragma once\nnamespace a { struct Included {}; }\n"
    found = names(tmp_path, {"c10/core/A.h": text, "c10/core/B.h": other})
    assert found == {
        *("MACRO", "a::b::S", "a::b::S::x", "a::b::S::f"),
        *("a::b::E", "a::b::E::one", "a::b::g", "a::b::T", "a::Included"),
    }


def test_a_base_class_is_watched_even_where_nothing_else_is(tmp_path: Path) -> None:
    base = (
        "#pragma once\nnamespace n { struct Root { virtual void f(); }; struct Base : Root {}; }\n"
    )
    text = "#pragma once\n#include <ATen/cpu/B.h>\nnamespace n { struct D : Base {}; }\n"
    base += "namespace n { struct Other {}; }\n"
    found = names(tmp_path, {"c10/core/A.h": text, "ATen/cpu/B.h": base})
    assert found == {"n::D", "n::Base", "n::Root", "n::Root::f"}


def test_what_moved_to_headeronly_keeps_its_name_without_a_using_declaration(
    tmp_path: Path,
) -> None:
    files = {
        "c10/core/A.h": "#pragma once\n#include <torch/headeronly/core/A.h>\n",
        "torch/headeronly/core/A.h": "#pragma once\nnamespace torch::headeronly { struct S {}; }\n",
    }
    assert names(tmp_path, files) == {"c10::S"}


def test_defaults_bodies_and_the_order_of_members_are_facts(tmp_path: Path) -> None:
    text = (
        "namespace c10 { struct S { int b; private: int a; public:\n"
        "  virtual int f(int n = 1 + 2) { return n; /* no */ }\n  virtual int g() = 0;\n"
        "  virtual int h(); }; }\n"
    )
    assert facts(tmp_path / "1", text, "c10::S")["fields"] == ["b", "a"]
    f = facts(tmp_path / "2", text, "c10::S::f")
    assert f["parameters"] == [{"type": "int", "default": True, "value": "1 + 2"}]
    same = facts(tmp_path / "3", text.replace("/* no */", "\n"), "c10::S::f")
    other = facts(tmp_path / "4", text.replace("return n", "return n + 1"), "c10::S::f")
    assert f["body"] == same["body"] != other["body"]
    for name in ("g", "h"):
        assert "body" not in facts(tmp_path / name, text, f"c10::S::{name}")


def test_an_override_of_nothing_leaves_the_declarations_readable(tmp_path: Path) -> None:
    text = (
        "namespace c10 { struct B { virtual void f() const; };\n"
        "struct D : B { void f() override; }; }"
    )
    found = {d.name for d in extract(tmp_path, text)}
    assert found == {"c10::B", "c10::B::f", "c10::D", "c10::D::f"}


def test_headers_that_are_not_listed_are_known_to_be_there_but_for_those_of_vendors(
    tmp_path: Path,
) -> None:
    files = {
        "c10/core/A.h": "#pragma once\n",
        "c10/core/Other.h": "",
        "c10/cuda/X.h": "",
        "ATen/ops/add.h": "",
    }
    tree = write_tree(tmp_path, {f"torch/include/{name}": text for name, text in files.items()})
    found = {d.name: dict(d.facts) for d in headers.extract(tree, LISTED)}
    assert found == {"c10/core/A.h": {"alone": True}, "c10/core/Other.h": {"unread": True}}
    assert [d.domain for d in headers.extract(tree, LISTED, headers=["c10/core/A.h"])] == [
        Domain.HEADER
    ]


def test_a_declaration_that_both_profiles_see_is_there_once(tmp_path: Path) -> None:
    text = (
        "namespace c10 {\n#ifdef USE_CUDA\nstruct Vendor {};\nint operator*(Vendor);\n#endif\n"
        "template <class T> T& some();\n"
        "template <class T> using Value = decltype(*some<T>()); }\n"
    )
    assert [d.name for d in extract(tmp_path, text)].count("c10::Value") == 1


def test_a_type_is_written_in_the_same_way_whatever_overloads_come_before_it(
    tmp_path: Path,
) -> None:
    overload = "struct Other {};\nint operator*(Other);\n"
    alias = (
        "template <class T> T& some();\ntemplate <class T> using Value = decltype(*some<T>());\n"
    )
    written = {
        json.dumps(d.facts)
        for first in ("", overload)
        for d in extract(tmp_path / str(len(first)), f"namespace c10 {{\n{first}{alias}}}\n")
        if d.name == "c10::Value"
    }
    assert len(written) == 1
