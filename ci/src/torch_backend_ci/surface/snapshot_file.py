# SPDX-License-Identifier: BSD-3-Clause
"""Snapshots as files: JSON with one declaration per line, gzipped if the name ends with .gz.

Which facts a declaration may have says surface/facts.py.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from torch_backend_ci import document, output, untrusted
from torch_backend_ci.document import UNIQUE, DocumentError, Natural, Part, Sha, Text, once
from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.facts import FACTS
from torch_backend_ci.surface.model import SCHEMA_VERSION, Declaration, Domain, Snapshot, Torch
from torch_conformance.spec import strict

FORMAT = "puone-surface-snapshot"


class TorchPart(Part, frozen=True):
    """Which torch the snapshot is of."""

    version: str
    git_version: Sha | None


class Line(Part, frozen=True):
    """A declaration: one line of the file."""

    domain: Domain
    kind: str
    name: Annotated[Text, Meta(description="Qualified; overloads share it.")]
    surface: Annotated[Text, Meta(description="Of surface/surfaces.yaml.")]
    text: Annotated[str, Meta(description="For people, never compared.")]
    file: Annotated[str, Meta(pattern="^(?!/)", description="Relative to the torch tree.")]
    line: Natural
    facts: Mapping[str, Any]

    def __post_init__(self) -> None:
        kind = FACTS.get((self.domain, self.kind))
        if kind is None:
            raise ValueError(f"the domain {self.domain.value} has no kind {self.kind[:80]!r}")
        try:
            msgspec.convert(self.facts, kind)
        except msgspec.ValidationError as error:
            raise ValueError(f"facts of {self.name[:80]}: {error}") from None


class SnapshotFile(Part, frozen=True):
    """Snapshot of the surface of one PyTorch, one declaration per line.

    Written by `torch-backend-ci surface snapshot`.
    """

    also: ClassVar = tuple(dict.fromkeys(FACTS.values()))

    format: Literal["puone-surface-snapshot"]
    schema: Literal[1]
    torch: TorchPart
    domains: Annotated[
        tuple[Domain, ...],
        UNIQUE,
        Meta(description="That were looked at: without libraries at hand there is no symbol."),
    ]
    declarations: Annotated[tuple[Line, ...], Meta(description="By domain, name, kind and facts.")]

    def __post_init__(self) -> None:
        once("domains", self.domains)

    @staticmethod
    def describe(parts: dict[str, Any]) -> None:
        """Add to the schema which facts go with which kind."""
        parts["Line"]["oneOf"] = [
            {
                "properties": {
                    "domain": {"const": domain.value},
                    "kind": {"const": kind},
                    "facts": {"$ref": f"#/$defs/{facts.__name__}"},
                }
            }
            for (domain, kind), facts in FACTS.items()
        ]


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


def loads(data: bytes, where: str) -> Snapshot:
    """Read it back; CiError, with `where` in it, for anything that is not a snapshot."""
    try:
        value = strict.loads(data)
    except strict.Malformed as error:
        raise DocumentError(f"{where} is not a snapshot, or was cut off", str(error)) from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise CiError(f"{where} is not a snapshot of a surface")
    if value.get("schema") != SCHEMA_VERSION:
        raise CiError(
            f"{where} has version {value.get('schema')} of the format and this program reads "
            f"{SCHEMA_VERSION}; take the snapshot again"
        )
    found = document.convert(value, SnapshotFile, where)
    return Snapshot(
        Torch(found.torch.version, found.torch.git_version),
        frozenset(found.domains),
        tuple(map(_declaration, found.declarations)),
    )


def loads_unverified(text: str) -> Snapshot:
    """Read back what `dumps` wrote, in half the time; of a file that only we write."""
    value = json.loads(text)
    return Snapshot(
        Torch(**value["torch"]),
        frozenset(map(Domain, value["domains"])),
        tuple(Declaration(**{**d, "domain": Domain(d["domain"])}) for d in value["declarations"]),
    )


def _declaration(d: Line) -> Declaration:
    return Declaration(d.domain, d.kind, d.name, d.surface, d.text, d.file, d.line, d.facts)


def read(path: Path) -> Snapshot:
    """Read a snapshot file, gzipped or not."""
    try:
        data = untrusted.read(path, strict.MAX_BYTES)
    except strict.Malformed as error:
        raise DocumentError(f"{path} cannot be read as a snapshot", str(error)) from None
    return loads(data, str(path))


def write(snapshot: Snapshot, path: Path) -> None:
    """Write it, whole or not at all."""
    data = dumps(snapshot).encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    output.write(path, data)
