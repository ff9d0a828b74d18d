# SPDX-License-Identifier: BSD-3-Clause
"""What the suites import is what their pyproject.toml declare."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# torch is the subject of the suite: the environment of the user decides which one is tested.
NOT_DECLARED = {"torch"}


def sources(suite: str) -> list[Path]:
    """The modules of a suite."""
    return sorted((ROOT / suite / "src").rglob("*.py"))


def declared(suite: str) -> set[str]:
    """The distributions that a suite depends on, with those of its extras."""
    text = (ROOT / suite / "pyproject.toml").read_text()
    lists = re.findall(
        r"^(?:dependencies|models|xdist) = (\[.*?\])$", text, re.DOTALL | re.MULTILINE
    )
    requirements = [each for found in lists for each in ast.literal_eval(found)]
    return {re.split(r"[<>=]", each)[0].lower() for each in requirements}


def imported(tree: ast.AST) -> Iterator[str]:
    """The first part of every name that a module imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not used here"
            yield str(node.module).partition(".")[0]


@pytest.mark.parametrize("suite", ["conformance", "hal_conformance"])
def test_every_import_of_a_suite_is_of_a_declared_dependency(suite: str) -> None:
    names = {name for path in sources(suite) for name in imported(ast.parse(path.read_text()))}
    names -= {"torch_conformance", "hal_conformance", *sys.stdlib_module_names, *NOT_DECLARED}
    assert {"numpy", "yaml"} <= names
    distributions = packages_distributions()
    undeclared = {
        name
        for name in names
        if not declared(suite) & {each.lower() for each in distributions.get(name, ())}
    }
    assert undeclared == set()
