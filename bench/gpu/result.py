# SPDX-License-Identifier: BSD-3-Clause
"""The results file: filled step by step, so that a run that is killed leaves what it had."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench.gpu import page
from bench.gpu.outcome import NOT_RUN, Outcome
from bench.gpu.targets import judged

SCHEMA = "urn:torch-conformance:gpu-results:1"
NOT_YET = "not reached yet"


@dataclass
class Result:
    """What `file` says, beside the markdown of the same name."""

    file: Path
    value: dict[str, Any] = field(default_factory=dict)

    def start(
        self,
        machine: dict[str, Any],
        source: dict[str, Any],
        steps: dict[str, str],
        rehearsal: bool,
    ) -> None:
        """Begin with every step (name: what it does) not run."""
        self.value = {
            "schema": SCHEMA,
            "complete": False,
            "rehearsal": rehearsal,
            "started": now(),
            "seconds": 0.0,
            "machine": machine,
            "source": source,
            "steps": [
                {"name": name, "does": does, **_step(Outcome(NOT_RUN, NOT_YET), 0.0)}
                for name, does in steps.items()
            ],
            "measurements": [],
        }
        self.write()

    def enter(self, step: str, outcome: Outcome, seconds: float) -> None:
        """What a step came to."""
        entry = next(entry for entry in self.value["steps"] if entry["name"] == step)
        entry.update(_step(outcome, seconds))
        self.write()

    def measured(self, rows: list[dict[str, Any]]) -> None:
        """All measurements so far, judged anew: limits depend on one another."""
        self.value["measurements"] = judged(rows)
        self.write()

    def finish(self, seconds: float) -> None:
        """Nothing follows."""
        self.value["complete"] = True
        self.value["seconds"] = round(seconds, 1)
        self.write()

    def write(self) -> None:
        """Both files, each of them whole at any time."""
        _replace(self.file, json.dumps(self.value, indent=1) + "\n")
        _replace(self.file.with_suffix(".md"), page.markdown(self.value))


def file_name(gpu: str | None, started: datetime) -> str:
    """Of a run that began then: 2026-11-20-nvidia-h200.json, say."""
    card = re.sub(r"[^a-z0-9]+", "-", (gpu or "no-gpu").lower()).strip("-")
    return f"{started:%Y-%m-%d}-{card}.json"


def now() -> str:
    """Of this moment, in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _step(outcome: Outcome, seconds: float) -> dict[str, Any]:
    return {
        "status": outcome.status,
        "reason": outcome.reason,
        "seconds": round(seconds, 1),
        "data": outcome.data,
    }


def _replace(file: Path, text: str) -> None:
    beside = file.with_name(f".{file.name}.part")
    beside.write_text(text)
    os.replace(beside, file)
