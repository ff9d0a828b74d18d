# SPDX-License-Identifier: BSD-3-Clause
"""What the rules find, and what they must leave alone."""

from __future__ import annotations

import pytest
from mutants.grammar import Source
from mutants.rules import mutants

# A piece of a function: some of what may stand in its place, as "original -> instead".
CPP = {
    "return a < b;": {"a < b -> a <= b", "a < b -> a >= b", "return a < b; -> return {};"},
    "x = i * stride + offset;": {
        "i * stride + offset -> i * stride - offset",
        "i * stride + offset -> i * stride",
        "i * stride -> i",
        "x = i * stride + offset; -> ",
    },
    "if (a && !b) f();": {
        "a && !b -> a",
        "a && !b -> !b",
        "a && !b -> false",
        "a && !b -> true",
        "!b -> b",
        "f(); -> ",
    },
    "for (int i = 0; i < n; ++i) g(i, n);": {
        "i < n -> i <= n",
        "g(i, n) -> g(n, i)",
        "0 -> (0 + 1)",
    },
    "y = std::max(a, b[k]);": {
        "std::max(a, b[k]) -> std::min(a, b[k])",
        "std::max(a, b[k]) -> std::max(b[k], a)",
        "k -> 0",
    },
    "y = x.contiguous();": {"x.contiguous() -> x"},
    "y = isnan(x) ? x : 0.5f;": {
        "isnan(x) -> isinf(x)",
        "isnan(x) -> true",
        "0.5f -> (0.5f * 1.01f)",
    },
    "t = at::kFloat;": {"at::kFloat -> at::kDouble"},
    "auto s = getCurrentStream(d);": {"getCurrentStream(d) -> getDefaultStream(d)"},
    "t = torch::empty({d.index()});": {"d.index() -> static_cast<decltype(d.index())>(0)"},
    "const DeviceGuard guard(device);": {
        "const DeviceGuard guard(device); -> std::optional<decltype(DeviceGuard(device))> guard; "
        "if (@) guard.emplace(device);"
    },
}
PYTHON = {
    "return a <= b": {"a <= b -> a < b", "return a <= b -> return None"},
    "if a and not b: f(x, 1)": {
        "a and not b -> a",
        "a and not b -> a or not b",
        "not b -> b",
        "1 -> (1 + 1)",
        "f(x, 1) -> f(1, x)",
        "f(x, 1) -> ",
    },
    "x = y if y is not None else z": {"y is not None -> y is None", "y is not None -> False"},
}
LEFT_ALONE = [
    "int n = 1;",
    "constexpr int f = 1 + 2; static_assert(f < 4);",
    "enum class E { kOne = 1 + 1 };",
    "template <int N = 3> struct S { int a[N + 1]; };",
    "#include <vector>\n#define SIZE 3\n",
]


def found(name: str, text: str) -> set[str]:
    return {f"{m.original} -> {m.instead}" for m in mutants(Source(name, text.encode()))}


@pytest.mark.parametrize("body", CPP)
def test_a_piece_of_cpp_has_these_mutants(body: str) -> None:
    assert found("a.cpp", f"PUONE_FN T f(int a) {{ {body} }}") >= CPP[body]


@pytest.mark.parametrize("body", PYTHON)
def test_a_piece_of_python_has_these_mutants(body: str) -> None:
    assert found("a.py", f"def f(a, b):\n    {body}\n") >= PYTHON[body]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_only_the_compiler_evaluates_is_left_alone(text: str) -> None:
    assert not found("a.h", text)


def test_a_block_is_no_lock() -> None:
    assert not any("emplace" in one for one in found("a.cpp", "void f() { Block block(nullptr); }"))
    assert any("emplace" in one for one in found("a.cpp", "void f() { SpinLock lock(nullptr); }"))


def test_constants_inside_a_function_are_left_alone_where_they_must_be_constants() -> None:
    body = "constexpr int k = 1 + n; if constexpr (sizeof(T) < 4) { } std::array<int, 3> a;"
    body += " alignas(64) char b[2];"
    assert not found("a.cpp", f"void f() {{ {body} }}")


def test_the_words_of_a_message_are_left_alone() -> None:
    said = found("a.cpp", 'void f() { TORCH_CHECK(a < b, "expected ", b + 1, " or ", b + 2); }')
    assert {"a < b -> a <= b"} < said
    assert not any("b + 1 ->" in one or "b + 2 ->" in one for one in said)
    assert found("a.cpp", "void f() { TORCH_WARN(n + 1, n); }") == {"TORCH_WARN(n + 1, n); -> "}
    thrown = found("a.cpp", 'void f() { throw py::value_error("not " + name + "!"); }')
    assert not any('+ "!" ->' in one or "name ->" in one for one in thrown)


def test_a_lambda_returns_nothing_only_if_its_type_is_named() -> None:
    def empties(text: str) -> set[str]:
        return {one for one in found("a.cpp", f"void f() {{ {text} }}") if "return {}" in one}

    assert empties("auto g = [](int a) -> int { return a; };")
    assert not empties("auto g = [](int a) { if (a) { return a; } return 3; };")
    assert not empties("auto g = [=] { return h(); };")


def test_the_formulas_of_macros_that_define_functions_have_mutants() -> None:
    said = found("a.cpp", "namespace { PUONE_UNARY(Cube, x < 0 ? -x : x * x); }")
    assert {"x < 0 -> x <= 0", "-x -> x", "x * x -> x + x"} <= said
    assert not found("a.cpp", "namespace { PUONE_KERNEL(cube, 1 + 2); }")
    assert not any("Cube" in one for one in said)


def test_no_mutant_is_the_text_that_was_there() -> None:
    said = found("a.py", "def f(a):\n    g(a, a)\n    return None\n")
    assert "return None -> return None" not in said
    assert "g(a, a) -> g(a, a)" not in said
    assert "None -> 0" in said
