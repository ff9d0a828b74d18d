# SPDX-License-Identifier: BSD-3-Clause
"""Findings of the surface in a store: documents by their digest."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion

from torch_backend_ci.errors import CiError
from torch_backend_ci.results import accept, layout
from torch_backend_ci.results.accept import Refused
from torch_backend_ci.surface.report import json as findings_json


def are_meant(document: Any) -> bool:
    """Whether a document wants to be findings, and no report."""
    return isinstance(document, dict) and "schema_version" in document


def verified(document: Any, name: str) -> str:
    """What the findings are of, in words; raises Refused if they are none."""
    try:
        report = findings_json.parse(document, name)
        for version in (report.before.version, report.after.version):
            accept.line(version)
    except CiError as error:
        raise Refused(str(error).removeprefix(f"{name}: ")) from None
    except InvalidVersion:
        raise Refused(
            f"its torch has version {version[:60]!r}, which is not valid for a Python package"
        ) from None
    count = len(report.findings)
    return f"{count} findings between torch {report.before.version} and {report.after.version}"


def put(store: Path, data: bytes) -> bool:
    """Store the bytes of a document; False if they are there already. CiError if they cannot be."""
    file = store / layout.FINDINGS / f"{hashlib.sha256(data).hexdigest()}.json.gz"
    if file.exists():
        return False
    try:
        layout.put(file, lambda part: part.write_bytes(gzip.compress(data, mtime=0)))
    except OSError as error:
        raise CiError(f"cannot write {file}: {error.strerror}") from error
    return True
