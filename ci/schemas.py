# SPDX-License-Identifier: BSD-3-Clause
"""The JSON Schemas of all documents, made from their classes: `python -m ci.schemas` writes them.

The class is the declaration; a schema tells others what it says.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ci import document
from ci.dashboard import pages

ROOT = Path(__file__).parents[1]


class Described(NamedTuple):
    """A document that has a schema."""

    name: str
    version: int
    kind: str  # module:class
    folder: str

    @property
    def file(self) -> Path:
        """The schema."""
        return ROOT / self.folder / f"{self.name.rpartition(':')[2]}.schema.json"

    @property
    def text(self) -> str:
        """The schema, as it follows from the class."""
        module, _, name = self.kind.partition(":")
        kind = getattr(importlib.import_module(module), name)
        return json.dumps(document.schema(kind, self.name, self.version), indent=2) + "\n"


def _of_pages() -> Iterator[Described]:
    """The documents of the dashboard, each declared by the module of its page."""
    for module in pages.modules():
        if kind := getattr(module, "Document", None):
            _, name = kind.__struct_config__.tag.removesuffix(":1").split(":dashboard:")
            yield Described(
                f"dashboard:{name}", 1, f"{module.__name__}:Document", "ci/dashboard/schema"
            )


DOCUMENTS = (
    Described("pin", 1, "ci.pin.file:PinFile", "ci/pin/schema"),
    Described("pins", 1, "ci.pin.show:Pins", "ci/pin/schema"),
    Described("matrix", 1, "ci.pin.show:Matrix", "ci/pin/schema"),
    Described("policy", 1, "ci.gate.policy:Policy", "ci/gate/schema"),
    Described("verdict", 1, "ci.gate.verdict:Verdict", "ci/gate/schema"),
    Described("plan", 1, "ci.label.plan:Plan", "ci/label/schema"),
    Described("dispatch", 1, "ci.relay.dispatch:Sent", "ci/relay/schema"),
    Described("callback", 1, "ci.relay.callback:Callback", "ci/relay/schema"),
    Described("baseline", 1, "ci.report.baseline:Sources", "ci/report/schema"),
    Described("feed", 1, "ci.feed.feed:Feed", "ci/feed/schema"),
    Described("findings", 1, "ci.surface.report.json:Findings", "ci/surface/schema"),
    Described("snapshot", 1, "ci.surface.snapshot_file:SnapshotFile", "ci/surface/schema"),
    Described("coupling", 1, "ci.surface.coupling.document:Coupling", "ci/surface/schema"),
    Described("gpu-results", 1, "bench.gpu.document:Results", "bench/gpu"),
    *_of_pages(),
)


def main() -> int:
    """Write each schema that is not as its class says."""
    for one in DOCUMENTS:
        if not one.file.exists() or one.file.read_text(encoding="utf-8") != one.text:
            one.file.parent.mkdir(parents=True, exist_ok=True)
            one.file.write_text(one.text, encoding="utf-8")
            sys.stdout.write(f"wrote {one.file.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
