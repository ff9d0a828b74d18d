# SPDX-License-Identifier: BSD-3-Clause
"""What documents quote is what the sources say; and the tool that keeps it so."""

from __future__ import annotations

from pathlib import Path

import pytest
from quotes import ROOT as CHECKOUT
from quotes import Quote, QuoteError, documents, marked, quotes, renewed, sources

QUOTES = {
    quote.where: quote
    for document in documents()
    for quote in quotes(document.read_text(), document.relative_to(CHECKOUT).as_posix())
}

SOURCE = """\
int before;
// [quote: outer]
int a;
  // [quote: inner]
  if (a) {
    b();
  }
  // [end: inner]
// [end: outer]
"""


@pytest.mark.parametrize("where", QUOTES)
def test_a_quote_is_what_its_source_says(where: str) -> None:
    quote = QUOTES[where]
    assert quote.block == quote.expected(), "run: python test/docs/quotes.py"


def test_there_are_quotes() -> None:
    assert len(QUOTES) >= 8


def test_every_marked_passage_is_quoted() -> None:
    there = {f"{path}#{name}" for path, passages in sources() for name in passages}
    assert there == {f"{quote.path}#{quote.name}" for quote in QUOTES.values()}


def test_passages_lose_their_indentation_and_the_marks_inside() -> None:
    assert marked(SOURCE, "a.cpp") == {
        "outer": "int a;\n  if (a) {\n    b();\n  }\n",
        "inner": "if (a) {\n  b();\n}\n",
    }


def test_marks_in_comments_of_other_languages() -> None:
    assert marked("# [quote: x]\na = 1\n# [end: x]\n", "a.py") == {"x": "a = 1\n"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("// [quote: a]\n", "a.cpp: no end of a"),
        ("\n// [end: a]\n", "a.cpp:2: the end of 'a', which has not begun"),
        ("// [quote: a]\n// [quote: a]\n", "a.cpp:2: a second passage 'a'"),
        ("// [quote: a]\n// [end: a]\n// [quote: a]\n", "a.cpp:3: a second passage 'a'"),
    ],
)
def test_wrong_marks_are_named(text: str, message: str) -> None:
    with pytest.raises(QuoteError) as error:
        marked(text, "a.cpp")
    assert str(error.value) == message


def test_a_document_is_renewed(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(SOURCE)
    text = (
        "Text.\n\n<!-- quote: a.cpp#inner -->\n```cpp\nold();\n```\n\n"
        "More.\n\n<!-- quote: a.cpp#outer -->\n\nEnd.\n"
    )
    once = renewed(text, "a.md", tmp_path)
    assert once == (
        "Text.\n\n<!-- quote: a.cpp#inner -->\n```cpp\nif (a) {\n  b();\n}\n```\n\n"
        "More.\n\n<!-- quote: a.cpp#outer -->\n"
        "```cpp\nint a;\n  if (a) {\n    b();\n  }\n```\n\nEnd.\n"
    )
    assert renewed(once, "a.md", tmp_path) == once
    assert [q.block for q in quotes(once, "a.md")] == [
        q.expected(tmp_path) for q in quotes(once, "a.md")
    ]
    (tmp_path / "a.cpp").write_text(SOURCE.replace("b()", "c()"))
    assert "c();" in renewed(once, "a.md", tmp_path)


@pytest.mark.parametrize(
    "mark", ["<!-- quote: a.cpp -->", " <!-- quote: a.cpp#x -->", "<!-- quote:"]
)
def test_a_quote_that_is_misspelt_is_an_error(mark: str) -> None:
    with pytest.raises(QuoteError, match=r"a\.md: a line that is not"):
        list(quotes(f"Text.\n{mark}\n", "a.md"))


@pytest.mark.parametrize(
    ("quote", "message"),
    [
        (Quote("a.md:3", "b.cpp", "x", ""), "a.md:3: there is no file b.cpp"),
        (Quote("a.md:3", "a.cpp", "x", ""), r"a.md:3: a.cpp has no passage \[quote: x\]"),
    ],
)
def test_a_quote_of_nothing_is_an_error(tmp_path: Path, quote: Quote, message: str) -> None:
    (tmp_path / "a.cpp").write_text(SOURCE)
    with pytest.raises(QuoteError, match=message):
        quote.expected(tmp_path)
