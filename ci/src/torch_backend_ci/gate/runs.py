# SPDX-License-Identifier: BSD-3-Clause
"""The run of a configuration, merged from its reports, with every problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torch_backend_ci.gate import foreign
from torch_backend_ci.gate.asked import Asked
from torch_backend_ci.gate.inputs import File, LaneFiles, content
from torch_backend_ci.gate.policy import Limits
from torch_backend_ci.gate.verdict import Shard
from torch_conformance.results import reader
from torch_conformance.results.merging import MergeError, merge
from torch_conformance.results.reader import Document, ReportError
from torch_conformance.results.writing import dumps
from torch_conformance.spec import strict
from torch_conformance.spec.result import CheckResult

MERGED = "merged"
ANYTHING = Asked()


@dataclass
class Run:
    """What is known of one run of the suite."""

    whole: Document | None = None
    """The run, if it is complete and its parts are proven to be all of it."""
    parts: list[Document] = field(default_factory=list)
    """The reports that could be read."""
    problems: list[str] = field(default_factory=list)

    @property
    def results(self) -> dict[str, CheckResult]:
        """Every check of which a result arrived."""
        documents = [self.whole] if self.whole else self.parts
        return {result.id: result for document in documents for result in document.checks}

    @property
    def example(self) -> Document | None:
        """A report to tell torch and backend from."""
        return self.whole or next(iter(self.parts), None)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The reports that it was put together from, or those that these were."""
        return tuple(shard for part in self.parts for shard in _shards(part))


def gather(
    files: LaneFiles, limits: Limits, commit: str | None = None, asked: Asked = ANYTHING
) -> Run:
    """Read the reports of a configuration and merge them; all must be of this suite commit, and
    have run what is asked."""
    run = Run(problems=list(files.problems))
    for file in files.files:
        try:
            run.parts.append(_document(file, limits))
        except strict.Malformed as error:
            run.problems.append(f"{file.name}: {error}")
        except ReportError as error:
            run.problems.append(str(error))
    if commit:
        run.problems += _of_others(run.parts, commit)
    run.problems += asked.problems(run.parts)
    if not run.problems and not run.parts:
        run.problems.append("no report arrived")
    if not run.problems:
        _put_together(run)
    return run


def _document(file: File, limits: Limits) -> Document:
    data = content(file, limits)
    read = foreign.parse if file.path.name.endswith(".xml") else reader.parse
    return read(data, file.name)


def _put_together(run: Run) -> None:
    try:
        whole = _whole(run.parts)
    except (MergeError, ReportError) as error:
        run.problems.append(str(error))
        run.problems += _unusable(run.parts)
        return
    run.problems += _unusable([whole])
    run.whole = None if run.problems else whole


def _whole(parts: list[Document]) -> Document:
    kinds = {part.foreign for part in parts}
    if len(kinds) > 1:
        raise MergeError("JUnit and reports of the suite for one configuration")
    if len(parts) == 1 and parts[0].shard is None:
        return parts[0]
    if True in kinds:
        return foreign.merge(parts)
    return reader.parse(dumps(merge(parts)), MERGED)


def _of_others(documents: list[Document], commit: str) -> Iterator[str]:
    for document in documents:
        said = document.run.source.commit
        if said != commit:
            yield f"{document.name}: of the suite at {said or 'no commit'}, not at {commit}"


def _unusable(documents: list[Document]) -> Iterator[str]:
    for document in documents:
        if reason := document.run.cannot_load:
            yield f"{document.name}: the backend did not come up: {reader.plain(reason)}"
        elif not document.complete:
            yield f"{document.name}: the run did not end: its report is not complete"
        elif document.state == "nothing executed" and document.shard is None:
            yield f"{document.name}: nothing was executed"


def _shards(document: Document) -> Iterator[Shard]:
    run = document.run
    for part in run.merged or ():
        yield Shard(part.shard, None, part.started, part.duration_s, part.platform, part.sha256)
    if run.merged is None:
        yield Shard(
            run.options.shard,
            len(document.checks),
            run.started or None,
            run.duration_s,
            run.platform or None,
            document.sha256,
        )
