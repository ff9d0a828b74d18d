# SPDX-License-Identifier: BSD-3-Clause
"""A badge is written for a level that was reached, and for nothing else."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import synthetic
from synthetic import record, replaced

from torch_conformance.cli import main
from torch_conformance.results import badge, levels

SVG = "{http://www.w3.org/2000/svg}"


def test_the_badge_names_level_and_torch_for_eyes_ears_and_servers(tmp_path: Path) -> None:
    report = synthetic.write(tmp_path / "a.json", synthetic.content(backend="<chip>"))
    assert main(["badge", str(report)]) == 0
    endpoint = json.loads((tmp_path / "a-badge.json").read_text())
    assert endpoint["schemaVersion"] == 1
    assert endpoint["message"] == "compile, torch 2.13.0"
    picture = ElementTree.parse(tmp_path / "a-badge.svg").getroot()
    assert picture.get("role") == "img"
    title = "PyTorch conformance of <chip>: compile, torch 2.13.0"
    assert (picture.findtext(f"{SVG}title"), picture.get("aria-label")) == (title, title)
    assert [node.text for node in picture.iter(f"{SVG}text")] == [
        endpoint["label"],
        endpoint["message"],
    ]


def test_a_remark_is_said_and_takes_the_colour() -> None:
    content = synthetic.content()
    verdict = levels.assess(synthetic.document(content).report)
    assert badge.endpoint("2.13.0", verdict)["color"] == badge.GREEN[1:]
    old = badge.endpoint("2.13.0", verdict, "3 days old")
    assert (old["message"], old["color"]) == (
        "compile, torch 2.13.0, 3 days old",
        badge.DULL[1:],
    )
    picture = badge.svg("mychip", "2.13.0", verdict, "3 days old")
    assert "3 days old" in picture
    assert badge.GREEN not in picture


@pytest.mark.parametrize("outcome", ["fail", "not_run", "xfail"])
def test_without_a_level_there_is_no_badge(
    outcome: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requirement = next(
        r.id for r in synthetic.requirements().values() if (r.level, r.tier) == ("must", "core")
    )
    report = synthetic.write(tmp_path / "a.json", replaced(record(requirement, outcome)))
    assert main(["badge", str(report)]) == 1
    assert "no badge: " in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [report]
    assert main(["level", str(report)]) == 1


def test_the_level_asked_for_decides_the_end_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requirement = next(
        r.id for r in synthetic.requirements().values() if (r.level, r.tier) == ("must", "training")
    )
    report = str(synthetic.write(tmp_path / "a.json", replaced(record(requirement, "crash"))))
    assert main(["level", report]) == 0
    assert main(["level", report, "--at-least", "inference"]) == 0
    assert main(["level", report, "--at-least", "training"]) == 1
    shown = capsys.readouterr().out
    assert "level of mychip: Inference" in shown
    assert f"{requirement} is broken (1 checks, such as" in shown
