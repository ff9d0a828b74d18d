# SPDX-License-Identifier: BSD-3-Clause
"""The documents that messages of the suite point to, as they are in the package.

In a checkout the files are links to the README of the suite and to docs/walkthrough; a wheel has
copies. A topic is a section of the README, or a chapter of the walkthrough.
"""

from __future__ import annotations

import re
from pathlib import Path

DIRECTORY = Path(__file__).parent
README = DIRECTORY / "README.md"
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def topics() -> dict[str, str]:
    """The text of each topic, by name, in the order of the documents."""
    return {**_sections(README.read_text(encoding="utf-8")), **_chapters()}


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


def _chapters() -> dict[str, str]:
    return {
        f"walkthrough-{file.stem.partition('-')[2]}": file.read_text(encoding="utf-8").rstrip()
        for file in sorted(DIRECTORY.glob("[0-9]*.md"))
    }


def _slug(title: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))
