# SPDX-License-Identifier: BSD-3-Clause
"""Runs of pr.yml on a fake GitHub, with the artifacts that honest and other people leave."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import warnings
import zipfile
from collections.abc import Mapping
from typing import Any

import synthetic
from gating import LANE
from github_fake import GitHubFake
from github_fake.world import Issue, Run

from torch_backend_ci.gate import verdict
from torch_backend_ci.gate.verdict import Cause, Check, Class, Lane, Means, Outcome, Since, Verdict
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity, Torch
from torch_backend_ci.surface.report import json as findings_json
from torch_backend_ci.surface.report.report import Report
from torch_conformance.spec.outcome import Outcome as Ended

HEADER = "c10/core/Allocator.h"
PLACE = f"torch/include/{HEADER}"
FAILS = "allocator/allocate:large:float32"


def zipped(files: Mapping[str, bytes | str]) -> bytes:
    """As GitHub packs an artifact; the same bytes for the same files."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore", UserWarning)
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


def a_finding(
    name: str = "c10::Allocator::x",
    *,
    file: str = PLACE,
    line: int = 7,
    severity: str = "compile_break",
    message: str = "it has become pure virtual",
) -> Finding:
    """Of a method that backends override."""
    after = Declaration(Domain.CPP, "method", name, "allocator", "virtual void x() = 0", file, line)
    kind = Severity(severity)
    return Finding(
        "made_pure", kind, "allocator", Domain.CPP, name, message, None, after, ("overriders",)
    )


def a_verdict(sha: str, *failing: str, message: str = "it raised", repro: str = "") -> Verdict:
    """Of one lane, in which these checks have begun to fail."""
    cause = Cause(
        identity="0123456789abcdef",
        rule="made_pure",
        severity=Severity.COMPILE_BREAK,
        surface="allocator",
        name="c10::A::x",
        message="pure now",
        hint=None,
    )
    checks = tuple(
        Check(
            lane=LANE,
            id=id,
            kind=Class.NEW_FAILURE,
            means=Means.REGRESSION,
            before=Ended.PASS,
            after=Ended.FAIL,
            duration_s=0.1,
            requirements=(),
            surface="allocator",
            message=message,
            since=(Since(cause.identity, "surface"),),
            repro=repro,
        )
        for id in failing
    )
    outcome = Outcome.REGRESSION if failing else Outcome.OK
    lane = Lane(
        name=LANE,
        required=True,
        outcome=outcome,
        backend="puone",
        torch="2.13.0",
        baseline="2.13.0",
        counts={"pass": 3, **({"fail": len(failing)} if failing else {})},
        classes={"unchanged": 3, **({"new_failure": len(failing)} if failing else {})},
        means={"regression": len(failing)} if failing else {},
        problems=(),
        notes=(),
        shards=(),
    )
    findings = (cause,) if failing else ()
    return Verdict(outcome, sha, (), (), (lane,), checks, 0, findings)


def findings_text(*found: Finding) -> str:
    """The file that `surface check` would write."""
    torch = Torch("2.13.0", None)
    return findings_json.render(Report(torch, torch, found, verdict="a verdict"))


def evidence(sha: str, *failing: str, found: tuple[Finding, ...] = (), **more: Any) -> bytes:
    """The artifact that the gate leaves."""
    text = verdict.render(a_verdict(sha, *failing, **more))
    return zipped({"verdict.json": text, "findings.json": findings_text(*found)})


def a_pull(fake: GitHubFake, **more: Any) -> Issue:
    """A pull request that changes a header, from a fork."""
    return fake.open_pull({HEADER: "struct Allocator { int x; };\n"}, **more)


def a_run(
    fake: GitHubFake, pull: Issue, data: bytes | None, *, name: str = "verdict", **more: Any
) -> Run:
    """The run of pr.yml on the pull request's head; `data` is its artifact."""
    assert pull.pull is not None
    run = fake.world.add_run(
        fake.repository,
        more.pop("head_sha", pull.pull.head_sha),
        head_branch=pull.pull.head_branch,
        head_repository=pull.pull.head_repository,
        **more,
    )
    if data is not None:
        fake.world.add_artifact(fake.repository, run, name, data)
    return run


def judged(fake: GitHubFake, *failing: str, found: tuple[Finding, ...] = ()) -> tuple[Issue, Run]:
    """A pull request, and its run with an honest verdict."""
    pull = a_pull(fake)
    assert pull.pull is not None
    data = evidence(pull.pull.head_sha, *failing, found=found)
    return pull, a_run(fake, pull, data, conclusion="failure" if failing else "success")


def a_report(number: int = 0, **changes: Any) -> bytes:
    """A packed report of a whole run; `number` tells one from another."""
    ids = ("COPY-001", "DEV-001", "MEM-001")
    records = [synthetic.record(id, duration_s=float(number)) for id in ids]
    return gzip.compress(synthetic.encode(synthetic.content(records, **changes)), mtime=0)


def a_push(fake: GitHubFake, files: Mapping[str, bytes] | None, **more: Any) -> Run:
    """The run of pr.yml for a push to main; `files` are those of its artifact `baseline`."""
    numbers = itertools.count(len(fake.repository.runs))
    sha = fake.person("alice").pushes({"a.txt": f"{next(numbers)}"})
    run = fake.world.add_run(
        fake.repository, sha, event="push", head_branch=more.pop("head_branch", "main"), **more
    )
    if files is not None:
        fake.world.add_artifact(fake.repository, run, "baseline", zipped(files))
    return run


def baseline_of(fake: GitHubFake) -> dict[str, bytes]:
    """The files of branch `results`."""
    sha = fake.repository.refs.get("refs/heads/results")
    if sha is None:
        return {}
    entries = fake.world.objects.files(fake.world.objects.commits[sha].tree)
    return {path: fake.world.objects.blobs[entry.sha] for path, entry in entries.items()}


def source_of(fake: GitHubFake) -> Any:
    """What is said of where the baseline of each lane comes from."""
    return json.loads(baseline_of(fake)["baseline.json"])["lanes"]
