# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the requirements: one for each chapter, from the catalogue and the checks."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from torch_conformance.authoring.discovery import OPINFO, all_checks
from torch_conformance.spec import capabilities, catalogue
from torch_conformance.spec.catalogue import Requirement
from torch_conformance.spec.chapters import FOLDER, Chapter, chapters
from website.restructured import escaped, heading, linked

ROOT = Path(__file__).resolve().parents[2]
DIRECTORY = "requirements"
#: A page of the suite's manual that explains these words.
MANUAL = "/conformance/README"


class Verification(NamedTuple):
    """A function of the suite that verifies a requirement, and the ids of its checks."""

    file: str
    line: int
    """0 for a topic of OpInfo, which is a whole file."""
    title: str
    ids: tuple[str, ...]


def pages() -> Iterator[tuple[str, str]]:
    """(file, text) of every page."""
    yield f"{DIRECTORY}/index.rst", _index()
    for chapter in chapters().values():
        yield f"{DIRECTORY}/{chapter.surface}.rst", _chapter(chapter)


@functools.cache
def guides() -> dict[str, list[str]]:
    """The sections of the guide for each chapter, as paths in the repository with anchors."""
    found: dict[str, list[str]] = yaml.safe_load(
        (Path(__file__).parent / "guides.yaml").read_text()
    )
    return found


@functools.cache
def by_chapter() -> dict[str, list[Requirement]]:
    """The requirements of each chapter, in the order of the catalogue."""
    found: dict[str, list[Requirement]] = defaultdict(list)
    for requirement in catalogue.load().values():
        found[requirement.surface].append(requirement)
    return found


@functools.cache
def verifications() -> dict[str, list[Verification]]:
    """What verifies each requirement, by the requirement's id."""
    ids: dict[tuple[str, str, int, str], list[str]] = defaultdict(list)
    for check in all_checks():
        # A topic is a file with one class for all operators; its checks differ in their titles.
        of_topic = Path(check.file).parent == OPINFO
        title, line = ("", 0) if of_topic else (check.title, check.line)
        file = Path(check.file).relative_to(ROOT).as_posix()
        for requirement in check.requirements:
            ids[requirement, file, line, title].append(check.id)
    found: dict[str, list[Verification]] = defaultdict(list)
    for (requirement, file, line, title), of in ids.items():
        found[requirement].append(Verification(file, line, title, tuple(of)))
    return found


def _index() -> str:
    count = sum(map(len, by_chapter().values()))
    rows = "\n".join(
        f"   * - :doc:`{chapter.title} <{chapter.surface}>`\n"
        f"     - {len(by_chapter()[chapter.surface])}\n"
        f"     - {escaped(chapter.summary)}"
        for chapter in chapters().values()
    )
    toctree = "\n".join(f"   {surface}" for surface in chapters())
    return f"""\
{heading("Requirements", "=")}
This page lists the chapters of the suite, in the order in which a new backend meets them. Their
pages list all {count} requirements: what each demands, why, where PyTorch says so, and which
checks verify it.

A requirement has a :doc:`keyword and a tier </docs/glossary>`. Its checks run only on a backend
that has the :doc:`capabilities <{MANUAL}>` that it needs.

.. list-table::
   :header-rows: 1

   * - Chapter
     - Requirements
     - Subject
{rows}

.. toctree::
   :hidden:

{toctree}
"""


def _chapter(chapter: Chapter) -> str:
    surface = chapter.surface
    listed = "".join(_requirement(each) for each in by_chapter()[surface])
    file = (FOLDER / f"{surface}.yaml").relative_to(ROOT).as_posix()
    return f"""\
{heading(f"Requirements: {chapter.title}", "=")}
This page lists what the suite requires of a backend in the chapter ``{surface}``.
{escaped(chapter.summary)}

To run only these checks::

    pytest --pyargs torch_conformance --backend=NAME --check '{surface}/*'

:In the guide: {", ".join(map(linked, guides()[surface]))}
:Catalogue: :source:`{file}`

{listed}"""


def _requirement(requirement: Requirement) -> str:
    fields = {
        "Why": escaped(requirement.reason),
        "Keyword": requirement.level,
        "Tier": requirement.tier,
        "Needs": ", ".join(
            f":abbr:`{name} ({capabilities.MEANING[name].replace('(', '- ').replace(')', '')})`"
            for name in requirement.needs
        ),
        "PyTorch": _versions(requirement),
        "Blocked upstream": _blocked(requirement),
        "Source": f"`{requirement.source.kind} <{requirement.source.url}>`__",
        "Guide": linked(guides()[requirement.surface][0]),
    }
    listed = "\n".join(f":{name}: {text}" for name, text in fields.items() if text)
    checks = "\n".join(map(_verification, verifications()[requirement.id]))
    return f"""\
{heading(requirement.id, "-")}
{escaped(requirement.statement)}

{listed}
:Checks:
{checks}

"""


def _verification(one: Verification) -> str:
    if len(one.ids) == 1:
        name = f"``{one.ids[0]}``"
    else:
        shared = _common(one.ids) if one.title else one.ids[0].partition(":")[0]
        name = f"``{shared}`` ({len(one.ids)} checks)"
    says = f" {escaped(one.title)}" if one.title else ""
    line = f"#L{one.line}" if one.line else ""
    return f"   * {name}{says} :source:`{one.file}{line}`"


def _common(ids: tuple[str, ...]) -> str:
    """The part of check ids that they share, with an asterisk for the rest."""
    parts = [id.split(":") for id in ids]
    shared = []
    for each in zip(*parts, strict=False):
        if len(set(each)) > 1:
            break
        shared.append(each[0])
    return ":".join([*shared, "*"])


def _versions(requirement: Requirement) -> str:
    since = f"since {requirement.since}" if requirement.since else ""
    until = f"until {requirement.until}" if requirement.until else ""
    return ", ".join(filter(None, (since, until)))


def _blocked(requirement: Requirement) -> str:
    blocked = requirement.blocked_upstream
    if blocked is None:
        return ""
    versions = f" in PyTorch {escaped(blocked.torch)}" if blocked.torch else ""
    return f"`{blocked.issue} <{blocked.issue}>`__{versions}"
