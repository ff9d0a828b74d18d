# SPDX-License-Identifier: BSD-3-Clause
"""Judge mutations: what does the surface instrument say of an edited torch?

python test/ci/surface/mutation_bench.py judges every mutation alone, 5 s each; with words as its
argument those that have them in their title, and shows what was said of them.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from installed import installed_snapshot
from mutation import Edit, Mirror, Mutation, in_repository, load
from trees import installed_tree

from torch_backend_ci.changed_files import ChangedFile
from torch_backend_ci.label import rules as label_rules
from torch_backend_ci.label.plan import plan
from torch_backend_ci.surface import catalogue
from torch_backend_ci.surface.diff import diff
from torch_backend_ci.surface.extract import cpp, device_module, operators, python_api
from torch_backend_ci.surface.extract import headers as header_extraction
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Snapshot
from torch_backend_ci.torch_tree import TorchTree

READERS: Mapping[Domain, Callable[[TorchTree, catalogue.Catalogue], list[Declaration]]] = {
    Domain.CPP: cpp.extract,
    Domain.PYTHON: python_api.extract,
    Domain.OPERATOR: operators.extract,
    Domain.DEVICE_MODULE: device_module.extract,
}
BY_SUFFIX = {
    ".py": {Domain.PYTHON, Domain.DEVICE_MODULE},
    ".pyi": {Domain.PYTHON},
    ".yaml": {Domain.OPERATOR},
}
OF_HEADERS = {Domain.CPP, Domain.DEVICE_MODULE}


@dataclass(frozen=True)
class Verdict:
    """What was said of a group of mutations, against what had to be said."""

    missing: frozenset[str]
    unexpected: frozenset[str]  # false alarms
    mislabelled: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def right(self) -> bool:
        return not (self.missing or self.unexpected or self.mislabelled)

    def __str__(self) -> str:
        missing = [f"missing:    {text}" for text in sorted(self.missing)]
        unexpected = [f"unexpected: {text}" for text in sorted(self.unexpected)]
        return "\n".join([*missing, *unexpected, *self.mislabelled])


class Bench:
    """The installed torch, and copies of it with edits."""

    def __init__(self, folder: Path) -> None:
        self.tree = installed_tree()
        self.installed = installed_snapshot()
        self.catalogue = catalogue.load()
        self.labels = label_rules.load()
        self.mirror = Mirror(self.tree.root, folder)
        self._read: dict[str, Snapshot] = {}

    @property
    def classes(self) -> frozenset[str]:
        """The names of all classes and enums of the surface, C++ and Python."""
        kinds = {"class", "enum"}
        return frozenset(d.name for d in self.installed.declarations if d.kind in kinds)

    def judge(self, group: Sequence[Mutation]) -> Verdict:
        """All mutations of the group at once; they restore, or none of them does."""
        headers = group[0].headers
        before = self._of_headers((), headers) if headers else self.installed
        after = self._of_headers(group[0].edits, headers) if headers else self._edited(group)
        if group[0].restores:
            before, after = after, before
        findings = tuple(diff(before, after))
        expected = frozenset().union(*(mutation.findings for mutation in group))
        found = frozenset(map(line, findings))
        mislabelled = tuple(text for m in group if (text := self._mislabelled(m, findings)))
        return Verdict(expected - found, found - expected, mislabelled, findings)

    def _edited(self, group: Sequence[Mutation]) -> Snapshot:
        """The edited torch, as far as the edits can change what is read of it.

        Not whether headers stand alone: that takes reading all bodies.
        """
        domains = _domains(file for mutation in group for file in mutation.files)
        with self._tree(edit for mutation in group for edit in mutation.edits) as tree:
            read = [d for domain in domains for d in READERS[domain](tree, self.catalogue)]
        return Snapshot(self.installed.torch, domains, tuple(read))

    def _of_headers(self, edits: Sequence[Edit], headers: Sequence[str]) -> Snapshot:
        """What some headers declare, and whether they stand alone; read once for the same edits."""
        key = repr((edits, headers))
        if key not in self._read:
            with self._tree(edits) as tree:
                profiles = cpp.PROFILES[:1]
                read = cpp.extract(tree, self.catalogue, headers=headers, profiles=profiles)
                read += header_extraction.extract(tree, self.catalogue, headers=headers)
            domains = frozenset({Domain.CPP, Domain.HEADER})
            self._read[key] = Snapshot(self.installed.torch, domains, tuple(read))
        return self._read[key]

    @contextlib.contextmanager
    def _tree(self, edits: Iterable[Edit]) -> Iterator[TorchTree]:
        with self.mirror.edited(edits) as root:
            include = tuple(root / path.relative_to(self.tree.root) for path in self.tree.include)
            yield replace(self.tree, root=root, include=include, libraries=None)

    def _mislabelled(self, mutation: Mutation, findings: Sequence[Finding]) -> str:
        """The labels that the mutation earns by its own findings, if they are wrong."""
        own = [finding for finding in findings if line(finding) in mutation.findings]
        files = [ChangedFile(in_repository(file)) for file in mutation.files]
        earned = {label.name for label in plan(files, own, self.labels)}
        right = {f"impact: {mutation.impact}", *(f"surface: {s}" for s in mutation.surfaces)}
        wrong = [f"+ {label}" for label in earned - right] + [
            f"- {label}" for label in right - earned
        ]
        return f"labels:     {mutation.title}: {', '.join(sorted(wrong))}" if wrong else ""


def line(finding: Finding) -> str:
    """A finding as the data of mutations writes it."""
    return line_of(finding.rule, finding.severity.value, finding.surface, finding.name)


def line_of(rule: str, severity: str, surface: str, name: str) -> str:
    return f"{rule} {severity} {surface} {name}"


def _domains(files: Iterable[str]) -> frozenset[Domain]:
    """The domains that files of a torch tree are read for."""
    touched = (BY_SUFFIX.get(Path(file).suffix, OF_HEADERS) for file in files)
    return frozenset().union(*touched)


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge each mutation alone.")
    parser.add_argument("words", nargs="?", default="", help="part of the titles")
    words = parser.parse_args().words
    wanted = [mutation for mutation in load() if words.lower() in mutation.title.lower()]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        verdicts = [(mutation, _tell(mutation, bench, bool(words))) for mutation in wanted]
    expected = sum(len(mutation.findings) for mutation, _ in verdicts)
    missing = sum(len(verdict.missing) for _, verdict in verdicts)
    alarms = sum(len(verdict.unexpected) for _, verdict in verdicts)
    recall = 100 * (expected - missing) / expected if expected else 100
    right = sum(verdict.right for _, verdict in verdicts)
    print(f"{right} of {len(verdicts)} mutations exactly right")
    print(f"{expected} findings expected: recall {recall:.1f} %, false alarms {alarms}")
    return 0 if right == len(verdicts) else 1


def _tell(mutation: Mutation, bench: Bench, chatty: bool) -> Verdict:
    verdict = bench.judge([mutation])
    print(f"{'ok' if verdict.right else 'WRONG':6}{mutation.file:16}{mutation.title}", flush=True)
    if not verdict.right:
        print(verdict)
    if chatty:
        for finding in verdict.findings:
            print(f"          {finding.message}")
    return verdict


if __name__ == "__main__":
    sys.exit(main())
