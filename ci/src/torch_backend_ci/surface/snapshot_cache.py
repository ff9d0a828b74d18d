# SPDX-License-Identifier: BSD-3-Clause
"""Snapshots that were taken before, by what they were taken of and with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch_backend_ci.surface import kept, snapshot_file
from torch_backend_ci.surface.catalogue import Catalogue
from torch_backend_ci.surface.model import Snapshot
from torch_backend_ci.torch_tree import TorchTree

KEPT = 24  # snapshots, a few MB each

_HERE = Path(__file__).parent
CODE = (  # that decides what is in a snapshot
    *sorted((_HERE / "extract").rglob("*.py")),
    *(
        _HERE / f"{name}.py"
        for name in ("catalogue", "facts", "model", "snapshot", "snapshot_file")
    ),
)


def entry(folder: Path, tree: TorchTree, catalogue: Catalogue) -> Path:
    """Where the snapshot of a tree is kept."""
    key = kept.fingerprint(tree, CODE, tree.libraries is not None, repr(catalogue))
    return folder / "snapshots" / f"{tree.version}-{key}.json"


def get(path: Path) -> Snapshot | None:
    """The snapshot kept there; None for none, and for one that is damaged."""
    text = kept.get(path)
    return None if text is None else snapshot_file.loads_unverified(text)


def put(path: Path, snapshot: Snapshot, progress: Callable[[str], None]) -> None:
    """Keep a snapshot. A directory that refuses costs only time."""
    kept.put(path, snapshot_file.dumps(snapshot), KEPT, "the snapshot", progress)
