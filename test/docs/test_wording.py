# SPDX-License-Identifier: BSD-3-Clause
"""Documents, help texts, docstrings and comments are in plain English (wording.py, words.yaml)."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
import wording
from wording import Text

import torch_backend_ci.cli
import torch_conformance.cli
from torch_conformance.pytest_plugin.options import add_options


def assert_plain(texts: list[Text]) -> None:
    found = [problem for text in texts for problem in wording.avoidable(text)]
    assert not found, "\n" + "\n".join(found)


@pytest.fixture(scope="module")
def helps() -> list[Text]:
    """Of every command of the two command lines."""
    parsers = (torch_backend_ci.cli.parser(), torch_conformance.cli.parser())
    return [text for parser in parsers for text in wording.helps(parser)]


@pytest.mark.parametrize(
    "document", wording.documents(), ids=lambda file: file.relative_to(wording.ROOT).as_posix()
)
def test_a_document_is_in_plain_english(document: Path) -> None:
    assert_plain(list(wording.document(document)))


def test_docstrings_and_comments_are_in_plain_english() -> None:
    assert_plain([text for file in wording.sources() for text in wording.source(file)])


def test_help_is_in_plain_english(helps: list[Text]) -> None:
    assert_plain(helps)


def test_the_help_of_the_options_of_a_run_is_in_plain_english() -> None:
    parser = pytest.Parser(_ispytest=True)
    add_options(parser)
    options = parser.getgroup("conformance").options
    assert_plain([Text(str(option), 1, option.attrs().get("help", "")) for option in options])


def test_every_help_has_an_example_and_the_exit_codes(helps: list[Text]) -> None:
    commands = [text for text in helps if "usage: " in text.text]
    assert len(commands) > 30
    for command in commands:
        prog = command.source.removesuffix(" --help")
        assert command.text.count(f"{prog} ") > 1, f"{prog}: no example"
        assert "Exit status" in command.text or "Exit code" in command.text, prog


def test_a_word_to_avoid_is_found_where_it_stands() -> None:
    (problem,) = wording.avoidable(Text("a.md", 3, "One.\nLest it fails."))
    assert problem.startswith("a.md:4: 'Lest': write 'so that")


@pytest.mark.parametrize("text", ["there is no device", "it is no longer there", "no more"])
def test_ordinary_english_passes(text: str) -> None:
    assert not list(wording.avoidable(Text("a.md", 1, text)))


def test_code_in_a_document_keeps_its_words() -> None:
    (text,) = wording.document(wording.ROOT / "docs" / "glossary.md")
    assert "ci/pins" not in text.text


def test_helps_descend_into_sub_commands() -> None:
    top = argparse.ArgumentParser("tool")
    top.add_subparsers().add_parser("verb", description="a folder")
    assert [text.source for text in wording.helps(top)] == ["tool --help", "tool verb --help"]
