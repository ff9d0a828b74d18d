# SPDX-License-Identifier: BSD-3-Clause
"""The JSON Schemas beside the classes: ``python -m torch_conformance.schemas`` writes them.

They are for others: editors, and programs in other languages. The suite itself validates by the
classes.
"""

from __future__ import annotations

from pathlib import Path

from torch_conformance import PACKAGE
from torch_conformance.expectations import document as expectations
from torch_conformance.results import bundle, report
from torch_conformance.spec import descriptor
from torch_conformance.spec.typed import schema

DESCRIPTOR = PACKAGE / "spec" / "descriptor.schema.json"
EXPECTATIONS = PACKAGE / "expectations" / "expectations.schema.json"
REPORT = PACKAGE / "results" / "report.schema.json"
BUNDLE = PACKAGE / "results" / "bundle.schema.json"


def texts() -> dict[Path, str]:
    """Every schema by its file."""
    return {
        DESCRIPTOR: schema(descriptor.Document, descriptor.SCHEMA),
        EXPECTATIONS: schema(expectations.Document, expectations.SCHEMA),
        REPORT: schema(report.Report, report.SCHEMA),
        BUNDLE: schema(bundle.Manifest, bundle.SCHEMA),
    }


if __name__ == "__main__":
    for file, text in texts().items():
        file.write_text(text, encoding="utf-8")
