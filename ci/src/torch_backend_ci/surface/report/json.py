# SPDX-License-Identifier: BSD-3-Clause
"""The report for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, structs

from torch_backend_ci import document, untrusted
from torch_backend_ci.document import UNIQUE, Natural, Part, Text, once
from torch_backend_ci.errors import CiError
from torch_backend_ci.surface import model
from torch_backend_ci.surface.model import Domain, Severity
from torch_backend_ci.surface.report.report import Report
from torch_conformance.spec import strict

VERSION = 1


class Torch(Part, frozen=True):
    """One of the two torches."""

    version: Text
    git_version: str | None


class Declaration(Part, frozen=True):
    """How the declaration was, or is."""

    kind: str
    name: str
    surface: str
    text: Annotated[str, Meta(description="As it is written, for people.")]
    file: Annotated[str, Meta(description="Relative to the torch tree.")]
    line: Annotated[Natural, Meta(description="From 1; 0 where a line has no meaning.")]
    facts: Annotated[Mapping[str, Any], Meta(description="As in snapshot.schema.json.")]


class Finding(Part, frozen=True):
    """One classified difference between two torches."""

    identity: Annotated[
        str,
        Meta(
            pattern="^[0-9a-f]{16}$",
            max_length=16,
            description="The same for the same difference, wherever the declaration stands.",
        ),
    ]
    rule: Annotated[str, Meta(pattern="^[a-z][a-z0-9_]*$")]
    severity: Severity
    surface: Text
    domain: Domain
    name: Text
    message: Text
    before: Declaration | None
    after: Declaration | None
    concerns: Annotated[tuple[Literal["overriders", "callers", "registrars", "users"], ...], UNIQUE]
    hint: str | None
    used_by: Annotated[
        tuple[str, ...], UNIQUE, Meta(description="Known backends that use the declaration.")
    ]
    probe: Literal["agrees", "disagrees", "not_covered"] | None

    def __post_init__(self) -> None:
        once("concerns", self.concerns)
        once("used_by", self.used_by)


class Findings(Part, tag_field="schema_version", tag=VERSION, frozen=True):
    """What `torch-backend-ci surface diff` and `check` find."""

    before: Torch
    after: Torch
    not_compared: Annotated[
        tuple[Domain, ...],
        Meta(description="Domains that only one of the two was looked at for."),
    ]
    hidden: Annotated[Natural, Meta(description="How many cosmetic findings were left out.")]
    verdict: Annotated[str, Meta(description="Of a check the worst, in a line; else empty.")]
    notes: Annotated[tuple[str, ...], Meta(description="Of a check: what was judged and what not.")]
    findings: Annotated[tuple[Finding, ...], Meta(description="Worst first.")]
    not_covered: Annotated[
        tuple[str, ...],
        UNIQUE,
        Meta(description="Of a check: changed files of which no absence of findings is claimed."),
    ] = ()

    def __post_init__(self) -> None:
        once("not_covered", self.not_covered)


def render(report: Report) -> str:
    """The report as JSON, one line per finding."""
    head = document.plain(_document(report))
    lines = [json.dumps(finding, sort_keys=True) for finding in head.pop("findings")]
    body = ",\n".join(lines)
    findings = f"[\n{body}\n]" if lines else "[]"
    return json.dumps(head, indent=1)[:-2] + f',\n "findings": {findings}\n}}\n'


def read(path: Path) -> Report:
    """The report in a file; DocumentError if it is not one."""
    try:
        return decode(untrusted.read(path, strict.MAX_BYTES), str(path))
    except strict.Malformed as error:
        raise document.DocumentError(str(path), str(error)) from None


def decode(data: bytes, name: str) -> Report:
    """The report that these bytes are; DocumentError if they are none."""
    try:
        return parse(strict.loads(data), name)
    except strict.Malformed as error:
        raise document.DocumentError(name, str(error)) from None


def parse(value: Any, name: str) -> Report:
    """The report that plain values are; CiError if they are none."""
    version = value.get("schema_version") if isinstance(value, dict) else None
    if version is not None and version != VERSION:
        raise CiError(
            f"{name}: findings of schema version {version}; this is {VERSION}. "
            "Make the report anew with `surface diff --format json`."
        )
    return _report(document.convert(value, Findings, name))


#: What a finding of the model and one of the document have in common.
_SAME = tuple(
    name for name in Finding.__struct_fields__ if name not in {"identity", "before", "after"}
)


def _document(report: Report) -> Findings:
    return Findings(
        before=Torch(report.before.version, report.before.git_version),
        after=Torch(report.after.version, report.after.git_version),
        not_compared=report.not_compared,
        hidden=report.hidden,
        verdict=report.verdict,
        notes=report.notes,
        not_covered=report.not_covered,
        findings=tuple(map(_finding, report.findings)),
    )


def _finding(finding: model.Finding) -> Finding:
    return Finding(
        identity=finding.identity,
        before=_declaration(finding.before),
        after=_declaration(finding.after),
        **{name: getattr(finding, name) for name in _SAME},
    )


def _declaration(declaration: model.Declaration | None) -> Declaration | None:
    if declaration is None:
        return None
    return Declaration(*(getattr(declaration, name) for name in Declaration.__struct_fields__))


def _report(read: Findings) -> Report:
    return Report(
        before=model.Torch(read.before.version, read.before.git_version),
        after=model.Torch(read.after.version, read.after.git_version),
        findings=tuple(map(_found, read.findings)),
        not_compared=read.not_compared,
        hidden=read.hidden,
        verdict=read.verdict,
        notes=read.notes,
        not_covered=read.not_covered,
    )


def _found(read: Finding) -> model.Finding:
    return model.Finding(
        before=_declared(read.before, read.domain),
        after=_declared(read.after, read.domain),
        **{name: getattr(read, name) for name in _SAME},
    )


def _declared(read: Declaration | None, domain: Domain) -> model.Declaration | None:
    return model.Declaration(domain, **structs.asdict(read)) if read else None
