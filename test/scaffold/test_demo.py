# SPDX-License-Identifier: BSD-3-Clause
"""The live demonstration: its transcript is that of a real run, and its picture is of it."""

from __future__ import annotations

import re
from pathlib import Path

import demo
import picture
import pytest
import yaml
from scaffolding import ROOT, written

LINES = demo.TRANSCRIPT.read_text().splitlines()
NUMBER = re.compile(r"\d[\d.,]*")


def without_numbers(lines: list[str]) -> list[str]:
    """Times and counts differ between machines; so do steps, bars and names of the compiler."""
    kept = (line for line in lines if not line.startswith("stream"))
    return [re.sub(r"=+|\(.*\)", "", NUMBER.sub("N", line)) for line in kept]


def missing(lines: list[str]) -> list[int]:
    """How many operators had no kernel, from the first look to the last."""
    return [int(line.split()[0]) for line in lines if line.endswith("have no kernel yet")]


def test_the_picture_is_of_the_transcript() -> None:
    assert picture.PICTURE.read_text() == picture.drawn(LINES)


def test_the_picture_has_every_word_of_the_transcript() -> None:
    drawn = picture.PICTURE.read_text()
    for line in LINES:
        for word in re.findall(r"[A-Za-z_]{4,}", line):
            assert word in drawn


def test_readme_shows_the_picture() -> None:
    assert "](docs/demo.svg)" in (ROOT / "README.md").read_text()


def test_each_kernel_of_the_transcript_shortens_the_list() -> None:
    counts = missing(LINES)
    assert len(counts) == len(demo.KERNELS) + 1
    assert counts == sorted(set(counts), reverse=True)


def test_a_kernel_is_one_of_the_contract_and_gets_a_function_and_a_row(tmp_path: Path) -> None:
    repository = written(tmp_path / "mychip")
    contract = yaml.safe_load((repository / "csrc/hal/kernels.yaml").read_text())
    known = {name for family in contract["families"].values() for name in family["kernels"]}
    for kernel in demo.KERNELS:
        demo.add(kernel, repository, demo.Terminal())
        assert kernel.name in known
    text = (repository / "csrc/drivers/host/kernels.cpp").read_text()
    for kernel in demo.KERNELS:
        assert text.count(kernel.function) == text.count(kernel.row) == 1


def test_a_command_that_fails_ends_the_demonstration_with_what_it_said(tmp_path: Path) -> None:
    shell = demo.Shell(tmp_path, demo.Terminal())
    with pytest.raises(demo.Failed, match="no reason"):
        shell.run("echo no reason; exit 3", demo.matching("."))


@pytest.mark.nightly
def test_the_demonstration_runs_as_its_transcript_says(tmp_path: Path) -> None:
    lines = demo.demonstrate(tmp_path / "demo")
    assert without_numbers(lines) == without_numbers(LINES)
    counts = missing(lines)
    assert counts == sorted(set(counts), reverse=True)
    assert (tmp_path / "demo" / lines[-1].strip()).is_file()
