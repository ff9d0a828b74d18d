# SPDX-License-Identifier: BSD-3-Clause
"""The JSON Schemas of all documents that these tools read and write.

`python -m torch_backend_ci.schemas` makes them from the classes of the documents. Those
of the dashboard are in a directory of their own, as its site has them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SUFFIX = ".schema.json"


def file(name: str) -> Path:
    """Where the schema of a document is: of `pin`, or of `dashboard:run`."""
    return FOLDER / (name.replace(":", "/") + SUFFIX)


def load(name: str) -> dict[str, Any]:
    """The schema of a document."""
    found: dict[str, Any] = json.loads(file(name).read_text(encoding="utf-8"))
    return found
