# SPDX-License-Identifier: BSD-3-Clause
"""``--since REV``: the checks whose code is not what it was in a revision of git.

Code is compared as syntax trees, so that comments and layout count for nothing. A check has changed
when its function has, or anything in its file that is not a check.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable
from pathlib import Path

from torch_conformance.authoring.check import Check


class ChangedError(Exception):
    """The revision cannot be compared with; the text tells why."""


def since(checks: Iterable[Check], revision: str) -> set[str]:
    """The ids of the checks that have changed since a revision."""
    if revision.startswith("-"):
        raise ChangedError(f"{revision!r} is not a revision")
    files: dict[str, list[Check]] = {}
    for check in checks:
        files.setdefault(check.file, []).append(check)
    for folder in {Path(file).parent for file in files}:
        if _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}") is None:
            raise ChangedError(f"git knows no revision {revision!r} of {folder}")
    return {check.id for file, mine in files.items() for check in _changed(file, mine, revision)}


def _changed(file: str, checks: list[Check], revision: str) -> list[Check]:
    path = Path(file)
    old = _git(path.parent, "show", f"{revision}:./{path.name}")
    functions = None if old is None else changed_functions(old, path.read_text(encoding="utf-8"))
    if functions is None:
        return checks
    return [check for check in checks if check.body.__name__ in functions]


def changed_functions(old: str, new: str) -> set[str] | None:
    """The functions of checks that differ between two sources; None if anything else does."""
    try:
        before, after = _parts(old), _parts(new)
    except SyntaxError:
        return None
    if before.pop("") != after.pop(""):
        return None
    return {name for name, code in after.items() if before.get(name) != code}


def _parts(source: str) -> dict[str, str]:
    """The code of every check by the name of its function, and of all the rest by ``""``."""
    checks, rest = {}, []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and any(map(_is_check, node.decorator_list)):
            checks[node.name] = ast.dump(node)
        else:
            rest.append(ast.dump(node))
    return {**checks, "": "\n".join(rest)}


def _is_check(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else None
    return isinstance(function, ast.Name) and function.id == "check"


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says in a directory, or None if it refuses."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise ChangedError(f"git cannot be run: {error.strerror}") from None
    return done.stdout if done.returncode == 0 else None
