# SPDX-License-Identifier: BSD-3-Clause
"""What is not the document that it should be is refused, and the message says where and why."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import UNSET, Meta

from torch_backend_ci import document
from torch_backend_ci.document import DocumentError, Flag, Natural, Part, once, one_of, only_true


class Colour(Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Item(Part, frozen=True):
    """A part."""

    name: Annotated[str, Meta(pattern="^[a-z]+$", max_length=8)]
    colour: Colour
    loud: Flag = UNSET

    def __post_init__(self) -> None:
        only_true(self)


class Example(Part, frozen=True, tag_field="version", tag=1):
    """A document."""

    items: tuple[Item, ...]
    by_name: Mapping[Annotated[str, Meta(pattern="^[a-z]+$")], Item] = {}
    counts: Mapping[Annotated[str, one_of("red", "blue")], Natural] = {}
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        once("words", self.words)


ITEM = {"name": "a", "colour": "red"}
GOOD: dict[str, Any] = {"version": 1, "items": [ITEM, ITEM]}


def refused(value: Any) -> str:
    with pytest.raises(DocumentError) as caught:
        document.decode(json.dumps(value).encode(), Example, "f.json")
    return str(caught.value)


def test_a_document_is_read_and_written() -> None:
    made = document.decode(json.dumps(GOOD).encode(), Example, "f.json")
    assert made.items[1].colour is Colour.RED
    assert json.loads(document.dumps(made))["items"] == [ITEM, ITEM]
    assert document.decode(document.dumps(made).encode(), Example, "f.json") == made


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no choice": (
        {"items": [ITEM, ITEM | {"colour": "green"}]},
        "f.json: items[1].colour: 'green' is not one of: 'blue', 'red'",
    ),
    "another pattern": (
        {"items": [ITEM | {"name": "A"}]},
        "f.json: items[0].name: expected `str` matching regex '^[a-z]+$', not 'A'",
    ),
    "too long": (
        {"items": [ITEM | {"name": "a" * 9}]},
        "f.json: items[0].name: expected `str` of length <= 8, not 'aaaaaaaaa'",
    ),
    "another type": ({"items": 3}, "f.json: items: expected `array`, got `int`"),
    "a number in words": (
        {"counts": {"red": "1"}},
        "f.json: counts.red: expected `int`, got `str`",
    ),
    "true for a number": (
        {"counts": {"red": True}},
        "f.json: counts.red: expected `int`, got `bool`",
    ),
    "out of range": ({"counts": {"red": -1}}, "f.json: counts.red: expected `int` >= 0, not -1"),
    "an entry among many": (
        {"by_name": {**{chr(97 + n): ITEM for n in range(26)}, "q": ITEM | {"colour": 7}}},
        "f.json: by_name.q.colour: expected `str`, got `int`",
    ),
    "a key among many": (
        {"by_name": {"a": ITEM, "b": ITEM, "C": ITEM, "d": ITEM}},
        "f.json: by_name.C: expected `str` matching regex '^[a-z]+$', not 'C'",
    ),
    "a word with a line behind it": ({"counts": {"red\n": 1}}, "f.json: counts.red"),
    "an unknown key": (
        {"items": [ITEM | {"evil\x1b": 1}]},
        r"f.json: items[0]: unknown key 'evil\x1b'; known are: name, colour, loud",
    ),
    "a missing key": ({"items": [{}]}, "f.json: items[0]: the required key 'name' is missing"),
    "another version": ({"version": 2}, "f.json: version: 2 is not one of: 1"),
    "a flag that is false": (
        {"items": [ITEM | {"loud": False}]},
        "f.json: items[0]: loud: true, or left out",
    ),
    "something twice": ({"words": ["a", "a"]}, "f.json: words: 'a' stands there twice"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_with_its_place_and_what_is_allowed(case: str) -> None:
    change, message = WRONG[case]
    said = refused(GOOD | change)
    assert said.startswith(message)
    assert said.isprintable()


def test_a_document_without_its_version_is_refused() -> None:
    assert refused({"items": []}) == "f.json: the required key 'version' is missing"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "f.json: empty"),
        (b"{", "f.json: not JSON"),
        (b"[]", "f.json: expected `object`, got `array`"),
        (b"null", "f.json: expected `object`, got `null`"),
        (b'{"version": 1, "version": 1}', "f.json: key 'version' stands twice"),
        (b'{"version": NaN}', "f.json: NaN is not a number"),
        (b"[" * 1000, "f.json: nested deeper"),
        (b'{"items": ["\\ud800"]}', "f.json: half a character"),
        (b" " * 2049, "f.json: larger than 2 KiB"),
    ],
)
def test_what_two_readers_could_take_for_two_things_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        document.decode(data, Example, "f.json", 2048)
    assert str(caught.value).startswith(message)


def test_a_value_nested_deeper_than_python_likes_is_a_problem_and_no_crash() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(DocumentError):
        document.convert(GOOD | {"items": deep}, Example, "f.json")


YAML = b"""\
version: 1
items:
  - {name: a, colour: red}
  - name: b
    colour: green
"""


def test_of_yaml_the_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(YAML)
    with pytest.raises(DocumentError) as caught:
        document.read(file, Example)
    assert str(caught.value).startswith(f"{file}:5: items[1].colour: 'green' is not one of")
    assert (caught.value.line, caught.value.path) == (5, ("items", 1, "colour"))
    file.write_bytes(YAML.replace(b"green", b"blue"))
    assert document.read(file, Example).items[1].colour is Colour.BLUE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: &x 2\n", "line 2: not plain YAML: anchors and aliases are not allowed"),
        ("a: !!int 1\n", "line 1: not plain YAML: tags are not allowed"),
        ("a: 1\na: 2\n", "line 2: not plain YAML: key 'a' stands twice"),
        ("1: a\n", "line 1: not plain YAML: a key is not text (quote it)"),
        ("a: [", "line 1: not plain YAML"),
        ("[" * 50, "nested deeper than 24"),
        ("a: 0x_\n", "line 1: not plain YAML: '0x_' is not a number"),
        ("- a\n---\n- b\n", "not plain YAML"),
    ],
)
def test_yaml_has_no_liberties(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        document.decode_yaml(text.encode(), Example, "f.yaml")
    assert message in str(caught.value)


def test_only_a_regular_file_of_bounded_size_is_read(tmp_path: Path) -> None:
    file, link, pipe = tmp_path / "f.json", tmp_path / "link.json", tmp_path / "pipe.json"
    file.write_text(json.dumps(GOOD))
    link.symlink_to(file)
    os.mkfifo(pipe)
    assert document.read(file, Example).items
    for other in (link, pipe, tmp_path, tmp_path / "none.json"):
        with pytest.raises(DocumentError, match=str(other)):
            document.read(other, Example)
    with pytest.raises(DocumentError, match="larger than"):
        document.read(file, Example, 10)
