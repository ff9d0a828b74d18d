# SPDX-License-Identifier: BSD-3-Clause
"""The examples of `gate` in its document are what the command prints, its tables are complete."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from gating import Gate, finding, write_findings
from synthetic import record

from torch_backend_ci.cli import main
from torch_backend_ci.errors import Exit
from torch_backend_ci.gate import inputs, policy
from torch_backend_ci.gate.report.words import TITLES

ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "ci" / "gate.md").read_text()
MESSAGE = "c10::Allocator::copy_data: the copy on the device differs: 3 of 5 elements"


def transcripts() -> list[tuple[str, str]]:
    """Command and output of each example."""
    found = re.findall(
        r"```console\n\$ (torch-backend-ci gate .*?)\n(.*?)```\n", DOCUMENT, re.DOTALL
    )
    return [(command.replace("\\\n", ""), output) for command, output in found]


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """What the document says that there is."""
    made = Gate(tmp_path)
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```yaml\n(lanes:.*?)```\n", DOCUMENT, re.DOTALL)
    made.policy.write_text(example)
    made.before(record("DEV-001", "xfail"), record("STREAM-001", "fail"))
    failing = record("COPY-001", "fail", message=MESSAGE, repro="import torch")
    made.after(failing, record("STREAM-001", "fail"), shards=2)
    write_findings(tmp_path / "findings.json", finding("c10::Allocator::copy_data"))
    return made


def test_gate_prints_what_its_document_shows(
    gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    (regressed, shown), (lost, shown_then) = transcripts()
    assert main(shlex.split(regressed)[1:]) == Exit.FINDINGS
    assert capsys.readouterr().out == shown
    (gate.candidate / "development-sim" / "2.json").unlink()
    assert main(shlex.split(lost)[1:]) == Exit.UNUSABLE
    assert capsys.readouterr().out == shown_then


def test_every_class_is_explained() -> None:
    explained = re.findall(r"^\| `(\w+)` \| \w+", DOCUMENT, re.MULTILINE)
    assert explained == [kind.value for kind in TITLES]


def test_the_documented_meanings_are_those_of_the_policy() -> None:
    rules = policy.load()
    for kind in TITLES:
        (said,) = re.findall(rf"^\| `{kind.value}` \| (\w+)", DOCUMENT, re.MULTILINE)
        assert said == rules.means(kind).value


@pytest.mark.parametrize(
    "file", sorted((ROOT / "ci" / "gate").glob("*.yaml")), ids=lambda file: file.name
)
def test_every_policy_in_this_repository_is_one(file: Path) -> None:
    assert any(lane.required for lane in policy.load(file).lanes.values())


def test_limits_in_the_document_are_those_of_the_code() -> None:
    assert f"{policy.Limits().report_mib} MiB" in DOCUMENT
    assert f"{inputs.MAX_DEPTH} levels" in DOCUMENT
