# SPDX-License-Identifier: BSD-3-Clause
"""The verdict is told in five forms, and nothing in a name or message can change what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import defusedxml.ElementTree
import pytest
import synthetic
from gating import LANE, Gate, finding, write_findings
from synthetic import record

from torch_backend_ci.cli import main
from torch_backend_ci.errors import CiError, Exit
from torch_backend_ci.gate import verdict
from torch_backend_ci.gate.report import annotate, junit, markdown, sarif, text
from torch_backend_ci.gate.verdict import Verdict

#: What a test may say, and what must not come of it.
HOSTILE = {
    "HTML": "<img src=x onerror=alert(1)></details><script>x</script>",
    "a link": "[click](https://evil.example) ![](https://evil.example/p.png)",
    "a mention": "@octocat @org/team fixes #1 closes GH-2 https://github.com/o/r/issues/3",
    "the end of the code block": "```\n# pwned\n````\n~~~\n",
    "the end of the code span": "``` ` `` <b>",
    "a table": "| a | b |\n|---|---|",
    "a comment": "--> <!-- marker:gate -->",
    "colours": "\x1b[2J\x1b]0;title\x07\x1b[31mred\x1b[0m",
    "another direction": "\u202egnp.exe\u202c \u2066x\u2069",
    "what one cannot see": "a\u200b\u200d\ufeff\u00adb",
    "a command": "::error::pwned\n::add-mask::x\n  ::set-output name=a::b",
    "an old command": "##[error]pwned ##[set-env name=PATH]x",
    "an encoded command": "%0A::error::pwned%0D%0A::stop-commands::x",
    "a property": "x,line=1::y",
    "a carriage return": "good\r::error::pwned\r\nbad",
    "other ends of lines": "a\u2028::error::b\u2029::error::c\x0b::error::d\x85::error::e",
    "XML": ']]></failure></testcase><testcase name="forged"/>',
    "what XML cannot carry": "\x00\x01\x08\ufffe\uffff",
    "formulas": "=HYPERLINK(\"https://evil.example\")",
    "many characters": "\U0001f4a9" * 50_000,
}  # fmt: skip
UNSEEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200b-\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff]"
)


def judged(root: Path, said: str) -> Verdict:
    """A verdict of which every text is chosen by somebody else."""
    gate = Gate(root)
    gate.before()
    gate.after(record("COPY-001", "fail", message=said, repro=said))
    file = write_findings(root / "findings.json", finding(said, message=said))
    xml = ElementTree.Element("testsuite")
    shown = re.sub("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", said)
    case = ElementTree.SubElement(xml, "testcase", name=shown[:5000] or "x", classname=shown[:50])
    ElementTree.SubElement(case, "failure", message=shown).text = shown
    (gate.candidate / "extra-sim.xml").write_bytes(ElementTree.tostring(xml))
    gate.before(lane="odd-sim")
    (odd,) = gate.after(lane="odd-sim", cannot_load=said)
    odd.write_bytes(odd.read_bytes().replace(b'"complete": true', b'"complete": false'))
    status, found = gate.run("--findings", file)
    assert status == Exit.FINDINGS
    assert len(found.checks) == 2
    assert "did not come up" in found.lanes[-1].problems[0]
    return found


@pytest.fixture(params=HOSTILE)
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> Verdict:
    return judged(tmp_path, HOSTILE[request.param])


def outside_of_code(rendered: str) -> str:
    """Markdown without its code blocks and spans, as GitHub (CommonMark) finds them."""
    rest: list[str] = []
    fence = ""
    for line in rendered.split("\n"):
        mark = re.match(r" {0,3}(`{3,})(.*)", line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark and "`" not in mark[2]:
            fence = mark[1]
        else:
            rest.append(line)
    assert not fence, "a code block is left open"
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", "\n".join(rest))


def test_nothing_becomes_markdown(hostile: Verdict) -> None:
    rendered = markdown.render(hostile)
    assert len(rendered.encode()) <= markdown.LIMIT
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", rendered
    )
    rest = outside_of_code(rendered)
    tags = set(re.findall(r"</?([a-zA-Z!][\w-]*)", rest))
    assert tags <= {"details", "summary", "sub"}
    assert rest.count("<details>") == rest.count("</details>")
    assert not re.search(r"(?<!\w)@\w|\]\(|!\[|(?<![&\w])#\d|https?://|GH-\d|pwned\s*$", rest)


def test_nothing_becomes_a_workflow_command(
    hostile: Verdict, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    capsys.readouterr()
    print(text.render(hostile), end="")
    annotate.show(hostile)
    lines = re.split(r"[\n\r]", capsys.readouterr().out)
    commands = [line for line in lines if line.lstrip().startswith("::")]
    assert len(commands) == 1 + len(hostile.checks)
    for command in commands:
        assert re.match(r"::(error|warning) title=[^:,]*::", command)
    assert "##[" not in "\n".join(line for line in lines if line not in commands)
    assert all(line.isprintable() for line in lines)


def test_nothing_becomes_another_test_case(hostile: Verdict) -> None:
    root = defusedxml.ElementTree.fromstring(junit.render(hostile).encode(), forbid_dtd=True)
    cases = list(root.iter("testcase"))
    assert len(cases) == len(hostile.lanes) + len(hostile.checks)
    assert len(list(root.iter("failure"))) == len(hostile.checks)
    for suite in root.iter("testsuite"):
        assert suite.get("tests") == str(len(list(suite.iter("testcase"))))


def test_nothing_leaves_its_place_in_sarif(hostile: Verdict) -> None:
    rendered = sarif.render(hostile)
    assert rendered.isascii()
    (run,) = json.loads(rendered)["runs"]
    assert len(run["results"]) == len(hostile.checks)
    for result in run["results"]:
        assert result["message"]["text"].isprintable()
        rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]


def sarif_of(gate: Gate, *words: str) -> Any:
    """The one run of the log."""
    file = gate.root / "gate.sarif"
    gate.run("--sarif", str(file), *words)
    (run,) = json.loads(file.read_text())["runs"]
    return run


ALL_KINDS = (
    ("fail", "pass"),
    ("pass", "fail"),
    ("pass", "xfail"),
    ("pass", "blocked_upstream"),
    ("pass", "unsupported"),
    ("xfail", "xpass"),
    ("pass", "flaky"),
    ("fail", "fail"),
)


def test_sarif_has_no_result_for_a_check_that_is_well(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    gate.before(*(record("COPY-002", old, n) for n, (old, _) in enumerate(ALL_KINDS)))
    new = [record("COPY-002", new, n) for n, (_, new) in enumerate(ALL_KINDS)]
    gate.after(*new, record("COPY-003"))
    run = sarif_of(gate)
    found = {result["properties"]["class"]: result["level"] for result in run["results"]}
    assert found == {
        **dict.fromkeys(("new_failure", "withdrawn", "unexpected_pass"), "error"),
        **dict.fromkeys(("flaky", "broken_trunk"), "note"),
    }


def test_a_rule_of_sarif_is_a_requirement_and_leads_to_its_source(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    gate.before()
    gate.after(record("COPY-001", "fail"), record("DEV-001", "fail"))
    run = sarif_of(gate)
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert rules.keys() == {"COPY-001", "DEV-001"}
    assert "MUST come back" in rules["COPY-001"]["shortDescription"]["text"]
    assert all(rule["helpUri"].startswith("https://") for rule in rules.values())


def test_sarif_names_only_files_of_the_repository_that_it_is_shown_in(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    gate.before()
    gate.after(record("COPY-001", "fail"))
    here = Path(__file__).parents[3]
    for words in ((), ("--sarif-root", str(tmp_path)), ("--sarif-root", str(tmp_path / "none"))):
        (result,) = sarif_of(gate, *words)["results"]
        (location,) = result["locations"]
        assert location.keys() == {"logicalLocations"}
    (result,) = sarif_of(gate, "--sarif-root", str(here))["results"]
    place = result["locations"][0]["physicalLocation"]
    lines = (here / place["artifactLocation"]["uri"]).read_text().splitlines()
    assert lines[place["region"]["startLine"] - 1].strip() == "COPY-001:"


def test_a_result_of_another_runner_has_what_happened_for_a_rule(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    case = '<testcase classname="a" name="{}" time="0.1">{}</testcase>'
    failing = case.format("f", "<failure/>")
    (gate.candidate / f"{LANE}.xml").write_text(f"<testsuite>{failing}</testsuite>")
    run = sarif_of(gate)
    assert [result["ruleId"] for result in run["results"]] == ["new_failure"]
    assert run["tool"]["driver"]["rules"][0]["id"] == "new_failure"


def test_junit_has_the_times_of_the_runs_and_the_durations_of_the_checks(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    gate.before()
    gate.after(record("COPY-001", "fail", duration_s=2.5), shards=2)
    file = tmp_path / "gate.xml"
    gate.run("--junit", str(file))
    (suite,) = defusedxml.ElementTree.fromstring(file.read_text())
    cases = {case.get("name"): float(case.get("time", "nan")) for case in suite.iter("testcase")}
    assert cases == {"the result is usable": 3.0, synthetic.check_id("COPY-001"): 2.5}
    assert suite.get("timestamp") == "2026-11-20T12:00:00+00:00"
    assert float(suite.get("time", "nan")) == 5.5


def test_a_summary_is_readable_without_github(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    gate.before(torch={"version": "2.13.0+cpu", "git": None})
    gate.after(torch={"version": "2.13.0+cpu", "git": None}, shards=2)[0].unlink()
    summary = tmp_path / "summary.md"
    gate.run("--summary", str(summary))
    said = summary.read_text()
    assert "2.13.0+cpu" in said and "these are not the shards of one run" in said
    assert "&#" not in said


def test_a_verdict_is_the_same_after_a_journey(hostile: Verdict) -> None:
    assert verdict.parse(verdict.render(hostile).encode(), "x") == hostile


def test_the_summary_says_what_a_reviewer_wants_to_know(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    gate.before(record("DEV-001", "fail"))
    failing = record("COPY-001", "fail", message="c10::Allocator::copy_data: 3 of 5 differ\nmore")
    gate.after(failing, record("DEV-001", "fail"), shards=2)
    gate.after(failing, record("DEV-001", "fail"), lane="extra-sim")
    file = write_findings(tmp_path / "findings.json", finding("c10::Allocator::copy_data"))
    summary = tmp_path / "summary.md"
    gate.run("--findings", file, "--summary", str(summary), "--head-sha", "f" * 40)
    said = summary.read_text()
    assert "\u274c regression" in said
    assert f"- `{failing['id']}` (COPY-001)" in said
    assert "on `development-sim`: new failure, pass \u2192 fail" in said
    assert "fails since `c10::Allocator::copy_data` has become pure virtual" in said
    assert "`c10::Allocator::copy_data: 3 of 5 differ`" in said
    assert "already bad" in said
    assert "f" * 40 in said


def test_checks_that_end_alike_in_several_lanes_are_told_once(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    for lane in (LANE, "extra-sim"):
        gate.before(lane=lane)
        gate.after(record("COPY-001", "fail"), lane=lane)
    _, made = gate.run()
    rendered = markdown.render(made)
    assert len(made.checks) == 2
    assert rendered.count("new failure, pass") == 1
    assert "on `development-sim`, `extra-sim`" in rendered


def test_what_regressed_where_it_decides_nothing_is_said_to_decide_nothing(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    gate.before(lane="extra-sim")
    gate.after()
    gate.after(record("COPY-001", "fail"), lane="extra-sim")
    status, made = gate.run()
    assert status == Exit.OK
    rendered = markdown.render(made)
    assert "### Regressions that decide nothing" in rendered
    assert "### Regressions\n" not in rendered
    assert [level for level, _, _ in annotate.remarks(made)] == ["warning"]
    assert "(pass -> fail) on extra-sim (decides nothing)" in text.render(made)


def test_a_summary_that_has_no_room_says_how_much_is_left_out(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    gate.after(*(record("COPY-001", "fail", n, message="long " * 300) for n in range(200)))
    _, made = gate.run()
    rendered = markdown.render(made, 20_000)
    assert len(rendered.encode()) <= 20_000
    assert re.search(r"\.\.\. and \d+ more checks; all are in the verdict", rendered)
    outside_of_code(rendered)


def test_outside_of_a_workflow_there_are_no_annotations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    gate = Gate(tmp_path)
    gate.after(record("COPY-001", "fail"))
    gate.run("--annotations")
    assert "::" not in capsys.readouterr().out
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    gate.run("--annotations")
    assert "::error title=new failure%3A copy/copy_001%3Ac0::" in capsys.readouterr().out


def test_a_repeated_gate_writes_the_same_bytes(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    gate.before()
    gate.after(record("COPY-001", "fail"), shards=3)
    names = ["summary", "junit", "sarif"]
    files = [gate.output, *(tmp_path / name for name in names)]
    words = [word for name in names for word in (f"--{name}", str(tmp_path / name))]
    gate.run(*words)
    first = [file.read_bytes() for file in files]
    gate.run(*words)
    assert [file.read_bytes() for file in files] == first


FORGED: dict[str, tuple[Any, str]] = {
    "green": (lambda v: v.update(outcome="ok"), "it is not ok by its configurations"),
    "a green lane": (lambda v: v["lanes"][0].update(outcome="ok"), "is not ok by its problems"),
    "no regression": (lambda v: v["lanes"][0]["means"].clear(), "is not regression by"),
    "no required lane": (lambda v: v["lanes"][0].update(required=False), "it is not regression"),
    "no lanes": (lambda v: v.update(lanes=[]), "it is not regression by its configurations"),
    "nothing at all": (
        lambda v: v.update(lanes=[], checks=[], left_out=0, outcome="ok"),
        "it is not ok by its configurations",
    ),
    "a lane twice": (lambda v: v["lanes"].append(v["lanes"][0]), "a configuration is there twice"),
    "a check of no lane": (
        lambda v: v["checks"][0].update(lane="x"),
        "a check is of an unknown configuration",
    ),
    "fewer checks": (lambda v: v["checks"].clear(), "the number of checks"),
    "an unknown finding": (
        lambda v: v["checks"][0]["since"].append({"finding": "0" * 16, "by": "name"}),
        "a finding that is not listed",
    ),
    "another commit": (lambda v: v.update(head_sha="main"), "head_sha"),
    "another key": (lambda v: v.update(number=7), "number"),
    "another version": (lambda v: v.update(schema_version=2), "schema_version"),
    "a long text": (
        lambda v: v["checks"][0].update(message="x" * 5000),
        "checks[0].message: expected `str` of length <= 4000",
    ),
    "no text": (
        lambda v: v["checks"][0].update(message=None),
        "checks[0].message: expected `str`, got `null`",
    ),
    "a lane's name": (
        lambda v: v["lanes"][0].update(name="../x"),
        "lanes[0].name: expected `str` matching",
    ),
    "negative": (lambda v: v.update(left_out=-1), "left_out: expected `int` >= 0, not -1"),
    "a truth for a number": (
        lambda v: v.update(left_out=True),
        "left_out: expected `int`, got `bool`",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_verdict_is_refused(tmp_path: Path, name: str) -> None:
    gate = Gate(tmp_path)
    gate.before()
    gate.after(record("COPY-001", "fail"))
    gate.run()
    document = json.loads(gate.output.read_bytes())
    edit, words = FORGED[name]
    edit(document)
    with pytest.raises(CiError, match=re.escape(words)):
        verdict.parse(json.dumps(document).encode(), "artifact")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"outcome": NaN}', "NaN"),
        (b" " * (verdict.MAX_BYTES + 1), "larger than"),
        (b"null", "expected `object`, got `null`"),
    ],
    ids=["empty", "not UTF-8", "deep", "NaN", "large", "null"],
)
def test_what_is_no_verdict_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(CiError, match=words):
        verdict.parse(data, "artifact")


@pytest.mark.parametrize("value", ["main", "a" * 39, "A" * 40, "--help", "a" * 40 + "\n"])
def test_a_commit_is_forty_digits(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["gate", "--candidate", "x", f"--head-sha={value}"])
    assert ended.value.code == Exit.UNUSABLE
    assert "not a full commit" in capsys.readouterr().err
