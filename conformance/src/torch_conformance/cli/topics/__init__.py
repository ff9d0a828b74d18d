# SPDX-License-Identifier: BSD-3-Clause
"""The documents that messages of the suite point to, as they are in the package.

In a checkout the files are links to the README of the suite and into docs; a wheel has copies. A
topic is a section of the README, a chapter of the walkthrough, or another document.
"""

from __future__ import annotations

import re
from pathlib import Path

DIRECTORY = Path(__file__).parent
README = DIRECTORY / "README.md"
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def topics() -> dict[str, str]:
    """The text of each topic, by name, in the order of the documents."""
    documents = {_name(file): _text(file) for file in _documents()}
    return {**_sections(_text(README)), **documents}


def find(name: str) -> list[str]:
    """The topics that a name means: the one of this name, else those that contain it."""
    names = list(topics())
    return [name] if name in names else [topic for topic in names if name in topic]


def _sections(text: str) -> dict[str, str]:
    _, *parts = _SECTION.split(text)
    titles, bodies = parts[::2], parts[1::2]
    return {
        _slug(title): f"## {title}{body}".rstrip()
        for title, body in zip(titles, bodies, strict=True)
    }


def _text(document: Path) -> str:
    """A document without the comments that only its tests read."""
    return re.sub(r"^<!-- .* -->\n", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE)


def _documents() -> list[Path]:
    return sorted(file for file in DIRECTORY.glob("*.md") if file != README)


def _name(document: Path) -> str:
    """The name of a document; chapters of the walkthrough have a number before theirs."""
    number, _, rest = document.stem.partition("-")
    return f"walkthrough-{rest}" if number.isdigit() else document.stem


def _slug(title: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))
