# SPDX-License-Identifier: BSD-3-Clause
"""Which documents have a schema: `python -m torch_backend_ci.schemas` writes them all.

The class is the declaration; a schema tells others what it says.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from typing import NamedTuple

from torch_backend_ci import document, schema
from torch_backend_ci.dashboard import pages


class Described(NamedTuple):
    """A document that has a schema."""

    name: str
    version: int
    kind: str  # module:class, in this package

    @property
    def text(self) -> str:
        """The schema, as it follows from the class."""
        module, _, name = self.kind.partition(":")
        kind = getattr(importlib.import_module(f"torch_backend_ci.{module}"), name)
        return render(kind, self.name, self.version)


def render(kind: type, name: str, version: int) -> str:
    """The text of a schema."""
    return json.dumps(document.schema(kind, name, version), indent=2) + "\n"


def _of_pages() -> Iterator[Described]:
    """The documents of the dashboard, each declared by the module of its page."""
    for module in pages.modules():
        if kind := getattr(module, "Document", None):
            _, name = kind.__struct_config__.tag.removesuffix(":1").split(":dashboard:")
            place = module.__name__.removeprefix("torch_backend_ci.")
            yield Described(f"dashboard:{name}", 1, f"{place}:Document")


DOCUMENTS = (
    Described("pin", 1, "pin.file:PinFile"),
    Described("pins", 1, "pin.show:Pins"),
    Described("matrix", 1, "pin.show:Matrix"),
    Described("policy", 1, "gate.policy:Policy"),
    Described("verdict", 1, "gate.verdict:Verdict"),
    Described("plan", 1, "label.plan:Plan"),
    Described("dispatch", 1, "relay.dispatch:Sent"),
    Described("callback", 1, "relay.callback:Callback"),
    Described("baseline", 1, "report.baseline:Sources"),
    Described("feed", 1, "feed.feed:Feed"),
    Described("findings", 1, "surface.report.json:Findings"),
    Described("snapshot", 1, "surface.snapshot_file:SnapshotFile"),
    Described("coupling", 1, "surface.coupling.document:Coupling"),
    *_of_pages(),
)


def main() -> int:
    """Write each schema that is not as its class says."""
    for one in DOCUMENTS:
        file = schema.file(one.name)
        if not file.exists() or file.read_text(encoding="utf-8") != one.text:
            file.parent.mkdir(exist_ok=True)
            file.write_text(one.text, encoding="utf-8")
            sys.stdout.write(f"wrote {file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
