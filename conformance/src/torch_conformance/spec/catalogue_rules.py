# SPDX-License-Identifier: BSD-3-Clause
"""How a requirement is worded: one clause with one keyword, a reason, and a source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from torch_conformance.spec.catalogue import (
    CODE,
    CUDA_PRACTICE,
    DOCUMENTED,
    ISSUE,
    KEYWORD,
    Requirement,
)

_ANY_CASE = re.compile(KEYWORD.pattern, re.IGNORECASE)
# What joins a second demand to the first, as far as punctuation tells.
_JOINS = (";", ", and ", " and must ", " and should ")
_SENTENCE_ENDS = re.compile(r"[.!?](?= [A-Z]|$)")
_LINES = re.compile(r"https://github\.com/[^/]+/[^/]+/blob/v\d[^/]*/[^#]+#L\d+(?:-L\d+)?")
_UPSTREAM = re.compile(r"https://(?:docs\.pytorch\.org|github\.com/pytorch/pytorch/wiki)/")
_ABOUT_CUDA = "/notes/cuda.html"
_ISSUE = re.compile(r"https://github\.com/[^/]+/[^/]+/(?:issues|pull)/\d+(?:#.+)?")


def problems(requirements: Iterable[Requirement]) -> Iterator[str]:
    """What is wrong with the wording of requirements, each with the id of the requirement."""
    for requirement in requirements:
        for problem in _problems(requirement):
            yield f"{requirement.id}: {problem}"


def _problems(requirement: Requirement) -> Iterator[str]:
    yield from _statement_problems(requirement.statement)
    yield from _reason_problems(requirement.reason)
    yield from _source_problems(requirement)


def _statement_problems(statement: str) -> Iterator[str]:
    keywords = [match[0] for match in _ANY_CASE.finditer(statement)]
    if len(keywords) != 1:
        yield f"the statement has {len(keywords)} keywords: {', '.join(keywords)}"
    for keyword in keywords:
        if not keyword.isupper():
            yield f"the keyword {keyword!r} is not in capitals"
    for join in _JOINS:
        if join in statement:
            yield f"the statement has {join!r}: one clause for each requirement"
    if len(_SENTENCE_ENDS.findall(statement)) != 1 or not statement.endswith("."):
        yield "the statement is not one sentence"


def _reason_problems(reason: str) -> Iterator[str]:
    if len(_SENTENCE_ENDS.findall(reason)) != 1 or not reason.endswith("."):
        yield "the reason is not one sentence"


def _source_problems(requirement: Requirement) -> Iterator[str]:
    source = requirement.source
    if requirement.level == "must" and source.kind not in (DOCUMENTED, CODE):
        yield f"MUST needs a source that is documented or code, not {source.kind}"
    if source.kind == DOCUMENTED and _ABOUT_CUDA in source.url:
        yield f"{source.url} is about CUDA: its kind is {CUDA_PRACTICE}"
    is_must = requirement.level == "must"
    if is_must and source.kind == DOCUMENTED and not _UPSTREAM.match(source.url):
        yield f"{source.url} is not PyTorch's own documentation, which MUST needs"
    if source.kind == CODE and not _LINES.fullmatch(source.url):
        yield f"{source.url} names no lines of a file on a release tag"
    if source.kind == ISSUE and not _ISSUE.fullmatch(source.url):
        yield f"{source.url} is not an issue"
    if source.kind not in (CODE, ISSUE) and not re.search(r"#.", source.url):
        yield f"{source.url} has no anchor"
