# SPDX-License-Identifier: BSD-3-Clause
"""Findings are shown completely, worst first, and nothing in them steers who reads them."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from declarations import class_, enum, function, snapshot, virtual
from hypothesis import given, settings
from hypothesis import strategies as st
from schemas_of import valid

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.diff import diff
from torch_backend_ci.surface.model import Domain, Finding, Severity, Torch
from torch_backend_ci.surface.report import Report, markdown, sarif, shown, text
from torch_backend_ci.surface.report import json as json_report
from torch_backend_ci.surface.report.report import by_surface

A = "c10::Allocator"
BEFORE = snapshot(
    class_(A),
    virtual(f"{A}::allocate", "int", const=True),
    *enum("c10::ScalarType", "Byte", "NumOptions"),
    function("c10::f", "int"),
)
AFTER = snapshot(
    class_(A),
    virtual(f"{A}::allocate", "int"),
    virtual(f"{A}::copy_data"),
    *enum("c10::ScalarType", "Byte", "Float8", "NumOptions"),
    function("c10::f", "int"),
    function("c10::f", "bool"),
)
TORCHES = (Torch("2.11.0", "a" * 40), Torch("2.13.0", None))
REPORT = Report(*TORCHES, tuple(diff(BEFORE, AFTER)), (Domain.SYMBOL,))


def with_name(name: str, count: int = 1) -> Report:
    """A report whose every text is this one."""
    one = REPORT.findings[0]
    assert one.before and one.after
    before, after = (replace(d, name=name, text=name, file=name) for d in (one.before, one.after))
    finding = replace(
        one, name=name, message=name, before=before, after=after, hint=name, used_by=(name,)
    )
    return Report(*TORCHES, (finding,) * count)


# What a pull request could call something to be heard, or to hide.
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "@pytorch/maintainers",
    "closes #1234, GH-1234",
    "[click](https://evil.example)",
    "https://evil.example www.evil.example",
    "``` `` ` ```` \n# heading",
    "|---|---|",
    "</details><details open>",
    "\x1b[2J\x1b[31mred\x07",
    "safe\u202eesrever\u200b",
    "a\r\n::error::b",
    "&lt;b&gt; ![x](y) ~~z~~ **w** $x$",
]


@pytest.mark.parametrize("format_", [text, json_report, markdown, sarif])
def test_every_format_tells_of_every_finding(format_: ModuleType) -> None:
    rendered = format_.render(REPORT)
    for finding in REPORT.findings:
        assert finding.name in rendered


def test_cosmetic_findings_are_hidden_unless_they_are_asked_for() -> None:
    assert Severity.COSMETIC in {f.severity for f in REPORT.findings}
    few = shown(REPORT)
    assert Severity.COSMETIC not in {f.severity for f in few.findings}
    assert "1 cosmetic difference is not shown" in text.render(few)
    assert shown(REPORT, cosmetic=True) == REPORT


def test_a_report_may_be_of_one_surface() -> None:
    assert shown(REPORT, ["guard"]).findings == ()
    assert shown(REPORT, ["allocator"], cosmetic=True) == REPORT


def test_the_surface_of_the_worst_finding_comes_first_and_in_each_the_worst() -> None:
    worst, *rest = REPORT.findings
    mixed = [*(replace(f, surface="a") for f in rest), replace(worst, surface="z")]
    grouped = by_surface(mixed)
    assert [surface for surface, _ in grouped] == ["z", "a"]
    ranks = [f.severity.rank for f in grouped[1][1]]
    assert ranks == sorted(ranks)


def test_what_was_not_compared_is_said() -> None:
    assert "only one of the two was looked at for it: symbol" in text.render(REPORT)
    assert json.loads(json_report.render(REPORT))["not_compared"] == ["symbol"]


# text


def test_text_has_colour_only_on_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert text.wants_colour(Terminal())
    assert not text.wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not text.wants_colour(Terminal())
    assert "\033" in text.render(REPORT, colour=True)
    assert "\033" not in text.render(REPORT)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_steers_the_terminal(name: str) -> None:
    assert re.fullmatch(
        r"[^\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e]*", text.render(with_name(name))
    )


# JSON


def test_json_is_as_the_schema_says_and_reads_back(tmp_path: Path) -> None:
    file = tmp_path / "findings.json"
    file.write_text(json_report.render(REPORT))
    valid(json.loads(file.read_text()), "findings")
    assert json_report.read(file) == REPORT


def test_no_finding_is_a_report_too(tmp_path: Path) -> None:
    file = tmp_path / "findings.json"
    empty = Report(*TORCHES, ())
    file.write_text(json_report.render(empty))
    assert json_report.read(file) == empty
    assert "no finding" in text.render(empty)


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_survives_json(name: str, tmp_path: Path) -> None:
    file = tmp_path / "findings.json"
    file.write_text(json_report.render(with_name(name)))
    assert json_report.read(file) == with_name(name)


BROKEN = {
    "{}": "required key 'before' is missing",
    "[]": "expected `object`",
    "{": "not JSON",
    '{"schema_version": 99}': "schema version 99",
    "[" * 100_000: "nested deeper",
}


@pytest.mark.parametrize(("content", "why"), BROKEN.items())
def test_what_is_not_a_report_is_refused_with_the_reason(
    content: str, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "findings.json"
    file.write_text(content)
    with pytest.raises(CiError, match=re.escape(why)):
        json_report.read(file)


def test_a_finding_of_an_unknown_severity_is_refused_by_its_place(tmp_path: Path) -> None:
    file = tmp_path / "findings.json"
    file.write_text(json_report.render(REPORT).replace('"compile_break"', '"terrible"'))
    said = "findings[0].severity: 'terrible' is not one of: 'compile_break', "
    with pytest.raises(CiError, match=re.escape(said)):
        json_report.read(file)


# Markdown


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_is_markup_mention_or_link(name: str) -> None:
    rendered = markdown.render(with_name(name))
    outside = re.sub(r"(?ms)^(`{3,})diff$.*?^\1$", "", rendered)
    outside = re.sub(r"(?s)(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", outside)
    assert "<" not in outside.replace("<sub>", "").replace("</sub>", "")
    assert not re.search(r"(?<!\\)[\[\]|]|@\w|#\d|://|www\.\w|GH-\d", outside)
    headings = [line for line in outside.splitlines() if line.startswith("#")]
    assert len(headings) == 2


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60))
def test_a_code_span_holds_any_text(words: str) -> None:
    span = markdown.code(words)
    fence = re.match("`+", span)
    assert fence and span.endswith(fence[0])
    inner = span[len(fence[0]) : -len(fence[0])]
    assert not re.search(rf"(?<!`){fence[0]}(?!`)", inner)
    assert "\n" not in span


def test_code_of_nothing_but_blanks_does_not_open_what_follows_it() -> None:
    # An empty span would be two backticks, and with those of the next one a run of three.
    assert markdown.text("` `` `x").strip() == "x"
    assert markdown.text("`` ` ``<b>bold</b>`").strip() == "`<b>bold</b>`"


def test_a_long_report_fits_into_a_comment_and_says_how_much_is_left_out() -> None:
    rendered = markdown.render(with_name("c10::" + "x" * 300, 400))
    assert len(rendered) < 65_536
    told = rendered.count("**compile break**")
    assert f"**{400 - told} more** did not fit" in rendered
    assert 0 < told < 400


def test_one_enormous_declaration_does_not_displace_the_rest() -> None:
    rendered = markdown.render(with_name("x" * 1_000_000))
    assert len(rendered) < 65_536
    assert "did not fit" not in rendered


def test_the_worst_findings_have_precedence_when_room_is_short() -> None:
    worst = markdown.render(REPORT, limit=1_500)
    assert "**compile break**" in worst
    assert "**new capability**" not in worst


# SARIF


def test_sarif_is_whole_and_names_paths_of_the_repository() -> None:
    run = json.loads(sarif.render(REPORT))["runs"][0]
    driver = run["tool"]["driver"]
    assert len(run["results"]) == len(REPORT.findings)
    for result, finding in zip(run["results"], REPORT.findings, strict=True):
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"none", "note", "warning", "error"}
        assert result["partialFingerprints"] == {sarif.FINGERPRINT: finding.identity}
        physical = result["locations"][0]["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == "c10/x.h"
        assert physical["region"]["startLine"] >= 1


@pytest.mark.parametrize(
    ("file", "uri"),
    {
        "torch/include/ATen/Context.h": "aten/src/ATen/Context.h",
        "torch/include/ATen/ops/add.h": None,
        "torch/accelerator/__init__.py": "torch/accelerator/__init__.py",
        "torchgen/packaged/ATen/native/native_functions.yaml": (
            "aten/src/ATen/native/native_functions.yaml"
        ),
    }.items(),
)
def test_sarif_places_a_file_where_the_repository_has_it(file: str, uri: str | None) -> None:
    finding = _placed(REPORT.findings[0], file)
    log = json.loads(sarif.render(Report(*TORCHES, (finding,))))
    location = log["runs"][0]["results"][0]["locations"][0]
    assert location["logicalLocations"][0]["fullyQualifiedName"] == finding.name
    physical = location.get("physicalLocation")
    assert (physical and physical["artifactLocation"]["uri"]) == uri


def test_sarif_takes_a_rule_that_no_comparison_has() -> None:
    finding = replace(REPORT.findings[0], rule="probe_disagreement")
    run = json.loads(sarif.render(Report(*TORCHES, (finding,))))["runs"][0]
    assert run["tool"]["driver"]["rules"][0]["id"] == "cpp/probe_disagreement"


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_survives_sarif(name: str) -> None:
    result = json.loads(sarif.render(with_name(name)))["runs"][0]["results"][0]
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == name
    assert "\x1b" not in result["message"]["text"]


def _placed(finding: Finding, file: str) -> Finding:
    assert finding.after
    return replace(finding, after=replace(finding.after, file=file))
