# SPDX-License-Identifier: BSD-3-Clause
"""`make test` installs what its tests import and run."""

from __future__ import annotations

import ast
import importlib.metadata
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from requirement_files import asked

ROOT = Path(__file__).resolve().parents[2]
RUN = re.compile(r'"-m",\s*"(\w+)"')
OURS = {"puone-hal-conformance", "torch-backend-ci", "torch-conformance", "torch-puone"}


def required(name: str) -> set[str]:
    """The distributions that a file of requirements and those that it reads name."""
    return {distribution for distribution, _ in asked(ROOT / "requirements" / name)}


def with_dependencies(names: set[str]) -> set[str]:
    """The distributions, and those that they need, as their metadata says."""
    found: set[tuple[str, str]] = set()
    waiting = {(name, "") for name in names}
    while waiting:
        name, extra = one = waiting.pop()
        found.add(one)
        try:
            needed = map(Requirement, importlib.metadata.requires(name) or [])
        except importlib.metadata.PackageNotFoundError:
            continue
        for need in needed:
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                extras = {"", *need.extras}
                waiting |= {(canonicalize_name(need.name), extra) for extra in extras} - found
    return {name for name, _ in found}


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules that importing a source imports, and that it cannot do without."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.ClassDef | ast.With):
            yield from imported(node)


@cache
def source_in(root: Path, module: str) -> Path | None:
    """The file of a module below a folder."""
    path = module.replace(".", "/")
    files = (root / f"{path}.py", root / path / "__init__.py")
    return next(filter(Path.is_file, files), None)


def source_of(module: str, beside: Path, roots: list[Path]) -> Path | None:
    """The file of a module of this repository."""
    return next(filter(None, (source_in(root, module) for root in (beside, *roots))), None)


def outside(files: list[Path], roots: list[Path]) -> dict[str, Path]:
    """The modules of others that the sources and what they import need, each with one that does."""
    found: dict[str, Path] = {}
    waiting, seen = list(files), set(files)
    while waiting:
        file = waiting.pop()
        for module in imported(ast.parse(file.read_text())):
            ours = source_of(module, file.parent, roots)
            if ours is None:
                found.setdefault(module.partition(".")[0], file)
            elif ours not in seen:
                seen.add(ours)
                waiting.append(ours)
    return found


def test_tests_import_only_what_make_test_installs(pytestconfig: pytest.Config) -> None:
    roots = [ROOT, *(Path(str(path)) for path in pytestconfig.getini("pythonpath"))]
    needed = outside(sorted((ROOT / "test").rglob("*.py")), roots)
    assert {"pytest", "torch"} <= needed.keys()
    allowed = OURS | with_dependencies(required("test.txt") | required("torch.txt"))
    providers = importlib.metadata.packages_distributions()
    wrong = [
        f"{file.relative_to(ROOT)}: {module}"
        for module, file in needed.items()
        if module in providers and allowed.isdisjoint(map(canonicalize_name, providers[module]))
    ]
    assert not wrong, "add them to requirements/test.txt, or import them where they are used"


def test_tests_run_no_tool_that_only_lint_installs() -> None:
    others = required("test.txt") | required("docs.txt")  # nightly tests have those of the site
    of_lint = {name.replace("-", "_") for name in required("lint.txt") - others}
    assert "import_linter" in of_lint
    wrong = [
        f"{file.relative_to(ROOT)}: {module}"
        for file in sorted((ROOT / "test").rglob("*.py"))
        for module in RUN.findall(file.read_text())
        if module in of_lint
    ]
    assert not wrong, "move them to requirements/test.txt"
