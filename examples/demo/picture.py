# SPDX-License-Identifier: BSD-3-Clause
"""The picture of a transcript: docs/demo.svg, text that a browser can select.

python examples/demo/picture.py draws it again from transcript.txt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

PICTURE = Path(__file__).resolve().parents[2] / "docs/demo.svg"
WIDTH, LEFT, TOP, LINE, SIZE = 860, 16, 34, 17, 12
COLUMNS = 112
COLOURS = {"$ ": "#8ec07c", "# ": "#8a8f98", "--": "#fabd2f", "+ ": "#83c5f7"}
TEXT, BACKGROUND = "#d5d8de", "#1b1e24"


def drawn(lines: Sequence[str]) -> str:
    """The picture, an SVG document."""
    wrapped = list(_wrapped(lines))
    height = TOP + LINE * len(wrapped) + 12
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" font-family="monospace" font-size="{SIZE}">',
            "<title>A transcript of make demo</title>",
            "<!-- made by examples/demo/picture.py, not by hand -->",
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
            *_text(wrapped),
            "</svg>",
            "",
        ]
    )


def _wrapped(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(colour, text) of each line; what is too long goes on in the next one."""
    for line in lines:
        colour = COLOURS.get(line[:2], TEXT)
        for begin in range(0, max(len(line), 1), COLUMNS):
            yield colour, line[begin : begin + COLUMNS]


def _text(lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    for index, (colour, line) in enumerate(lines):
        y = TOP + LINE * index
        yield (
            f'<text x="{LEFT}" y="{y}" fill="{colour}" xml:space="preserve">{escape(line)}</text>'
        )


if __name__ == "__main__":
    transcript = Path(__file__).with_name("transcript.txt")
    PICTURE.write_text(drawn(transcript.read_text().splitlines()))
