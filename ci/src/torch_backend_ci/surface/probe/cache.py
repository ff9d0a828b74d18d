# SPDX-License-Identifier: BSD-3-Clause
"""What the probe said of a torch before: a pin is asked again with every PR."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch_backend_ci.surface import kept, probe
from torch_backend_ci.surface.probe.result import Covered, Place, ProbeError, ProbeResult, Use
from torch_backend_ci.surface.snapshot_cache import CODE
from torch_backend_ci.torch_tree import TorchTree

KEPT = 24

_HERE = Path(__file__).parent
_CODE = (*CODE, *sorted(_HERE.rglob("*.py")), *sorted(_HERE.rglob("*.h")), probe.UNIT)


def known(tree: TorchTree, written_for: str, folder: Path) -> ProbeResult | None:
    """What `run` kept; None for nothing."""
    text = kept.get(_entry(tree, written_for, folder))
    return None if text is None else loads(text)


def run(
    tree: TorchTree, written_for: str, folder: Path, progress: Callable[[str], None]
) -> ProbeResult:
    """`probe.run`, or what it said when nothing of the torch and of the probe was different."""
    if (result := known(tree, written_for, folder)) is not None:
        return result
    result = probe.run(tree, written_for=written_for)
    path = _entry(tree, written_for, folder)
    kept.put(path, dumps(result), KEPT, "what the probe said", progress)
    return result


def _entry(tree: TorchTree, written_for: str, folder: Path) -> Path:
    key = kept.fingerprint(tree, _CODE, written_for)
    return folder / "probes" / f"{tree.version}-{key}.json"


def dumps(result: ProbeResult) -> str:
    """As JSON."""
    return json.dumps(asdict(result))


def loads(text: str) -> ProbeResult:
    """What `dumps` wrote."""
    told = json.loads(text)
    errors = tuple(_error(error) for error in told.pop("errors"))
    uses = tuple(_use(use) for use in told.pop("uses"))
    return ProbeResult(**told, errors=errors, uses=uses)


def _error(told: dict[str, Any]) -> ProbeError:
    told["place"] = Place(**told["place"])
    for name in ("notes", "unimplemented"):
        told[name] = tuple(told[name])
    return ProbeError(**told)


def _use(told: dict[str, Any]) -> Covered:
    for name in ("declared", "begin"):
        told[name] = Place(**told[name])
    return Covered(**{**told, "use": Use(told["use"])})
