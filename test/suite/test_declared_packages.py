# SPDX-License-Identifier: BSD-3-Clause
"""What conformance/pyproject.toml declares is what the suite consists of and imports."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

SUITE = Path(__file__).resolve().parents[2] / "conformance"
DECLARED = (SUITE / "pyproject.toml").read_text()
# torch is the subject of the suite: the environment of the user decides which one is tested.
NOT_DECLARED = {"torch"}


def listed(key: str) -> list[str]:
    """A list of strings in pyproject.toml, which Python writes as TOML does."""
    found = re.search(rf"^{key} = (\[.*?\])$", DECLARED, re.DOTALL | re.MULTILINE)
    assert found, key
    return list(ast.literal_eval(found[1]))


def imported(tree: ast.AST) -> Iterator[str]:
    """The first part of every name that a module imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not used here"
            yield str(node.module).partition(".")[0]


def test_every_package_of_the_suite_is_installed() -> None:
    there = {
        path.parent.relative_to(SUITE.parent).as_posix().replace("/", ".")
        for path in SUITE.rglob("__init__.py")
        if "build" not in path.relative_to(SUITE).parts
    }
    assert sorted(listed("packages")) == sorted(there)


def test_every_import_of_the_suite_is_of_a_declared_dependency() -> None:
    names = {
        name
        for path in SUITE.rglob("*.py")
        if "build" not in path.relative_to(SUITE).parts
        for name in imported(ast.parse(path.read_text()))
    }
    names -= {"conformance", *sys.stdlib_module_names, *NOT_DECLARED}
    assert {"mpmath", "numpy", "yaml"} <= names
    requirements = [*listed("dependencies"), *listed("models"), *listed("xdist")]
    declared = {re.split(r"[<>=]", each)[0].lower() for each in requirements}
    distributions = packages_distributions()
    undeclared = {
        name
        for name in names
        if not declared & {each.lower() for each in distributions.get(name, ())}
    }
    assert undeclared == set()
