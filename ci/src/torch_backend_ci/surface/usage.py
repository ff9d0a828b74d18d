# SPDX-License-Identifier: BSD-3-Clause
"""Which known backends use a declaration (usage.yaml, collected.yaml); findings ranked by that."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.model import Domain, Finding

DATA = Path(__file__).parent / "usage.yaml"
COLLECTED = Path(__file__).parent / "collected.yaml"


class _Names:
    """Names and patterns of names, `dot` between their parts, and the users of each."""

    def __init__(self, users: Mapping[str, tuple[str, ...]], dot: str) -> None:
        self._users, self._dot = users, dot
        self._patterns = [(name[:-1], of) for name, of in users.items() if name.endswith("*")]

    def users(self, name: str) -> tuple[str, ...]:
        """Of exactly the name, or of a pattern for it."""
        if name in self._users:
            return self._users[name]
        for prefix, users in self._patterns:  # the first character of the rest may be a dot
            if name.startswith(prefix) and self._dot not in name[len(prefix) + 1 :]:
                return users
        return ()

    def nearest(self, name: str) -> tuple[str, ...]:
        """Of the name, or else of the class or module around it, or else of the next."""
        while name:
            if known := self.users(name):
                return known
            name = name.rpartition(self._dot)[0]
        return ()


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
            return self._of_cpp(finding)
        if finding.domain is Domain.PYTHON:
            return self._names_of_python.nearest(finding.name)
        return ()

    @functools.cached_property
    def _names_of_cpp(self) -> _Names:
        return _Names(self.cpp, "::")

    @functools.cached_property
    def _names_of_python(self) -> _Names:
        return _Names(self.python, ".")

    def _of_cpp(self, finding: Finding) -> tuple[str, ...]:
        """Of a member those who use the member; who derives from its class uses a pure virtual."""
        name = _without_arguments(finding.name)
        about = finding.before or finding.after
        owner, _, last = name.rpartition("::")
        known = self._names_of_cpp.users(name)
        if about is not None and about.facts.get("pure"):
            users = {*known, *self._names_of_cpp.users(owner)}
            return tuple(sorted(users, key=str.lower))
        of_class = about is not None and about.kind in _OF_CLASS
        if known or not (of_class or last.lstrip("~") == owner.rpartition("::")[2]):
            return known
        return self._names_of_cpp.users(owner)


def weigh(findings: Iterable[Finding], usage: Usage) -> list[Finding]:
    """The findings with the backends that use what they are about; what more use comes first."""
    from torch_backend_ci.surface.diff import order

    return sorted((replace(f, used_by=usage.of(f)) for f in findings), key=order)


# To use one of these is to use what it is in.
_OF_CLASS = {"constructor", "destructor", "enumerator"}

NOTHING = Usage(frozenset(), {}, {}, {})


@functools.cache
def load() -> Usage:
    """All that is known, searched and collected."""
    more = collected()
    python = {name.replace(":", "."): users for name, users in more.python.items()}
    sections = {"cpp": more.cpp, "headers": more.headers, "python": python}
    return merged(read(DATA), more.backends, sections)


@functools.cache
def collected() -> Usage:
    """What was collected; names of Python are entries, `module:name`."""
    return read(COLLECTED)


def merged(
    known: Usage, backends: Collection[str], more: Mapping[str, Mapping[str, Iterable[str]]]
) -> Usage:
    """The usage with further users; what was known of other backends stays."""

    def both(title: str) -> Mapping[str, tuple[str, ...]]:
        section = {name: set(users) for name, users in getattr(known, title).items()}
        for name, users in more[title].items():
            section.setdefault(name, set()).update(users)
        return {name: tuple(sorted(users, key=str.lower)) for name, users in section.items()}

    return Usage(known.backends | set(backends), both("cpp"), both("headers"), both("python"))


def read(path: Path) -> Usage:
    """Read one file; CiError says what is wrong with it."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
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


def _without_arguments(symbol: str) -> str:
    """The name of a function whose demangled name is at hand."""
    return symbol.partition("(")[0].partition("<")[0]
