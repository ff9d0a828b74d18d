# SPDX-License-Identifier: BSD-3-Clause
"""Text that anybody chose stays text: in GitHub's markdown, and in the log of a step."""

from __future__ import annotations

import html
import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_backend_ci.errors import CiError
from torch_backend_ci.github import actions, markdown
from torch_backend_ci.github.change import Change, perform
from torch_backend_ci.output import inert, printable

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!-- a comment that never ends",
    "</summary></details><h1>",
    "[click](https://evil.example)",
    "![](https://evil.example/pixel.png)",
    "[a]: https://evil.example",
    "https://evil.example/x",
    "www.evil.example",
    "mail@evil.example",
    "@pytorch/maintainers",
    "#1 pytorch/pytorch#2 GH-3 gh-4",
    "`code` ``` fence",
    "~~~",
    "a | b | c",
    "| --- |",
    "line\n# heading\r\n- [x] item\r> quote",
    "\\` \\| \\\\",
    "**bold** _it_ ~~gone~~ $x$",
    "1. one\n+ two",
    "12) twelve",
    "- item",
    "+1",
    "=====",
    ":tada: :+1: std::fire::x",
    "__init__ _x_ a_b __ _",
    "[^1]: a footnote",
    "&lt;b&gt; &#64;",
    "a\u202ecod.exe\u2066",
    "zero\u200bwidth\ufeff\x00\x1b[31m",
    "lone \ud800 surrogate",
    "    four blanks make a block of code",
    "a bar \\| after a backslash",
    " `leading",
    "trailing` ",
]
odd_text = st.text(
    st.sampled_from([*"`|<>@#&*_[]()!~\\\n\r\t :/.wg-hH1a=+$", "\u202e", "\ud800", "é"])
)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_running_text_has_no_character_that_means_anything(hostile: str) -> None:
    shown = markdown.text(hostile)
    rest = re.sub(r"&#\d+;", "\0", shown)
    assert not re.search(r"[<>&`*\[\]{}|~\\$^#@]", rest), shown
    assert not re.search(r"\b_|_\b|:[a-z0-9_+-]+:|\A[-+=]|\A\d+[.)](\s|\Z)", rest), shown
    assert "\n" not in shown and shown.isprintable()
    read = html.unescape(shown)
    assert not re.search(r"[@#]\w|://|www\.|gh-\d", read, re.I), "nothing to be made a link of"


@pytest.mark.parametrize(
    "plain",
    [
        "2.13.0+cpu",
        "the backend did not come up: ImportError (libmychip.so, 3 of 5).",
        "of 2 shards these are missing: 2",
        "c10::Allocator::copy_data = 0; it's a must!",
        "a-b_c/d.py:12",
    ],
)
def test_ordinary_text_is_left_as_it_is(plain: str) -> None:
    assert markdown.text(plain) == plain


@given(odd_text)
def test_running_text_reads_as_it_was(odd: str) -> None:
    read = html.unescape(markdown.text(odd)).replace("\u200b", "")
    assert read == markdown.visible(re.sub(r"[\r\n]+", " ", odd)).strip()


@given(odd_text)
def test_a_code_span_ends_where_its_text_ends(odd: str) -> None:
    span = markdown.code(odd)
    if not odd or span.startswith("<"):
        return
    opening = re.match("`+", span)
    assert opening is not None
    fence = opening[0]
    assert span.endswith(fence)
    inner = span[len(fence) : -len(fence)]
    assert all(len(run) < len(fence) for run in re.findall("`+", inner))
    assert inner[0] != "`" and inner[-1] != "`"
    if inner[0] == inner[-1] == " " and inner.strip():  # what a reader of markdown takes off
        inner = inner[1:-1]
    assert inner == markdown.visible(odd)


@given(odd_text, odd_text)
def test_a_bar_after_a_backslash_is_a_bar_for_every_reader_of_tables(a: str, b: str) -> None:
    span = markdown.code(f"{a}\\|{b}")
    inner = span.removeprefix("<code>").removesuffix("</code>")
    assert not re.search(r"[<>|\\`]", inner)
    assert html.unescape(inner).replace("\u200b", "") == markdown.visible(f"{a}\\|{b}")


@given(odd_text)
def test_a_code_block_ends_where_its_text_ends(odd: str) -> None:
    first, *lines, last = markdown.block(odd, "text").split("\n")
    assert first == last + "text"
    assert not any(re.match(r"\s*" + re.escape(last), line) for line in lines)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_cell_stays_one_cell(hostile: str) -> None:
    rows = markdown.table(["a", "b"], [[markdown.code(hostile), markdown.text(hostile)]])
    header, rule, row = rows.split("\n")
    for line in (header, rule, row):
        assert len(re.findall(r"(?<!\\)\|", line)) == 3, line


def test_only_web_addresses_become_links() -> None:
    assert markdown.link("run", "https://github.com/o/r") == "[run](<https://github.com/o/r>)"
    assert markdown.link("run", "https://x/>)<b>\\") == "[run](<https://x/%3E)%3Cb%3E%5C>)"
    for bad in ("javascript:alert(1)", "http://x", "https://x y", "data:text/html,x"):
        assert markdown.link("run", bad) == "run"


