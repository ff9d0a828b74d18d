# SPDX-License-Identifier: BSD-3-Clause
"""The families of operators: which one an operator belongs to, and the requirements of each.

The data is in `operator_families.yaml`. A requirement `OPINFO-*-NNN` of the catalogue stands for
one requirement of each family that it lists.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parent / "operator_families.yaml"
EVERY = "*"
"""In an id of the catalogue: the place of the family's name."""
DOCUMENTATION = "{documentation}"
"""As the url of a source: where PyTorch documents the family."""
OTHER = "OTHER"
"""The family of an operator that no family lists."""
LISTS = "FOREACH"
"""The family of all functions of lists of tensors."""


@dataclass(frozen=True)
class Family:
    """One entry of `operator_families.yaml`."""

    subject: str
    documentation: str
    operators: tuple[str, ...]
    needs: tuple[str, ...]


@functools.cache
def every() -> dict[str, Family]:
    """The families by name."""
    entries = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {
        name: Family(
            entry["subject"],
            entry["documentation"],
            tuple(entry["operators"].split()),
            tuple(entry.get("needs", ())),
        )
        for name, entry in entries.items()
    }


def of_operator(name: str) -> str:
    """The family of an operator by its name in the operator database."""
    return _by_operator().get(name, OTHER)


def of_case(case: str) -> str:
    """The family of an operator by its name in a check id, which may end with a variant."""
    return _listed(case) or OTHER


def unlisted(check_ids: Iterable[str]) -> list[str]:
    """The operators, as in check ids, of those checks of single operators that no family lists."""
    found = (id.removeprefix("opinfo/").split(":") for id in check_ids if id.startswith("opinfo/"))
    cases = {case for topic, case, *_ in found if topic != "foreach" and not _listed(case)}
    return sorted(cases)


def as_case(operator: str) -> str:
    """The name of an operator, and of its variant, as a word of a check id."""
    # An upper-case letter becomes _x, so that the property T and the method t stay apart.
    name = re.sub("[A-Z]", lambda letter: "_" + letter.group().lower(), operator)
    return re.sub("[^a-z0-9_]", "_", name)


def requirement(family: str, number: str) -> str:
    """The id of a family's requirement of this number."""
    return f"OPINFO-{family}-{number}"


def expanded(id: str, entry: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The entries of the catalogue that one with the key `families` stands for."""
    for name in entry["families"]:
        family = every()[name]
        made = {key: value for key, value in entry.items() if key != "families"}
        made["statement"] = entry["statement"].format(operators=family.subject)
        if entry["source"]["url"] == DOCUMENTATION:
            made["source"] = {**entry["source"], "url": family.documentation}
        if family.needs:
            made["needs"] = [*entry.get("needs", ()), *family.needs]
        yield id.replace(EVERY, name), made


def _listed(case: str) -> str | None:
    while case and case not in _by_case():
        case = case.rpartition("_")[0]
    return _by_case().get(case)


@functools.cache
def _by_operator() -> dict[str, str]:
    return {operator: name for name, one in every().items() for operator in one.operators}


@functools.cache
def _by_case() -> dict[str, str]:
    return {as_case(operator): name for operator, name in _by_operator().items()}
