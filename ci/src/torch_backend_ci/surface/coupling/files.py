# SPDX-License-Identifier: BSD-3-Clause
"""The files of a torch tree, under names that are the same wherever the tree lies."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.coupling.rules import Rules

Layout = Literal["source", "package"]  # a repository; installed, or a wheel unpacked


@dataclass(frozen=True)
class Tree:
    """A torch on disk."""

    layout: Layout
    version: str | None
    git_version: str | None
    tops: tuple[tuple[str, Path], ...]  # the name of each top directory or file, and where it is


@dataclass(frozen=True)
class Problem:
    """A file that could not be audited, or only in part."""

    file: str
    problem: str


def open_tree(where: Path, rules: Rules) -> Tree:
    """Recognize a repository, a directory with an installed or unpacked torch, or torch/ itself."""
    if not os.path.isdir(where):  # also False where it may not be looked at
        raise CiError(f"{where} is not a directory; --tree needs a torch source tree or package")
    if _is_package(where):
        return Tree("package", *_version(where / "version.py"), (("torch", where),))
    layout: Layout = "source" if any((where / n).exists() for n in ("aten", "c10")) else "package"
    if layout == "package" and not _is_package(where / "torch"):
        raise CiError(f"{where} holds no torch: neither torch/__init__.py nor aten/ nor c10/")
    tops = tuple((n, where / n) for n in rules.layouts[layout] if (where / n).exists())
    version, git_version = _version(where / "torch/version.py")
    if version is None and (where / "version.txt").is_file():
        version = (where / "version.txt").read_text(encoding="utf-8", errors="replace").strip()
    return Tree(layout, version, git_version, tops)


def walk(tree: Tree, rules: Rules, problems: list[Problem]) -> Iterator[tuple[str, Path]]:
    """Every file with a reader, in the order of the names; what cannot be entered is named."""
    for name, path in tree.tops:
        if path.is_dir():
            yield from _walk(name, path, rules, problems, {_key(path)})
        elif rules.kind(name):
            yield name, path


def _walk(
    folder: str, path: Path, rules: Rules, problems: list[Problem], seen: set[tuple[int, int]]
) -> Iterator[tuple[str, Path]]:
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError as error:
        problems.append(Problem(folder, f"cannot be listed: {error.strerror}"))
        return
    for entry in entries:
        name = f"{folder}/{entry.name}"
        wanted = rules.kind(name) is not None
        try:
            is_dir = entry.is_dir()
            if not is_dir and wanted and not entry.is_file():
                os.stat(entry.path)  # a link that leads nowhere says why
                problems.append(Problem(name, "is not a regular file"))
                continue
        except OSError as error:
            problems.append(Problem(name, f"cannot be read: {error.strerror}"))
            continue
        if is_dir and entry.name != "__pycache__" and not rules.skipped(name):
            if (key := _key(Path(entry.path))) in seen:
                problems.append(Problem(name, "leads back to a directory that is read already"))
            else:
                seen.add(key)
                yield from _walk(name, Path(entry.path), rules, problems, seen)
        elif not is_dir and wanted and not rules.skipped(name):
            yield name, Path(entry.path)


def _key(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _is_package(path: Path) -> bool:
    return (path / "__init__.py").is_file() and (path / "nn").is_dir()


def _version(file: Path) -> tuple[str | None, str | None]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None, None
    version = re.search(r"^__version__\s*=\s*['\"]([^'\"+]+)", text, re.MULTILINE)
    commit = re.search(r"^git_version\s*=\s*['\"]([0-9a-f]{40})['\"]", text, re.MULTILINE)
    return version and version[1], commit and commit[1]
