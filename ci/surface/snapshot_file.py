# SPDX-License-Identifier: BSD-3-Clause
"""Snapshots as files: JSON with one declaration per line, gzipped if the name ends with .gz.

schema/snapshot.schema.json is the full description. Reading checks the frame and the types of
every field by hand, because a snapshot has ten thousand declarations and a diff reads two.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from ci import output
from ci.errors import CiError
from ci.surface.model import SCHEMA_VERSION, Declaration, Domain, Snapshot, Torch

FORMAT = "puone-surface-snapshot"

_TEXTS = ("kind", "name", "surface", "text", "file")
_ORDER = {domain: place for place, domain in enumerate(Domain)}


def order(declaration: Declaration) -> tuple[int, str, str, str]:
    """Declarations stand in this order."""
    facts = json.dumps(declaration.facts, sort_keys=True)
    return (_ORDER[declaration.domain], declaration.name, declaration.kind, facts)


def dumps(snapshot: Snapshot) -> str:
    """The text of a snapshot, the same for equal snapshots."""
    head = {
        "format": FORMAT,
        "schema": SCHEMA_VERSION,
        "torch": {
            "version": snapshot.torch.version,
            "git_version": snapshot.torch.git_version,
        },
        "domains": [d.value for d in Domain if d in snapshot.domains],
    }
    lines = ",\n".join(map(_line, snapshot.declarations))
    return f'{json.dumps(head)[:-1]}, "declarations": [\n{lines}\n]}}\n'


def _line(declaration: Declaration) -> str:
    fields = {
        "domain": declaration.domain.value,
        **{name: getattr(declaration, name) for name in _TEXTS},
        "line": declaration.line,
        "facts": dict(declaration.facts),
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def loads(text: str, where: str) -> Snapshot:
    """Read it back; CiError, with `where` in it, for anything that is not a snapshot."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise CiError(f"{where} is not a snapshot, or was cut off: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise CiError(f"{where} is not a snapshot of a surface")
    if data.get("schema") != SCHEMA_VERSION:
        raise CiError(
            f"{where} has version {data.get('schema')} of the format and this program reads "
            f"{SCHEMA_VERSION}; take the snapshot again"
        )
    try:
        return Snapshot(
            Torch(_text(data["torch"]["version"]), data["torch"]["git_version"]),
            frozenset(map(Domain, data["domains"])),
            tuple(map(_declaration, data["declarations"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CiError(f"{where} is a damaged snapshot: {error!r}") from error


def _declaration(fields: dict[str, Any]) -> Declaration:
    line, facts = fields["line"], fields["facts"]
    if not isinstance(line, int) or not isinstance(facts, dict):
        raise TypeError(f"line and facts of {fields.get('name')}")
    kind, name, surface, text, file = (_text(fields[field]) for field in _TEXTS)
    return Declaration(Domain(fields["domain"]), kind, name, surface, text, file, line, facts)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not a text: {value!r}")
    return value


def read(path: Path) -> Snapshot:
    """Read a snapshot file, gzipped or not."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise CiError(f"{path} cannot be read as a snapshot: {error}") from error
    return loads(text, str(path))


def write(snapshot: Snapshot, path: Path) -> None:
    """Write it, whole or not at all."""
    data = dumps(snapshot).encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    output.write(path, data)
