# SPDX-License-Identifier: BSD-3-Clause
"""Tolerances by dtype and operator: read from `tolerances.yaml`, which explains them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from torch_conformance.spec.ids import matches, pattern_error
from torch_conformance.spec.topics import TOPICS

FILE = Path(__file__).parent / "tolerances.yaml"

Pair = tuple[float, float]


class TolerancesError(Exception):
    """A file of tolerances that breaks the rules; the text names file and entry."""


@dataclass(frozen=True)
class Exemption:
    """A wider tolerance for one operator, or for all whose names begin alike."""

    operator: str
    dtypes: dict[str, Pair]
    reason: str
    topics: tuple[str, ...] = TOPICS


@dataclass(frozen=True)
class Tolerances:
    """(rtol, atol) by name of the dtype, and the operators that need more."""

    file: Path
    dtypes: dict[str, Pair]
    exceptions: tuple[Exemption, ...]

    def granted(self, operator: str, topic: str, dtype: str) -> Pair:
        """The widest (rtol, atol) of the exceptions for an operator, or (0, 0)."""
        pairs = [
            entry.dtypes[dtype]
            for entry in self.exceptions
            if dtype in entry.dtypes and topic in entry.topics and matches(entry.operator, operator)
        ]
        return max((r for r, _ in pairs), default=0.0), max((a for _, a in pairs), default=0.0)

    def verify(self, operators: Iterable[str]) -> None:
        """Raise TolerancesError for an exception that is about no operator.

        For our tests: another torch than theirs may lack an operator, which is not an error of the
        user.
        """
        names = set(operators)
        for entry in self.exceptions:
            if not any(matches(entry.operator, name) for name in names):
                raise TolerancesError(f"{self.file}: {entry.operator!r} matches no operator")


@cache
def load(file: Path = FILE) -> Tolerances:
    """Read and verify a file of tolerances."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise TolerancesError(f"{file}: {error}") from None
    if not isinstance(content, dict) or set(content) != {"dtypes", "exceptions"}:
        raise TolerancesError(f"{file}: needs a map `dtypes` and a list `exceptions`")
    if not isinstance(content["exceptions"], list):
        raise TolerancesError(f"{file}: `exceptions` must be a list")
    exceptions = tuple(_exemption(file, entry) for entry in content["exceptions"])
    return Tolerances(file, _pairs(str(file), content["dtypes"]), exceptions)


def _exemption(file: Path, entry: Any) -> Exemption:
    if not isinstance(entry, dict) or not isinstance(entry.get("operator"), str):
        raise TolerancesError(f"{file}: key 'operator' is missing in {entry!r}")
    where = f"{file}: {entry['operator']}"
    unknown = set(entry) - {"operator", "topics", "dtypes", "reason"}
    if unknown:
        raise TolerancesError(f"{where}: unknown key {min(unknown)!r}")
    problem = pattern_error(entry["operator"])
    if problem:
        raise TolerancesError(f"{where}: {problem}")
    if not str(entry.get("reason") or "").strip():
        raise TolerancesError(f"{where}: key 'reason' is missing")
    topics = tuple(entry.get("topics", TOPICS))
    for topic in topics:
        if topic not in TOPICS:
            raise TolerancesError(f"{where}: {topic!r} is not a topic: {', '.join(TOPICS)}")
    return Exemption(entry["operator"], _pairs(where, entry.get("dtypes")), entry["reason"], topics)


def _pairs(where: str, value: Any) -> dict[str, Pair]:
    import torch

    if not isinstance(value, dict) or not value:
        raise TolerancesError(f"{where}: `dtypes` must be a map of dtype to [rtol, atol]")
    for name, pair in value.items():
        if not isinstance(getattr(torch, str(name), None), torch.dtype):
            raise TolerancesError(f"{where}: {name!r} is not a dtype")
        if not _is_pair(pair):
            raise TolerancesError(f"{where}: [rtol, atol] expected for {name}, not {pair!r}")
    return {name: (float(pair[0]), float(pair[1])) for name, pair in value.items()}


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(type(part) in (int, float) and part >= 0 for part in value)
    )
