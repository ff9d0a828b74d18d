# SPDX-License-Identifier: BSD-3-Clause
"""The JSON Schemas of all documents: `python -m torch_backend_ci.schemas` writes them.

The class is the declaration; a schema tells others what it says.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from torch_backend_ci import document
from torch_backend_ci.checkout import ROOT
from torch_backend_ci.dashboard import pages


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
                f"dashboard:{name}",
                1,
                f"{module.__name__}:Document",
                "ci/src/torch_backend_ci/dashboard/schema",
            )


DOCUMENTS = (
    Described("pin", 1, "torch_backend_ci.pin.file:PinFile", "ci/src/torch_backend_ci/pin/schema"),
    Described("pins", 1, "torch_backend_ci.pin.show:Pins", "ci/src/torch_backend_ci/pin/schema"),
    Described(
        "matrix", 1, "torch_backend_ci.pin.show:Matrix", "ci/src/torch_backend_ci/pin/schema"
    ),
    Described(
        "policy", 1, "torch_backend_ci.gate.policy:Policy", "ci/src/torch_backend_ci/gate/schema"
    ),
    Described(
        "verdict", 1, "torch_backend_ci.gate.verdict:Verdict", "ci/src/torch_backend_ci/gate/schema"
    ),
    Described(
        "plan", 1, "torch_backend_ci.label.plan:Plan", "ci/src/torch_backend_ci/label/schema"
    ),
    Described(
        "dispatch",
        1,
        "torch_backend_ci.relay.dispatch:Sent",
        "ci/src/torch_backend_ci/relay/schema",
    ),
    Described(
        "callback",
        1,
        "torch_backend_ci.relay.callback:Callback",
        "ci/src/torch_backend_ci/relay/schema",
    ),
    Described(
        "baseline",
        1,
        "torch_backend_ci.report.baseline:Sources",
        "ci/src/torch_backend_ci/report/schema",
    ),
    Described("feed", 1, "torch_backend_ci.feed.feed:Feed", "ci/src/torch_backend_ci/feed/schema"),
    Described(
        "findings",
        1,
        "torch_backend_ci.surface.report.json:Findings",
        "ci/src/torch_backend_ci/surface/schema",
    ),
    Described(
        "snapshot",
        1,
        "torch_backend_ci.surface.snapshot_file:SnapshotFile",
        "ci/src/torch_backend_ci/surface/schema",
    ),
    Described(
        "coupling",
        1,
        "torch_backend_ci.surface.coupling.document:Coupling",
        "ci/src/torch_backend_ci/surface/schema",
    ),
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
