# SPDX-License-Identifier: BSD-3-Clause
"""The JSON Schemas beside the classes: ``python -m torch_conformance.results.schemas`` writes them.

They are for others: editors, and programs in other languages. The suite itself validates by the
classes.
"""

from __future__ import annotations

from pathlib import Path

from torch_conformance.results import bundle, report
from torch_conformance.spec.typed import schema

REPORT = Path(__file__).parent / "report.schema.json"
BUNDLE = Path(__file__).parent / "bundle.schema.json"


def texts() -> dict[Path, str]:
    """Every schema by its file."""
    return {
        REPORT: schema(report.Report, report.SCHEMA),
        BUNDLE: schema(bundle.Manifest, bundle.SCHEMA),
    }


if __name__ == "__main__":
    for file, text in texts().items():
        file.write_text(text, encoding="utf-8")
