# SPDX-License-Identifier: BSD-3-Clause
"""Examples of files in the documents are what the readers of such files take."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import yaml
from mutate import load as load_lies

from torch_conformance.expectations.file import Expectations
from torch_conformance.spec import descriptor

ROOT = Path(__file__).resolve().parents[2]


def block(document: str, beginning: str) -> str:
    """The text of the fenced block that begins so."""
    text = (ROOT / document).read_text()
    found = re.search(rf"^```\w+\n({re.escape(beginning)}.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert found is not None, beginning
    return found[1]


def test_the_smallest_descriptor_declares_a_backend(tmp_path: Path) -> None:
    file = tmp_path / "mychip.yaml"
    file.write_text(block("conformance/README.md", "device_type: mychip"))
    declared = descriptor.load(file)
    assert (declared.name, declared.device_type) == ("mychip", "mychip")


def test_the_expectations_of_the_example_are_read(tmp_path: Path) -> None:
    file = tmp_path / "known.yaml"
    file.write_text(block("conformance/README.md", "unsupported:"))
    entries = Expectations.load(file).entries
    assert {entry.expires for entry in entries if entry.expires} == {date(2027, 1, 31)}
    assert [entry.kind for entry in entries] == ["unsupported", "xfail", "xfail", "flaky"]


def test_the_exported_symbol_is_the_one_of_the_header() -> None:
    assert block("docs/hal.md", "puone_status") in (ROOT / "csrc/hal/hal.h").read_text()


def test_the_lie_of_the_example_can_be_planted(tmp_path: Path) -> None:
    example = block("test/liars/README.md", "guard_does_not_restore:")
    (tmp_path / "guards.yaml").write_text(example)
    (lie,) = load_lies(tmp_path).values()
    assert lie.requirements == tuple(yaml.safe_load(example)[lie.id]["requirements"])
    source = (ROOT / "csrc/runtime/guard.cpp").read_text()
    begin, end = lie.spot(source)
    assert source[begin:end] == "restoreCurrentDevice(device.index());"
