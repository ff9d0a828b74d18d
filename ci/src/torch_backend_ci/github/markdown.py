# SPDX-License-Identifier: BSD-3-Clause
"""GitHub's markdown from text that anybody may have chosen: test names, messages, paths.

Nothing such a text holds becomes HTML, a link, an image, a mention, a reference, a cell, or the end
of its own quotation, and what would be invisible or would turn the reading direction is shown. For
names and messages `code` and `block` are best: GitHub leaves those alone. Lengths are in bytes of
UTF-8, which is never less than what GitHub counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})  # categories of Unicode
_BREAK = "&#8203;"  # a zero-width space: what stands on both sides of it is no longer one word
# What means something wherever it stands; "_" but within a word; the name of an emoji; what begins
# a list or a heading, at the beginning. All else is left: a summary is also read in mails.
_MEANS = re.compile(
    r"[#$&*<>@\[\\\]^`{|}~]|(?<![^\W_])_|_(?![^\W_])|:(?=[a-z0-9_+-]+:)|\A[-+=]|(?<=\A\0)[.)]"
)
_MORE_LINES = 40  # bytes kept free for saying how many lines are left out


def code(text: str) -> str:
    """The text as an inline code span."""
    shown = visible(text)
    if not shown:
        return "(empty)"
    if "\\|" in shown:  # in a table, readers differ about whether that ends the cell
        return f"<code>{_inert(shown)}</code>"
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown.strip() and (shown[0] in " `" or shown[-1] in " `") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def block(text: str, language: str = "") -> str:
    """The text as a fenced code block; it must begin its line."""
    lines = [visible(line, keep="\t") for line in re.split(r"\r\n|\r|\n", text.rstrip("\r\n"))]
    fence = "`" * max(3, _longest_run("\n".join(lines)) + 1)
    return "\n".join([fence + language, *lines, fence])


def text(text: str) -> str:
    """The text as running text, in markdown and in HTML alike; line ends become blanks."""
    return _inert(visible(" ".join(re.split(r"[\r\n]+", text))).strip())


def link(label: str, url: str) -> str:
    """A link under a label that is markdown already; the label alone if it is not a web address."""
    if not re.fullmatch(r"https://[!-~]+", url):
        return label
    return f"[{label}](<{re.sub(r'[<>]', _percent, url).replace(chr(92), '%5C')}>)"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are markdown already."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def visible(text: str, keep: str = "") -> str:
    """Characters that one would not see, or that reorder others, as escapes: `\\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        ascii(c)[1:-1] if unicodedata.category(c) in _INVISIBLE and c not in keep else c
        for c in text
    )


def size(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def shorten(text: str, limit: int) -> str:
    """The text if it has no more than `limit` bytes, else its beginning and an ellipsis."""
    if size(text) <= limit:
        return text
    kept = text.encode("utf-8", "surrogatepass")[: max(limit - 3, 0)]
    return kept.decode("utf-8", "ignore") + "…"


def fit(pieces: Sequence[str], limit: int, noun: str) -> str:
    """As many of the pieces, one below the other, as have room; "... and N more <noun>"."""
    whole = "\n".join(pieces)
    if size(whole) <= limit:
        return whole
    room = limit - size(_more(len(pieces), noun))
    kept = 0
    for piece in pieces:
        room -= size(piece) + 1
        if room < 0:
            break
        kept += 1
    return "\n".join([*pieces[:kept], _more(len(pieces) - kept, noun)])


def cut(markdown: str, limit: int) -> str:
    """Markdown that may be too long (for 100 bytes or more): its first lines, open code closed."""
    if size(markdown) <= limit:
        return markdown
    lines = markdown.split("\n")
    room = limit - _MORE_LINES
    kept: list[str] = []
    fence = ""
    for line in lines:
        after = _fence_after(line, fence)
        needed = size(line) + 1
        if needed + (len(after) + 1 if after else 0) > room:
            break
        room -= needed
        kept.append(line)
        fence = after
    closing = [fence] if fence else []
    return "\n".join([*kept, *closing, "", _more(len(lines) - len(kept), "lines")])


def _inert(shown: str) -> str:
    """No character that means anything, no two together that GitHub makes a link of."""
    apart = re.sub(r"(?<=[@#])|(?<=:)(?=//)|(?<=www)(?=\.)|(?<=gh-)", "\0", shown, flags=re.I)
    number = re.match(r"\d{1,9}(?=[.)](?:\s|\Z))", apart)
    digits, rest = (number[0], "\0" + apart[number.end() :]) if number else ("", apart)
    encoded = _MEANS.sub(lambda mark: f"&#{ord(mark[0])};", rest)
    return digits + (encoded[1:] if number else encoded).replace("\0", _BREAK)


def _more(count: int, noun: str) -> str:
    return f"... and {count} more {noun}"


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open after a line before which `fence` was ("" for none)."""
    marks = re.match(r" {0,3}(`{3,}|~{3,})(.*)", line)
    if not marks:
        return fence
    if not fence:
        return "" if marks[1][0] == "`" and "`" in marks[2] else marks[1]
    closes = marks[1].startswith(fence) and not marks[2].strip()
    return "" if closes else fence


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def _cell(markdown: str) -> str:
    return re.sub(r"[\r\n]+", " ", markdown).replace("|", "\\|")


def _percent(mark: re.Match[str]) -> str:
    return f"%{ord(mark[0]):02X}"
