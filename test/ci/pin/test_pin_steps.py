# SPDX-License-Identifier: BSD-3-Clause
"""What changes in PyTorch from each pin to the next newer one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from pin_index import PinIndex
from wheel_server import Behaviour, serving

from torch_backend_ci import cli
from torch_backend_ci.checkout import ROOT
from torch_backend_ci.errors import Exit
from torch_backend_ci.pin import file
from torch_backend_ci.surface.report import json as report_json


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The pins of this checkout."""
    root = tmp_path / "checkout"
    shutil.copytree(ROOT / file.IN_REPOSITORY, root / file.IN_REPOSITORY)
    return root


def run(root: Path, out: Path, *words: str) -> int:
    return cli.main(["pin", "steps", "--root", str(root), "-o", str(out), *words])


def test_each_pin_is_compared_with_the_next_newer_one(root: Path, tmp_path: Path) -> None:
    assert run(root, tmp_path / "out") == Exit.OK
    versions = [
        torch.version
        for name in ("oldest", "development", "newest")
        if (torch := file.read(name, root).torch)
    ]
    for before, after in pairwise(versions):
        report = report_json.read(tmp_path / "out" / f"{before}-{after}.json")
        assert [report.before.version, report.after.version] == [before, after]
        assert report.findings
        assert all(finding.severity.value != "cosmetic" for finding in report.findings)
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_two_pins_of_one_torch_are_no_step(root: Path, tmp_path: Path) -> None:
    same = replace(file.read("development", root), torch=file.read("oldest", root).torch)
    (root / file.place("development")).write_bytes(file.render(same))
    assert run(root, tmp_path / "out", "oldest", "development") == Exit.OK
    assert list((tmp_path / "out").iterdir()) == []


def test_a_torch_that_cannot_be_had_hinders_no_other(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "index").mkdir()
    with serving(Behaviour(tmp_path / "index")) as index:
        monkeypatch.setenv("PIN_INDEX_NIGHTLY_CPU", index.index())
        monkeypatch.setenv("PIP_RETRIES", "0")
        torch = PinIndex(index.behaviour).add("2.16.0.dev20260101+cpu")
        PinIndex(index.behaviour).remove(torch.version)
        pin = replace(file.read("nightly", root), torch=torch, unresolved=None)
        (root / file.place("nightly")).write_bytes(file.render(pin))
        cache = ("--cache", str(tmp_path / "cache"))
        assert run(root, tmp_path / "out", *cache) == Exit.UNUSABLE
    assert torch.version in capsys.readouterr().err
    assert len(list((tmp_path / "out").iterdir())) == 2
