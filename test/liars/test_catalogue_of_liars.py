# SPDX-License-Identifier: BSD-3-Clause
"""Every requirement has a liar that breaks it; one family of operators stands for all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import liar
import yaml
from suites import ROOT

from hal_conformance import covers
from torch_conformance.spec import catalogue, descriptor
from torch_conformance.spec.catalogue import Requirement

DOCUMENT = ROOT / "docs" / "liars.md"
LIARS = liar.load()
CUDA_LIES = yaml.load((ROOT / "test" / "standin" / "lies.yaml").read_text(), yaml.CSafeLoader)
EQUIVALENT = yaml.load((liar.HERE / "equivalent.yaml").read_text(), yaml.CSafeLoader) or {}

#: Surfaces of which every requirement has a lie, also where it is no must.
PROVED = (
    "autocast",
    "autograd",
    "copy",
    "custom_operator",
    "device",
    "error",
    "factory",
    "func",
    "grad_scaler",
    "graph",
    "magnitudes",
    "model",
    "module",
    "numerics",
    "operator",
    "opinfo",
    "optimizer",
    "process_group",
    "profiler",
    "random",
    "registration",
    "serialization",
    "sizes",
    "special_values",
    "thread",
    "view",
)


TOLD = {id for found in LIARS.values() for id in found.requirements}


def subject(id: str) -> str:
    """What a lie has to be about: of a family of operators, the same requirement of any family.

    The checks of a requirement of operators are one body for all families.
    """
    first, *_, number = id.split("-")
    return f"{first}-{number}"


def unproved(requirements: Iterable[Requirement]) -> set[str]:
    """The requirements that nobody lies about."""
    subjects = {subject(id) for id in TOLD}
    return {entry.id for entry in requirements if subject(entry.id) not in subjects}


def provable() -> list[Requirement]:
    """All but what no backend can satisfy yet, and what this one does not have."""
    lacking = {name for name, has in descriptor.find("puone").capabilities.items() if not has}
    entries = catalogue.load().values()
    return [e for e in entries if not e.blocked_upstream and not lacking & set(e.needs)]


def test_every_must_has_a_lie() -> None:
    assert unproved(entry for entry in provable() if entry.level == "must") == set()


def test_every_requirement_of_these_surfaces_has_a_lie() -> None:
    entries = [entry for entry in provable() if entry.surface in PROVED]
    assert {entry.surface for entry in entries} == set(PROVED)
    assert unproved(entries) == set()


def test_the_requirements_of_every_liar_exist() -> None:
    assert set(catalogue.load()) >= TOLD


def test_every_requirement_of_drivers_has_a_lie() -> None:
    """Told by the lying driver, or in the cuda driver's own sources (test_standin_liars.py)."""
    requirements = covers.catalogue()
    told = {id for liar in LIARS.values() for id in liar.hal}
    told |= {id for lie in CUDA_LIES.values() for id in lie["requirements"]}
    assert {id for id, entry in requirements.items() if entry.level == "must"} <= told
    assert told <= set(requirements)


def test_every_lie_of_the_lying_driver_is_on_trial() -> None:
    source = (Path(__file__).parent / "hal" / "lies.cpp").read_text()
    told = [line.split('"')[1] for line in source.splitlines() if line.strip().startswith('{"')]
    assert told == ["none", *(name for name, found in LIARS.items() if found.vehicle == liar.HAL)]


def test_the_document_lists_every_liar_and_each_is_killed() -> None:
    """`make liars` writes it; after a lie was added or taken away it has to be written again."""
    liars, _, equivalent = DOCUMENT.read_text().partition("## Equivalent")
    rows = {line.split("`")[1]: line for line in liars.splitlines() if line.startswith("| `")}
    assert set(rows) == set(LIARS)
    assert [id for id, row in rows.items() if "**nobody**" in row] == []
    listed = {line.split("`")[1] for line in equivalent.splitlines() if line.startswith("| `")}
    assert listed == set(EQUIVALENT)


def test_what_is_equivalent_is_no_liar_and_has_a_reason() -> None:
    assert not set(EQUIVALENT) & set(LIARS)
    assert all(entry["lie"] and entry["reason"] for entry in EQUIVALENT.values())


def test_there_are_enough_liars() -> None:
    assert len(LIARS) >= 120
