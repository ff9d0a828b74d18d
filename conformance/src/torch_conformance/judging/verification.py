# SPDX-License-Identifier: BSD-3-Clause
"""Whether a bundle is what it says: everything in it that can be recomputed is, and compared.

That proves that it is whole and coherent and that every excuse has its entry. It does not prove who
made it: somebody who invents a whole run is found out by running it again.
"""

from __future__ import annotations

import datetime
import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from torch_conformance.authoring.check import Check
from torch_conformance.expectations import Expectation, Expectations, ExpectationsError
from torch_conformance.expectations.entry import FLAKY
from torch_conformance.expectations.file import read
from torch_conformance.judging.judge import Judge
from torch_conformance.results import bundle, levels, source
from torch_conformance.results.bundle import Manifest
from torch_conformance.results.junit import junit
from torch_conformance.results.reader import Document, ReportError, parse
from torch_conformance.results.report import Demand, File, Run
from torch_conformance.spec import capabilities, catalogue, descriptor, strict
from torch_conformance.spec.capabilities import Capabilities, State
from torch_conformance.spec.descriptor import Descriptor, DescriptorError
from torch_conformance.spec.ids import BREADTHS
from torch_conformance.spec.outcome import Outcome
from torch_conformance.spec.reason import Blocked, Excused, MissingCapability
from torch_conformance.spec.result import CheckResult
from torch_conformance.spec.typed import problem


@dataclass(frozen=True)
class Own:
    """The suite that verifies, and the torch that it has its checks from."""

    checks: list[Check]
    torch: str
    requirements: dict[str, catalogue.Requirement]
    digest: str


def own() -> Own:
    """The installed suite; imports torch, which takes seconds. May raise CannotLoad."""
    from torch_conformance.authoring import discovery

    checks = discovery.all_checks()
    import torch

    return Own(checks, torch.__version__, catalogue.load(), source.digest())


def findings(members: dict[str, bytes], known: Own | None) -> tuple[Document | None, list[str]]:
    """The report of a bundle and every reason to refuse it.

    Without `known`, what only the suite's own list of checks and requirements can tell is left out.
    """
    try:
        document = parse(members[bundle.REPORT], bundle.REPORT)
    except ReportError as error:
        return None, [str(error)]
    found = [*_of_manifest(document, members), *_of_run(document)]
    if (
        members[bundle.JUNIT]
        != junit(document.run.backend, document.run.started, document.checks).encode()
    ):
        found.append(f"{bundle.JUNIT} is not what the report gives")
    if not members[bundle.LOG].strip():
        found.append(f"{bundle.LOG} is empty")
    entries, problems = _expectations(document, members, known)
    found += [*problems, *_of_waivers(document, entries)]
    described, problems = _descriptor(document, members)
    found += problems
    if known is not None:
        found += _of_list(document, known, described)
    return document, found


def _of_manifest(document: Document, members: dict[str, bytes]) -> Iterator[str]:
    try:
        content = strict.loads(members[bundle.MANIFEST])
        said = msgspec.convert(content, Manifest)
    except strict.Malformed as error:
        yield f"{bundle.MANIFEST}: {error}"
        return
    except msgspec.ValidationError as error:
        yield f"{bundle.MANIFEST}: {problem(content, Manifest, error)}"
        return
    expected = bundle.manifest(document, members)
    for key in Manifest.__struct_fields__:
        if getattr(said, key) != getattr(expected, key):
            yield f"{bundle.MANIFEST}: {key} is not what the other files give"


def _of_run(document: Document) -> Iterator[str]:
    if document.shard:
        number, count = document.shard
        yield f"shard {number} of {count} alone: merge all shards and submit the whole"
    if document.state in ("incomplete", "nothing executed"):
        yield f"the run is no result: {document.state}"
    chosen = document.run.selection
    if chosen and chosen.differs_by:
        yield f"not the standard selection, but {', '.join(chosen.differs_by)}"


def _attached(
    members: dict[str, bytes], name: str, said: File | None
) -> tuple[bytes | None, str | None]:
    """A file that took part in the run, and what is wrong about it."""
    content = members.get(name)
    if said is None:
        return None, f"{name} took no part in the run" if content is not None else None
    if content is None:
        return None, f"{name} is missing: the run used {said.file}"
    if hashlib.sha256(content).hexdigest() != said.sha256:
        return None, f"{name} is not the {said.file} that the run used"
    return content, None


def _expectations(
    document: Document, members: dict[str, bytes], known: Own | None
) -> tuple[Expectations, list[str]]:
    content, problem = _attached(members, bundle.EXPECTATIONS, document.run.expectations)
    if content is None:
        return Expectations(), [problem] if problem else []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / bundle.EXPECTATIONS
        file.write_bytes(content)
        try:
            said = read(file)
        except ExpectationsError as error:
            return Expectations(), [_without(folder, str(error))]
    found = Expectations(said.entries)
    problems = [_without(folder, text) for text in said.problems]
    ids = {check.id for check in known.checks} if known else {r.id for r in document.checks}
    surfaces = {id.partition("/")[0] for id in ids}
    problems += [
        _without(folder, f"{entry.where}: {entry.kind} entry {entry.id!r} matches no check")
        for entry in found.unmatched(ids, surfaces)
    ]
    return found, problems


def _without(folder: str, text: str) -> str:
    return text.replace(f"{folder}/", "")


