# SPDX-License-Identifier: BSD-3-Clause
"""The feed as Atom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from torch_backend_ci import atom
from torch_backend_ci.atom import escaped
from torch_backend_ci.feed.entry import Entry, EntryFinding

TITLE = "Changes of PyTorch that out-of-tree backends should know of"


def render(entries: Sequence[Entry], home: str) -> bytes:
    """feed.atom."""
    address = f"{home}/raw/feed/feed.atom"
    updated = entries[0].merged_at if entries else atom.NEVER
    feed = atom.feed(address, TITLE, updated, author=home.rpartition("/")[2])
    atom.add(feed, "link", rel="self", type="application/atom+xml", href=address)
    atom.add(feed, "link", rel="alternate", type="text/html", href=home)
    for entry in entries:
        _entry(feed, entry)
    return atom.written(feed)


def _entry(feed: ElementTree.Element, entry: Entry) -> None:
    id = f"{entry.url}#{entry.commit}"
    element = atom.entry(feed, id, _title(entry), entry.merged_at)
    atom.add(element, "link", rel="alternate", type="text/html", href=entry.url)
    for label in entry.labels:
        atom.add(element, "category", term=label)
    atom.add(element, "content", "\n".join(_html(entry)), type="html")


def _title(entry: Entry) -> str:
    severity = _words(entry.severity or "touched")
    return f"[{severity}: {', '.join(_about(entry))}] {entry.title} (#{entry.pr})"


def _about(entry: Entry) -> list[str]:
    backend = ["reference backend"] if entry.reference_backend else []
    return [*entry.surfaces, *backend]


def _html(entry: Entry) -> Iterator[str]:
    if entry.reverts:
        yield f"<p>Takes back <code>{escaped(entry.reverts)}</code>.</p>"
    if not entry.judged:
        yield "<p>Its files were not compared with a torch: there may be findings.</p>"
    for finding in entry.findings:
        yield from _finding(finding)
    if entry.findings_left_out:
        yield f"<p>... and {entry.findings_left_out} more.</p>"
    if entry.reference_backend:
        files = "".join(f"<li><code>{escaped(f)}</code></li>" for f in entry.reference_backend)
        yield f"<p>Changes the reference backend:</p><ul>{files}</ul>"
    if entry.reference_backend_left_out:
        yield f"<p>... and {entry.reference_backend_left_out} more files.</p>"


def _finding(finding: EntryFinding) -> Iterator[str]:
    yield f"<h4>{_words(finding.severity)}: <code>{escaped(finding.name)}</code></h4>"
    yield f"<p>{escaped(finding.message)}</p>"
    sides = (("-", finding.before), ("+", finding.after))
    lines = [f"{sign} {escaped(text)}" for sign, text in sides if text is not None]
    if lines:
        yield f"<pre>{chr(10).join(lines)}</pre>"
    if finding.hint:
        yield f"<p>{escaped(finding.hint)}</p>"
    if finding.used_by:
        yield f"<p>Used by {escaped(', '.join(finding.used_by))}.</p>"


def _words(name: str) -> str:
    return name.replace("_", " ")
