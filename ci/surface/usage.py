# SPDX-License-Identifier: BSD-3-Clause
"""Which known backends use a declaration (usage.yaml), and findings ranked by that."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from ci.errors import CiError
from ci.surface.diff import order
from ci.surface.model import Domain, Finding

DATA = Path(__file__).parent / "usage.yaml"


@dataclass(frozen=True)
class Usage:
    """Names, or patterns of names, and the backends that use them."""

    backends: frozenset[str]
    cpp: Mapping[str, tuple[str, ...]]
    headers: Mapping[str, tuple[str, ...]]
    python: Mapping[str, tuple[str, ...]]

    def of(self, finding: Finding) -> tuple[str, ...]:
        """The backends that use what the finding is about; none are known for operators."""
        if finding.domain is Domain.HEADER:
            return self.headers.get(finding.name, ())
        if finding.domain in (Domain.CPP, Domain.SYMBOL):
            return _nearest(self.cpp, _without_arguments(finding.name), "::")
        if finding.domain is Domain.PYTHON:
            return _nearest(self.python, finding.name, ".")
        return ()


def weigh(findings: Iterable[Finding], usage: Usage) -> list[Finding]:
    """The findings with the backends that use what they are about; what more use comes first."""
    return sorted((replace(f, used_by=usage.of(f)) for f in findings), key=order)


@functools.cache
def load(path: Path = DATA) -> Usage:
    """Read the data; CiError says what is wrong with it."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        usage = Usage(
            frozenset(document["backends"]),
            *(_section(document[section]) for section in ("cpp", "headers", "python")),
        )
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise CiError(f"{path}: {error!r}") from error
    named = {
        user
        for part in (usage.cpp, usage.headers, usage.python)
        for users in part.values()
        for user in users
    }
    if unknown := named - usage.backends:
        raise CiError(f"{path}: not among the backends: {', '.join(sorted(unknown))}")
    return usage


def _section(section: Mapping[str, list[str]]) -> Mapping[str, tuple[str, ...]]:
    return {name: tuple(users) for name, users in section.items()}


def _nearest(section: Mapping[str, tuple[str, ...]], name: str, dot: str) -> tuple[str, ...]:
    """The users of the name, or else of the class or module around it, or else of the next."""
    while name:
        if name in section:
            return section[name]
        for pattern, users in section.items():
            if (
                pattern.endswith("*")
                and name.startswith(pattern[:-1])
                and dot not in name[len(pattern) :]
            ):
                return users
        name = name.rpartition(dot)[0]
    return ()


def _without_arguments(symbol: str) -> str:
    """The name of a function whose demangled name is at hand."""
    return symbol.partition("(")[0].partition("<")[0]
