# SPDX-License-Identifier: BSD-3-Clause
"""Checks and requirements map onto each other completely, and ids keep their form."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import capabilities, catalogue
from conformance.check import FULL, ID, PR, STANDARD, Check, check
from conformance.collect import OPINFO, chapter_files, import_checks, topic_files
from conformance.runner import probes


@pytest.fixture(scope="module")
def checks() -> list[Check]:
    """Every check of the suite, all dtypes included."""
    files = [*chapter_files(None), *topic_files()]
    return [check for file in files for check in import_checks(file)]


@pytest.fixture(scope="module")
def requirements() -> dict[str, catalogue.Requirement]:
    """Every requirement."""
    return catalogue.load()


def test_every_check_names_requirements_that_exist(
    checks: list[Check], requirements: dict[str, catalogue.Requirement]
) -> None:
    unknown = {id for check in checks for id in check.requirements} - set(requirements)
    assert not unknown


def test_every_requirement_has_a_check(
    checks: list[Check], requirements: dict[str, catalogue.Requirement]
) -> None:
    unchecked = set(requirements) - {id for check in checks for id in check.requirements}
    assert not unchecked


def test_ids_are_unique_and_well_formed(checks: list[Check]) -> None:
    ids = [check.id for check in checks]
    assert len(ids) == len(set(ids))
    assert [id for id in ids if not ID.fullmatch(id)] == []


def test_a_check_belongs_to_the_surface_of_its_file(checks: list[Check]) -> None:
    for entry in checks:
        file = Path(entry.file)
        assert entry.surface == ("opinfo" if file.parent == OPINFO else file.stem)
        assert entry.surface in catalogue.SURFACES


def test_one_dtype_of_each_operator_stands_for_it_in_the_gate(checks: list[Check]) -> None:
    breadths: dict[str, list[str]] = {}
    for entry in checks:
        if entry.surface == "opinfo":
            topic_and_operator = ":".join(entry.id.split(":")[:2])
            breadths.setdefault(topic_and_operator, []).append(entry.breadth)
    assert {found.count(PR) for found in breadths.values()} == {1}
    assert {breadth for found in breadths.values() for breadth in found} == {PR, STANDARD, FULL}


def test_forward_results_are_verified_in_every_dtype_by_default(checks: list[Check]) -> None:
    forward = [entry for entry in checks if entry.id.startswith("opinfo/forward:")]
    assert len(forward) > 6000
    assert FULL not in {entry.breadth for entry in forward}


def test_there_are_at_least_250_checks_outside_opinfo(checks: list[Check]) -> None:
    assert sum(check.surface != "opinfo" for check in checks) >= 250


def test_every_check_says_what_it_verifies(checks: list[Check]) -> None:
    assert [check.id for check in checks if not check.title] == []


def test_requirements_need_capabilities_that_exist(
    requirements: dict[str, catalogue.Requirement],
) -> None:
    needed = {need for r in requirements.values() for need in r.needs}
    assert needed <= set(capabilities.MEANING)


def test_every_probe_is_of_a_capability() -> None:
    assert set(capabilities.PROBES) <= set(capabilities.MEANING)
    assert {probes.check_of(name).id for name in capabilities.PROBES} == {
        f"probe/{name}" for name in capabilities.PROBES
    }


def bad_registrations() -> Iterator[tuple[str, dict[str, object], str]]:
    """Arguments that @check refuses, and words of the message."""
    yield "copy/a", {"requirements": "copy-1"}, "not a requirement id"
    yield "copy/a", {"requirements": "COPY-001", "needs": ("wings",)}, "unknown capability"
    yield "Copy/a", {"requirements": "COPY-001"}, "is not surface/topic"
    yield "copy/a", {"requirements": "COPY-001", "cases": ("b-c",)}, "must take (dev, case)"
    yield "copy/a", {"requirements": ()}, "not a requirement id"


@pytest.mark.parametrize(("id", "arguments", "words"), list(bad_registrations()))
def test_the_decorator_refuses_mistakes(id: str, arguments: dict[str, object], words: str) -> None:
    def body(dev: object) -> None:
        """Does nothing."""

    with pytest.raises(ValueError, match=r"test_catalogue\.py") as error:
        check(id, **arguments)(body)  # type: ignore[arg-type]  # mistakes
    assert words in str(error.value)
    assert inspect.getsourcefile(body) in str(error.value)  # type: ignore[operator]  # there is a file