def _of_waivers(document: Document, entries: Expectations) -> Iterator[str]:
    """Whether each excuse is the one that the expectations file gives, and none is left out."""
    day = datetime.datetime.fromisoformat(document.run.started).date()
    for result in document.checks:
        entry, excused = entries.find(result.id), result.excused
        if excused:
            if entry is None or (entry.kind, entry.id) != (excused.list, excused.entry):
                yield f"{result.id}: no entry of the expectations excuses it"
            else:
                yield from (f"{result.id}: {why}" for why in _of_excuse(excused, entry, day))
        elif entry and result.outcome is Outcome.PASS:
            yield f"{result.id} passes, although it is listed under {entry.kind}"


def _of_excuse(excused: Excused, entry: Expectation, day: datetime.date) -> Iterator[str]:
    if (excused.text, excused.link) != (entry.reason, entry.link):
        yield "its reason is not that of its entry"
    # A day is left for the time zones of the run and of the file.
    if entry.kind != FLAKY and entry.expired(day - datetime.timedelta(days=1)):
        yield f"its entry expired on {entry.expires}"


def _descriptor(
    document: Document, members: dict[str, bytes]
) -> tuple[Descriptor | None, list[str]]:
    run = document.run
    content, problem = _attached(members, bundle.DESCRIPTOR, run.descriptor)
    if content is None:
        plain = Descriptor(name=run.backend, device_type=run.device_type)
        return (None, [problem]) if problem else (plain, [])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / bundle.DESCRIPTOR
        file.write_bytes(content)
        try:
            found = descriptor.load(file, run.backend)
        except DescriptorError as error:
            return None, [_without(folder, str(error))]
    return found, list(_of_capabilities(run, found))


def _of_capabilities(run: Run, found: Descriptor) -> Iterator[str]:
    if found.device_type != run.device_type:
        yield f"{bundle.DESCRIPTOR} is of device type {found.device_type!r}"
    said = {n: c.value for n, c in run.capabilities.items() if c.source == "declared"}
    if said != found.capabilities:
        yield f"the report's declared capabilities are not those of {bundle.DESCRIPTOR}"


def _of_list(document: Document, known: Own, described: Descriptor | None) -> Iterator[str]:
    """What only the suite itself can tell: which checks there are, and what they ask for."""
    run = document.run
    if (run.source.digest, run.torch.version) != (known.digest, known.torch):
        yield (
            f"made with suite {run.suite} {run.source.commit or '(installed)'} and torch "
            f"{run.torch.version}, which are not the ones here: verify with those, or leave "
            "out the comparison with the list of checks (--without-list)"
        )
        return
    listed = {id: Demand(level=r.level, tier=r.tier) for id, r in known.requirements.items()}
    if document.report.requirements != listed:
        yield "the report's requirements are not the suite's"
    if set(run.capabilities) - set(capabilities.MEANING):
        yield "the report has capabilities that the suite does not know"
    width = BREADTHS.index(run.options.dtypes[0]) if _is_wide(run) else len(BREADTHS)
    expected = {c.id: c for c in known.checks if BREADTHS.index(c.breadth) <= width}
    ids = {result.id for result in document.checks}
    yield from (f"{id} is no check of the suite" for id in sorted(ids - expected.keys()))
    yield from (f"{id} has no record" for id in sorted(expected.keys() - ids))
    results = [result for result in document.checks if result.id in expected]
    for result in results:
        if result.requirements != expected[result.id].requirements:
            yield f"{result.id} does not name its own requirements"
    if described:
        yield from _of_excused(run, results, expected, known, described)


def _is_wide(run: Run) -> bool:
    return run.options.dtypes[0] in BREADTHS


def _of_excused(
    run: Run,
    results: Iterable[CheckResult],
    checks: dict[str, Check],
    known: Own,
    described: Descriptor,
) -> Iterator[str]:
    """Whether checks are unsupported exactly where descriptor, capabilities and torch say so."""
    offered = Capabilities.of(run.capabilities)
    judge = Judge(described, known.requirements, Expectations(), known.torch, lambda id: id)
    asked = [checks[result.id] for result in results]
    decided = {raw.id: raw for raw in judge.plan(asked, offered).decided}
    absent = {n for n in capabilities.MEANING if offered.state(n) is State.ABSENT}
    for result in results:
        due = decided.get(result.id)
        if due is not None and due.outcome is Outcome.FAIL:
            if result.outcome in (Outcome.PASS, Outcome.UNSUPPORTED):
                yield f"{result.id} is {result.outcome}, and should fail: {due.message}"
        elif due is not None:
            if (result.outcome, result.reason) != (Outcome.UNSUPPORTED, due.reason):
                yield f"{result.id} is {result.outcome}, and should be unsupported: {due.reason}"
        elif isinstance(result.reason, Blocked):
            if result.reason.issue not in judge.issues(checks[result.id]):
                yield f"{result.id}: no entry of the catalogue says that PyTorch prevents it"
        elif levels.claims_absence(result) and not _is_absent(result, absent):
            yield f"{result.id}: nothing that it needs is absent"


def _is_absent(result: CheckResult, absent: set[str]) -> bool:
    """Whether a running check found out what the report says, too: only capabilities it can."""
    return isinstance(result.reason, MissingCapability) and absent.issuperset(result.reason.names)
