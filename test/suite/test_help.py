# SPDX-License-Identifier: BSD-3-Clause
"""What messages point to is in the package."""

from __future__ import annotations

import re

import pytest

from torch_conformance import PACKAGE
from torch_conformance.cli import main
from torch_conformance.cli.topics import find, topics

SMOKE = PACKAGE / "checks" / "smoke.py"
POINTER = re.compile(r"torch_conformance help ([a-z-]+)")


def test_a_topic_is_printed_by_a_part_of_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "descriptor"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("## The descriptor\n")
    assert "`deadlines.startup`" in text
    assert main(["help", "walkthrough-memory"]) == 0
    assert capsys.readouterr().out.startswith("# 03 ")


def test_without_a_topic_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    assert capsys.readouterr().out.split() == list(topics())


@pytest.mark.parametrize(
    ("name", "text"),
    [("nosuch", "there is no such topic: "), ("walkthrough", "several topics have this in")],
)
def test_a_name_that_means_no_topic_or_several_is_refused(
    name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["help", name]) == 4
    assert text in capsys.readouterr().err


def test_every_message_points_to_a_topic() -> None:
    sources = [file.read_text() for file in PACKAGE.rglob("*.py")]
    names = {name for source in sources for name in POINTER.findall(source)}
    chapters = set(re.findall(r'^    "([a-z]+)",$', SMOKE.read_text(), re.MULTILINE))
    names |= {f"walkthrough-{chapter}" for chapter in chapters}
    names.discard("walkthrough-")
    assert len(names) > 5
    assert {name: len(find(name)) for name in names} == dict.fromkeys(names, 1)


def test_no_message_points_to_a_file_that_an_installation_lacks() -> None:
    for file in PACKAGE.rglob("*.py"):
        if file.parent.name != "topics":
            assert not re.search(r"README\.md|\(walkthrough|docs/\S+\.md", file.read_text()), file
