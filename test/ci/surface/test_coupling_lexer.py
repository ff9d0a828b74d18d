# SPDX-License-Identifier: BSD-3-Clause
"""The small lexer of the coupling audit tells code from comments, text and directives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_backend_ci.surface.coupling.cpp_lexer import Token, tokens


def words(text: str) -> list[tuple[str, str]]:
    return [(t.kind, t.text) for t in tokens(text) if t.kind != "other"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at::cuda::Stream s;", [("name", "at::cuda::Stream"), ("name", "s")]),
        ("at :: cuda", [("name", "at::cuda")]),
        ("API ::std::size_t", [("name", "API"), ("name", "std::size_t")]),
        ("a // is_cuda\nb", [("name", "a"), ("name", "b")]),
        ("a // is_cuda \\\n still\nb", [("name", "a"), ("name", "b")]),
        ("a /* is_cuda\n*/ b", [("name", "a"), ("name", "b")]),
        ("a /* never closed is_cuda", [("name", "a")]),
        ('f("// no comment \\" still");', [("name", "f"), ("string", '// no comment \\" still')]),
        ('u8R"x(a "b)" c)x" d', [("string", 'a "b)" c'), ("name", "d")]),
        ('R"(never closed', [("string", "never closed")]),
        ("'\"' a", [("name", "a")]),
        ("1'000'000 a", [("name", "a")]),
        ("#include <a/b.h>", [("include", "a/b.h")]),
        ('# include "c.h"', [("include", "c.h")]),
        ("x #include <a.h>", [("name", "x")]),
        ("#error it's off\nb", [("directive", "error"), ("name", "it"), ("name", "s"),
                                ("name", "off"), ("name", "b")]),
        ("", []),
    ],
)  # fmt: skip
def test_text_becomes_the_tokens_it_has(text: str, expected: list[tuple[str, str]]) -> None:
    assert words(text) == expected


def test_a_token_knows_its_line_and_the_directive_around_it() -> None:
    text = "/* two\nlines */ a\n#if defined(X) \\\n  && Y\nb"
    assert [t for t in tokens(text) if t.kind == "name"] == [
        Token("name", "a", 2),
        Token("name", "defined", 3, "if"),
        Token("name", "X", 3, "if"),
        Token("name", "Y", 4, "if"),
        Token("name", "b", 5),
    ]


CODE = st.lists(
    st.sampled_from(["word", "a::b", '"text"', "'c'", "12", "+", " ", "\n", "/* note */", "// n\n"])
)


@given(st.text())
def test_any_text_has_tokens_with_lines_that_it_has(text: str) -> None:
    lines = [token.line for token in tokens(text)]
    assert lines == sorted(lines)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines)


@given(CODE, st.text().filter(lambda text: "*/" not in text and not text.endswith("*")))
def test_a_comment_adds_no_token(code: list[str], note: str) -> None:
    def of(text: str) -> list[tuple[str, str]]:
        return [(token.kind, token.text) for token in tokens(text)]

    plain = " ".join(code)
    assert of(f"/*{note}*/ {plain} /*{note}*/") == of(plain)


@given(st.text().filter(lambda text: ')mark"' not in text))
def test_a_raw_string_is_one_token_whatever_is_in_it(text: str) -> None:
    assert [(t.kind, t.text) for t in tokens(f'R"mark({text})mark"')] == [("string", text)]