@given(odd_text, st.integers(60, 200))
def test_what_is_cut_is_never_too_long_and_closes_its_code(odd: str, limit: int) -> None:
    whole = markdown.block(odd * 9)
    short = markdown.cut(whole, limit)
    assert markdown.size(short) <= limit
    if short != whole:
        assert re.search(r"\.\.\. and \d+ more lines\Z", short)
        fences = re.findall(r"(?m)^`{3,}$", short)
        assert len(fences) in (0, 2)


def test_pieces_that_do_not_fit_are_counted() -> None:
    pieces = [f"- {n} ü" for n in range(1000)]
    short = markdown.fit(pieces, 200, "checks")
    kept = short.split("\n")[:-1]
    assert markdown.size(short) <= 200 and kept == pieces[: len(kept)]
    assert short.endswith(f"... and {1000 - len(kept)} more checks")
    assert markdown.fit(pieces, 1 << 20, "checks") == "\n".join(pieces)


def test_a_text_is_shortened_between_two_characters() -> None:
    for limit in range(3, 12):
        short = markdown.shorten("äöü𝄞ß", limit)
        assert markdown.size(short) <= limit and "\ufffd" not in short


@pytest.fixture
def in_actions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path


def outputs(file: Path) -> dict[str, str]:
    """As the runner reads the file."""
    read, lines = {}, file.read_text().split("\n")
    while lines and lines[0]:
        name, delimiter = lines.pop(0).split("<<", 1)
        end = lines.index(delimiter)
        read[name] = "\n".join(lines[:end])
        del lines[: end + 1]
    return read


def test_an_output_cannot_add_another(in_actions: Path) -> None:
    hostile = "x\nEOF\nend_0\nadmin=true\nadmin<<EOF\ntrue\nEOF"
    actions.set_output("title", hostile)
    actions.set_output("next", "")
    assert outputs(in_actions / "GITHUB_OUTPUT") == {"title": hostile, "next": ""}
    with pytest.raises(ValueError, match="name"):
        actions.set_output("a=b\nc", "")


def test_an_annotation_is_one_command(in_actions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    actions.annotation(
        "error", "50%\n::set-output name=a::b\r", file="a,b:c.h", line=3, title="x::y\nz"
    )
    actions.annotation("notice", "plain")
    assert capsys.readouterr().out == (
        "::error file=a%2Cb%3Ac.h,line=3,title=x%3A%3Ay%0Az"
        "::50%25%0A::set-output name=a::b%0D\n::notice::plain\n"
    )


def test_every_line_of_a_secret_is_masked(
    in_actions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    actions.mask("one%\r\n\ntwo")
    assert capsys.readouterr().out == "::add-mask::one%25\n::add-mask::two\n"


def test_a_summary_stays_below_what_github_takes(in_actions: Path) -> None:
    for _ in range(3):
        actions.step_summary("```\n" + "line ü\n" * 80_000 + "```")
    data = (in_actions / "GITHUB_STEP_SUMMARY").read_bytes()
    assert len(data) <= 1 << 20
    assert b"more lines" in data and data.count(b"```") % 2 == 0


def test_outside_of_actions_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    actions.set_output("a", "b")
    actions.step_summary("c")
    actions.annotation("error", "d")
    actions.mask("e")
    assert capsys.readouterr().out == ""


def test_a_summary_that_cannot_be_written_is_said(
    in_actions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(in_actions))
    with pytest.raises(CiError, match="GITHUB_STEP_SUMMARY"):
        actions.step_summary("x")


@pytest.mark.parametrize(
    "line",
    [
        "::set-output name=a::b",
        "  ::add-mask::x",
        "ok\n::error::no",
        "ok\r\t::stop-commands::x",
        "somewhere ##[add-path]/tmp",
        "error: x\n\n \n::group::y",
    ],
)
def test_no_line_of_progress_is_a_command(line: str) -> None:
    said = inert(line)
    assert not any(part.lstrip().startswith("::") for part in re.split(r"[\r\n]", said))
    assert "##[" not in said
    assert re.sub(r"\s", "", said) == re.sub(r"\s", "", line)
    assert "\n" not in printable(line) and "\r" not in printable(line)


def test_a_name_of_cpp_in_progress_stays() -> None:
    assert inert("c10::Allocator has at::Tensor") == "c10::Allocator has at::Tensor"


def test_changes_are_said_and_done_one_after_another(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[int] = []
    changes = (Change(f"do {n}\n::error::", partial(done.append, n)) for n in range(3))
    assert perform(changes, dry_run=False) == 3
    assert done == [0, 1, 2]
    assert capsys.readouterr().err.splitlines()[0] == r"did do 0\n::error::"


def test_a_dry_run_prints_and_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[int] = []
    assert perform([Change("do it", lambda: done.append(1))], dry_run=True) == 1
    assert not done
    assert capsys.readouterr().out == "would do it\n"
