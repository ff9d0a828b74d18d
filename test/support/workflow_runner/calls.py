# SPDX-License-Identifier: BSD-3-Clause
"""The call of a reusable workflow: what it is given, held to what it declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workflow_runner.cache_mode import Access
from workflow_runner.mistakes import Mistake
from workflow_runner.permissions import Permissions


@dataclass
class Called:
    """How a reusable workflow is called."""

    inputs: Mapping[str, Any]
    secrets: Mapping[str, str]
    permissions: Permissions
    caches: Access


def inputs(declared: Mapping[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Each input that is declared, as it is given or by its default."""
    if unknown := given.keys() - declared.keys():
        raise Mistake(f"{where}: no input {', '.join(sorted(unknown))}")
    result = {}
    for name, about in declared.items():
        if about.get("required") and name not in given:
            raise Mistake(f"{where}: needs the input {name}")
        empty = {"boolean": False, "number": 0}.get(about["type"], "")
        result[name] = given.get(name, about.get("default", empty))
        if not isinstance(result[name], _TYPES[about["type"]]):
            raise Mistake(f"{where}: the input {name} is no {about['type']}: {result[name]!r}")
    return result


_TYPES: dict[str, Any] = {"boolean": bool, "number": (int, float), "string": (str, int, float)}


def secrets(
    declared: Mapping[str, Any], passed: Mapping[str, str], where: str, all_of_them: bool
) -> dict[str, str]:
    """Those that are declared; with `secrets: inherit` all of the caller's."""
    if not all_of_them and (unknown := passed.keys() - declared.keys()):
        raise Mistake(f"{where}: no such secret: {', '.join(sorted(unknown))}")
    for name, about in declared.items():
        if (about or {}).get("required") and not passed.get(name):
            raise Mistake(f"{where}: needs the secret {name}")
    return {name: value for name, value in passed.items() if name in declared or all_of_them}
