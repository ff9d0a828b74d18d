# SPDX-License-Identifier: BSD-3-Clause
"""The families of operators: which one an operator belongs to, and the requirements of each.

The data is in `operator_families.yaml`. A requirement `OPINFO-*-NNN` of the catalogue stands for one
requirement of each family that it lists.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parent / "operator_families.yaml"
EVERY = "*"
"""In an id of the catalogue: the place of the family's name."""
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


def is_listed(name: str) -> bool:
    """Whether a family lists the operator."""
    return name in _by_operator()


def of_case(case: str) -> str:
    """The family of an operator by its name in a check id, which may end with a variant."""
    while case:
        if case in _by_case():
            return _by_case()[case]
        case = case.rpartition("_")[0]
    return OTHER


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
        words = {"operators": family.subject, "documentation": family.documentation}
        made = {key: value for key, value in entry.items() if key != "families"}
        made["statement"] = entry["statement"].format_map(words)
        made["source"] = {k: v.format_map(words) for k, v in entry["source"].items()}
        if family.needs:
            made["needs"] = [*entry.get("needs", ()), *family.needs]
        yield id.replace(EVERY, name), made


@functools.cache
def _by_operator() -> dict[str, str]:
    return {operator: name for name, one in every().items() for operator in one.operators}


@functools.cache
def _by_case() -> dict[str, str]:
    return {as_case(operator): name for operator, name in _by_operator().items()}
