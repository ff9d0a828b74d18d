# SPDX-License-Identifier: BSD-3-Clause
"""C++ is read by meaning: each trap of reading headers, in a torch of a few lines."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest
from cpp_trees import CATALOGUE, HEADER, compared, extract, facts
from trees import write_tree

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.extract import cpp
from torch_backend_ci.surface.extract.cpp import compiler


def test_a_method_is_read_with_everything_that_overriding_it_depends_on(tmp_path: Path) -> None:
    text = """
    namespace c10 { struct Base { virtual ~Base(); };
    struct Allocator final : public Base {
      virtual int allocate(unsigned long n, int flags = 0) const & noexcept = 0; }; }"""
    assert facts(tmp_path, text, "c10::Allocator::allocate") == {
        "parameters": [{"type": "unsigned long"}, {"type": "int", "default": True, "value": "0"}],
        "returns": "int",
        "const": True,
        "ref": "&",
        "noexcept": True,
        "virtual": True,
        "pure": True,
    }
    assert facts(tmp_path, text, "c10::Allocator") == {
        "bases": ["public c10::Base"],
        "final": True,
        "abstract": True,
        "size": 8,
    }


def test_a_defaulted_member_reads_the_same_whether_or_not_it_is_used(tmp_path: Path) -> None:
    text = "namespace c10 { struct Key { Key() = default; int bits = 0; }; }"
    using = f"{text} constexpr bool throws_nothing = noexcept(c10::Key());"
    (tmp_path / "used").mkdir()
    unused = facts(tmp_path, text, "c10::Key::Key")
    assert facts(tmp_path / "used", using, "c10::Key::Key") == unused


def test_an_alias_reads_as_what_it_stands_for(tmp_path: Path) -> None:
    text = """
    #include <optional>
    namespace c10 { template <class T> using optional = std::optional<T>; using Index = signed char;
    optional<Index> device(); }"""
    assert facts(tmp_path, text, "c10::device") == {"returns": "std::optional<signed char>"}


def test_what_moved_to_headeronly_keeps_its_name_everywhere(tmp_path: Path) -> None:
    before = "namespace c10 { enum class Type : char { A }; int size(Type); }"
    after = """
    namespace torch::headeronly { enum class Type : char { A }; int size(Type); }
    namespace c10 { using torch::headeronly::Type; using torch::headeronly::size; }"""
    assert compared(extract(tmp_path / "before", before)) == compared(
        extract(tmp_path / "after", after)
    )


def test_a_name_of_the_catalogue_is_known_by_it_wherever_it_is_declared(tmp_path: Path) -> None:
    text = "namespace detail { struct Exposed { int x; }; } namespace at { using detail::Exposed; }"
    assert [d.name for d in extract(tmp_path, text)] == ["at::Exposed", "at::Exposed::x"]


def test_the_lines_a_wheel_wraps_around_a_header_change_only_the_line(tmp_path: Path) -> None:
    text = "namespace c10 { int f(); }\n"
    wrapped = f"#if !defined(TORCH_STABLE_ONLY)\n{text}#else\n#error no\n#endif\n"
    (plain,) = extract(tmp_path / "a", text)
    (shifted,) = extract(tmp_path / "b", wrapped)
    assert (plain.line, shifted.line) == (2, 3)
    assert compared([plain]) == compared([shifted])


@pytest.mark.parametrize(
    "changed",
    [
        "/* why */ struct S { // here\n virtual int f ( int a=1 ) const; };",
        "struct S { virtual int f(int another_name = 1) const; };",
        "struct S { virtual auto f(int a = 1) const -> int; };",
        "struct S; struct S { virtual int f(int a = 1) const; };",
    ],
    ids=["comments and spacing", "a parameter's name", "a trailing return type", "a redeclaration"],
)
def test_what_is_only_written_differently_reads_the_same(tmp_path: Path, changed: str) -> None:
    text = "struct S { virtual int f(int a = 1) const; };"
    before = extract(tmp_path / "a", f"namespace c10 {{ {text} }}")
    after = extract(tmp_path / "b", f"namespace c10 {{ {changed} }}")
    assert compared(before) == compared(after)


def test_members_of_anonymous_unions_are_members_of_the_class_around(tmp_path: Path) -> None:
    text = "namespace c10 { struct S { union { int a; float b; }; struct { int x; } named; }; }"
    found = extract(tmp_path, text)
    assert [d.name for d in found if d.kind == "field"] == [
        "c10::S::a",
        "c10::S::b",
        "c10::S::x",
        "c10::S::named",
    ]
    assert facts(tmp_path, text, "c10::S::named") == {"type": "c10::S::(unnamed struct)"}


def test_no_path_of_this_machine_is_in_a_declaration(tmp_path: Path) -> None:
    text = "namespace c10 { struct S { union { int a; } u; }; int f(decltype(S::u)); }"
    assert str(tmp_path) not in repr(extract(tmp_path, text))


def test_default_arguments_are_told_from_numbers_in_types(tmp_path: Path) -> None:
    text = """
    #include <array>
    namespace c10 { int f(std::array<int, 3> a, int b = {}, void (*c)(int) = nullptr, int = 4); }"""
    defaults = [p.get("default") for p in facts(tmp_path, text, "c10::f")["parameters"]]
    assert defaults == [None, True, True, True]


def test_parameters_of_the_return_type_are_not_the_functions(tmp_path: Path) -> None:
    text = """
    #include <functional>
    namespace c10 { std::function<void(int)> hook(char x = 'a'); std::function<void(int)> none(); }
    """
    assert facts(tmp_path, text, "c10::hook")["parameters"] == [
        {"type": "char", "default": True, "value": "'a'"}
    ]
    assert "parameters" not in facts(tmp_path, text, "c10::none")


def test_overloads_are_each_there(tmp_path: Path) -> None:
    text = "namespace c10 { int f(int); int f(long); struct S { int g(); int g() const; }; }"
    found = extract(tmp_path, text)
    assert len([d for d in found if d.name == "c10::f"]) == 2
    assert len([d for d in found if d.name == "c10::S::g"]) == 2


def test_names_of_template_parameters_do_not_matter(tmp_path: Path) -> None:
    template = """namespace c10 {{
    template <class {t}, int {n} = 2> struct Box {{
      Box(const Box&); {t} get() const; {t} items[{n}];
      template <typename... {a}> {t} make({a}&&... a);
      using Self = Box<{t}, {n}>; }};
    template <class {t}> struct Box<{t}*, 0> {{ {t} x; }}; }}"""
    before = extract(tmp_path / "a", template.format(t="T", n="N", a="Args"))
    after = extract(tmp_path / "b", template.format(t="Value", n="Count", a="Rest"))
    assert compared(before) == compared(after)
    (box,) = (d for d in before if d.name == "c10::Box")
    assert box.facts == {"template": "typename, int ="}
    (make,) = (d for d in before if d.name == "c10::Box::make")
    assert make.facts["template"] == "typename..."


def test_specializations_go_by_their_canonical_arguments(tmp_path: Path) -> None:
    text = """
    namespace c10 { using byte = unsigned char; template <class T> struct Of;
    template <> struct Of<byte> { using type = int; }; }"""
    assert [d.name for d in extract(tmp_path, text) if d.kind == "class"] == [
        "c10::Of<unsigned char>"
    ]


def test_of_private_members_only_virtual_ones_count(tmp_path: Path) -> None:
    text = "namespace c10 { class S { virtual int f(); int g(); int x; using T = int; }; }"
    found = extract(tmp_path, text)
    assert [d.name for d in found] == ["c10::S", "c10::S::f"]
    assert found[1].facts["access"] == "private"
    assert found[0].facts["size"] == 16


def test_enumerators_have_the_values_that_count_others(tmp_path: Path) -> None:
    text = "namespace c10 { enum class Type : signed char { A, B = 4, NumOptions }; }"
    found = extract(tmp_path, text)
    assert found[0].facts == {"underlying": "signed char", "scoped": True}
    assert {d.name: d.facts["value"] for d in found[1:]} == {
        "c10::Type::A": 0,
        "c10::Type::B": 4,
        "c10::Type::NumOptions": 5,
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("constexpr int n = 4 * sizeof(int);", 16),
        ("constexpr bool yes = !false;", 1),
        ("constexpr double half = 1 / 2.0;", 0.5),
        ('constexpr const char* name = "a" "b";', "ab"),
        (
            "constexpr auto t = std::chrono::seconds( 30 * 60 );",
            "std :: chrono :: seconds ( 30 * 60 )",
        ),
    ],
)
def test_constants_are_evaluated_or_else_read_as_written(
    tmp_path: Path, text: str, value: object
) -> None:
    (found,) = extract(tmp_path, f"#include <chrono>\nnamespace c10 {{ {text} }}")
    assert (found.kind, found.facts["value"], found.facts["constexpr"]) == ("variable", value, True)


def test_a_macro_is_its_tokens_whatever_its_parameters_are_called(tmp_path: Path) -> None:
    before = "#define REGISTER_X(name, ...) int name = f(__VA_ARGS__); /* no */\n"
    after = "#define REGISTER_X(n,...)   int n  =  \\\n  f( __VA_ARGS__ );\n"
    assert compared(extract(tmp_path / "a", before)) == compared(extract(tmp_path / "b", after))
    assert facts(tmp_path, before, "REGISTER_X") == {
        "parameters": ["$1", "..."],
        "body": "int $1 = f ( __VA_ARGS__ ) ;",
    }


def test_a_macro_without_parentheses_is_told_from_one_with_an_empty_pair(tmp_path: Path) -> None:
    text = "#define REGISTER_A (1)\n#define REGISTER_B() 1\n#define REGISTER_C\n"
    assert facts(tmp_path, text, "REGISTER_A") == {"body": "( 1 )"}
    assert facts(tmp_path, text, "REGISTER_B") == {"parameters": [], "body": "1"}
    assert facts(tmp_path, text, "REGISTER_C") == {}


def test_what_a_macro_declares_belongs_to_the_surface(tmp_path: Path) -> None:
    text = "#define DECLARE(n) int* n(); using Registerer##n = int;\nnamespace c10 { DECLARE(Map) }"
    assert [(d.kind, d.name) for d in extract(tmp_path, text)] == [
        ("macro", "DECLARE"),
        ("function", "c10::Map"),
        ("alias", "c10::RegistererMap"),
    ]


def test_a_deprecation_comes_with_its_message(tmp_path: Path) -> None:
    text = 'namespace c10 { [[deprecated("use g")]] int f(); struct [[deprecated]] S {}; }'
    assert facts(tmp_path, text, "c10::f")["deprecated"] == "use g"
    assert facts(tmp_path, text, "c10::S")["deprecated"] is True


def test_a_definition_outside_of_its_class_is_no_second_declaration(tmp_path: Path) -> None:
    text = """namespace c10 { struct S { struct In; int f(); static int n; };
    inline int S::f() { return 1; } struct S::In { int y; }; }"""
    assert [d.name for d in extract(tmp_path, text)] == [
        "c10::S",
        "c10::S::f",
        "c10::S::n",
        "c10::S::In",
        "c10::S::In::y",
    ]


def test_inline_and_anonymous_namespaces_are_not_part_of_a_name(tmp_path: Path) -> None:
    text = "namespace c10 { inline namespace v1 { int f(); } namespace { struct S {}; } S g(); }"
    assert [d.name for d in extract(tmp_path, text)] == ["c10::f", "c10::S", "c10::g"]
    assert facts(tmp_path, text, "c10::g") == {"returns": "c10::S"}


def test_what_only_the_second_profile_sees_says_which_macro_it_requires(tmp_path: Path) -> None:
    text = """
    #if defined(USE_CUDA)
    namespace c10 { int cuda();
    #ifdef USE_C10D_NCCL
    int nccl();
    #endif
    }
    #endif
    namespace c10 { int always(); }"""
    requires = {d.name: d.facts.get("requires") for d in extract(tmp_path, text)}
    assert requires == {
        "c10::always": None,
        "c10::cuda": ["USE_CUDA"],
        "c10::nccl": ["USE_C10D_NCCL", "USE_CUDA"],
    }


def test_the_second_profile_reaches_files_that_are_not_listed(tmp_path: Path) -> None:
    inner = "#pragma once\n#ifdef USE_CUDA\nnamespace c10 { int cuda(); }\n#endif\n"
    always = "namespace c10 { int always(); }"
    others = {"c10/inner.h": inner + always}
    requires = {
        d.name: d.facts.get("requires") for d in extract(tmp_path, '#include "c10/inner.h"', others)
    }
    assert requires == {"c10::always": None, "c10::cuda": ["USE_CUDA"]}


def test_functions_of_c_are_read_like_any_other(tmp_path: Path) -> None:
    text = 'extern "C" { int answer(void*); int other(); }'
    assert [d.name for d in extract(tmp_path, text)] == ["answer", "other"]


def test_what_others_declare_does_not_count(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.h"
    elsewhere.write_text("namespace c10 { int f(); }\n#define REGISTER_Y\n")
    assert extract(tmp_path / "tree", f'#include "{elsewhere}"') == []


def test_headers_that_this_torch_does_not_have_are_passed_over(tmp_path: Path) -> None:
    assert [d.file for d in extract(tmp_path, "namespace c10 { int f(); }")] == [
        f"torch/include/{HEADER}"
    ]


def test_an_error_says_where_and_leaves_nothing_half_read(tmp_path: Path) -> None:
    text = "namespace c10 { int before(); Unknown f(); }"
    with pytest.raises(CiError, match=rf"torch/include/{HEADER}:2: unknown type name 'Unknown'"):
        extract(tmp_path, text)


def test_a_missing_header_of_torch_itself_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CiError, match=r"Allocator.h:2: 'c10/gone.h' file not found"):
        extract(tmp_path, "#include <c10/gone.h>\n")


def test_a_header_that_needs_files_of_others_is_left_out_of_what_is_read(tmp_path: Path) -> None:
    others = {"c10/core/Device.h": "#include <nlohmann/json.hpp>\nnamespace c10 { int g(); }"}
    found = extract(tmp_path, "namespace c10 { int f(); }", others)
    assert [d.name for d in found] == ["c10::f"]


def test_a_header_that_compiles_only_behind_another_is_still_read(tmp_path: Path) -> None:
    others = {"c10/core/Device.h": "namespace c10 { struct Device {}; }"}
    found = extract(tmp_path, "namespace c10 { Device f(); }", others)
    assert [d.name for d in found] == ["c10::Device", "c10::f"]


def test_a_torch_without_any_of_the_headers_is_an_error(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {"torch/include/c10/other.h": ""})
    with pytest.raises(CiError, match="has none of the headers"):
        cpp.extract(tree, CATALOGUE)


def test_without_a_compiler_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "COMPILER", "no-such-compiler")
    compiler.system_flags.cache_clear()
    with pytest.raises(CiError, match=r"apt-get install g\+\+"):
        extract(tmp_path, "")
    compiler.system_flags.cache_clear()


def test_without_the_headers_of_python_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    with pytest.raises(CiError, match="python3-dev"):
        extract(tmp_path / "tree", "#include <Python.h>")


def test_a_compiler_that_speaks_another_language_is_understood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    compiler.system_flags.cache_clear()
    folders = [flag for flag in compiler.system_flags() if flag.startswith("/")]
    assert folders
    assert all(Path(folder).is_dir() for folder in folders)


def test_an_overlay_stands_for_files_without_touching_them(tmp_path: Path) -> None:
    overlay = {f"torch/include/{HEADER}": '#include "new.h"', "torch/include/c10/core/new.h": ""}
    overlay["torch/include/c10/core/new.h"] = "namespace c10 { int added(); }"
    found = extract(tmp_path, "namespace c10 { int f(); }", overlay=overlay)
    assert [(d.name, d.file) for d in found] == [("c10::added", "torch/include/c10/core/new.h")]


def test_only_some_headers_can_be_read(tmp_path: Path) -> None:
    others = {"c10/core/Device.h": "namespace c10 { struct Device {}; }"}
    found = extract(tmp_path, "namespace c10 { int f(); }", others, headers=["c10/core/Device.h"])
    assert [d.name for d in found] == ["c10::Device"]


@pytest.mark.parametrize(
    ("version", "standard"), [("2.5.1", "c++17"), ("2.7.0", "c++17"), ("2.8.0", "c++20")]
)
def test_the_language_is_the_one_of_the_torch(version: str, standard: str) -> None:
    assert compiler.standard(version) == standard
