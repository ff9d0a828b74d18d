# SPDX-License-Identifier: BSD-3-Clause
"""A gate to try things on: small reports before and after, a policy, and the verdict."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import synthetic
from synthetic import record

from torch_backend_ci.cli import main
from torch_backend_ci.errors import Exit
from torch_backend_ci.gate import verdict
from torch_backend_ci.gate.verdict import Check, Verdict
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity, Torch
from torch_backend_ci.surface.report import json as findings_json
from torch_backend_ci.surface.report.report import Report

LANE = "development-sim"
POLICY = f"""
lanes:
  {LANE}: {{required: true}}
  extra-sim: {{required: false}}
classes: {{flaky: note, excused: note}}
may_differ: [suite]
missing_after_change: {{suite: regression, torch: note}}
without_baseline: note
"""
#: What a run consists of here: as much as is needed to go on where some of it is bad.
GOOD = ("COPY-001", "DEV-001", "MEM-001", "STREAM-001")

Record = dict[str, Any]


def records(*changed: Record, without: str = "") -> list[Record]:
    """A passing check for each of the good ones, but for these."""
    good = {r["id"]: r for r in map(record, GOOD) if r["id"] != without}
    return list((good | {r["id"]: r for r in changed}).values())


def content(made: list[Record], **run: Any) -> synthetic.Content:
    """A report that lists no more requirements than it needs: each of them takes time to verify."""
    whole = synthetic.content(made, **run)
    named = {id for one in made for id in one["requirements"]}
    return whole | {"requirements": {id: whole["requirements"][id] for id in sorted(named)}}


class Gate:
    """Directories of reports, and the verb to run on them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.candidate, self.baseline = root / "candidate", root / "baseline"
        self.policy, self.output = root / "policy.yaml", root / "verdict.json"
        self.candidate.mkdir()
        self.baseline.mkdir()
        self.policy.write_text(POLICY)

    def before(self, *changed: Record, lane: str = LANE, without: str = "", **run: Any) -> None:
        """The run to compare with, as it is kept: one packed report."""
        made = content(records(*changed, without=without), **run)
        data = gzip.compress(synthetic.encode(made), mtime=0)
        (self.baseline / f"{lane}.json.gz").write_bytes(data)

    def after(
        self,
        *changed: Record,
        lane: str = LANE,
        shards: int = 1,
        without: str = "",
        **run: Any,
    ) -> list[Path]:
        """The run to judge, in shards; returns the files."""
        made = content(records(*changed, without=without), **run)
        parts = synthetic.shards(made, shards) if shards > 1 else [made]
        folder = self.candidate / lane
        folder.mkdir(exist_ok=True)
        names = (folder / f"{number}.json" for number in range(1, len(parts) + 1))
        return [synthetic.write(*pair) for pair in zip(names, parts, strict=True)]

    def run(self, *args: str, baseline: bool = True) -> tuple[int, Verdict]:
        """Exit status and verdict."""
        words = ["gate", "--candidate", str(self.candidate), "--policy", str(self.policy)]
        words += ["--baseline", str(self.baseline)] if baseline else []
        status = main([*words, "-o", str(self.output), *args])
        return status, verdict.parse(self.output.read_bytes(), "verdict")

    def judged(self, *args: str) -> Check:
        """The one check that is not unchanged."""
        _, made = self.run(*args)
        (check,) = made.checks
        return check

    def refused(self, *args: str) -> str:
        """Why nothing can be said: the gate must end so, and tell it."""
        status, made = self.run(*args)
        assert status == Exit.UNUSABLE
        problems = [
            *made.problems,
            *(p for lane in made.lanes if lane.required for p in lane.problems),
        ]
        assert problems
        return "\n".join(problems)


def finding(
    name: str,
    message: str = "{name} has become pure virtual: a derived class has to define it.",
    surface: str = "allocator",
    severity: Severity = Severity.COMPILE_BREAK,
    domain: Domain = Domain.CPP,
) -> Finding:
    """A finding about a declaration."""
    after = Declaration(domain, "method", name, surface, f"virtual void {name}() = 0", "a.h", 7)
    return Finding(
        rule="made_pure",
        severity=severity,
        surface=surface,
        domain=domain,
        name=name,
        message=message.format(name=name),
        before=None,
        after=after,
        concerns=("overriders",),
        hint="Override it.",
    )


def write_findings(file: Path, *findings: Finding) -> str:
    """The file that `surface check` would write."""
    torch = Torch("2.13.0", None)
    file.write_text(findings_json.render(Report(torch, torch, findings)))
    return str(file)
