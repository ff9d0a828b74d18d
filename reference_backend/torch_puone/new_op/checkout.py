# SPDX-License-Identifier: BSD-3-Clause
"""Inserting a skeleton into a checkout: all files or none.

The new texts are made in memory and given to the checkout's own generators in a temporary
directory first, so what they refuse is never written.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from .operators import Operator, SkeletonError
from .skeleton import Skeleton

TABLE = "csrc/aten/operators.yaml"
CONTRACT = "csrc/hal/kernels.yaml"
# What the generators read.
_DEFINITIONS = (
    *("csrc/definitions.py", "csrc/aten/generate_operators.py", TABLE),
    *("csrc/hal/generate_kernels.py", "csrc/hal/kernel_accesses.py", CONTRACT),
)
# What generate_kernels.py --update writes.
_DERIVED = ("hal_conformance/src/hal_conformance/kernels.yaml", "docs/kernels.md")


@dataclass(frozen=True)
class Model:
    """What an existing operator's row says that another one may take over."""

    source: str
    family: str
    types: list[str]


class Checkout:
    """The files of a checkout that a new operator changes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @staticmethod
    def around(folder: Path) -> Checkout | None:
        """The checkout that a directory is in, if it is in one."""
        for each in (folder, *folder.parents):
            if (each / TABLE).is_file() and (each / CONTRACT).is_file():
                return Checkout(each)
        return None

    def text(self, name: str) -> str:
        """A file of it."""
        path = self.root / name
        if not path.is_file():
            raise SkeletonError(f"{name} does not exist in {self.root}")
        return path.read_text(encoding="utf-8")

    @cached_property
    def rows(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """The rows of the table by overload, each with its source."""
        operators = yaml.safe_load(self.text(TABLE))["operators"]
        return {row["func"]: (source, row) for source, rows in operators.items() for row in rows}

    @cached_property
    def _families(self) -> dict[str, str]:
        """The family of each kernel."""
        families = yaml.safe_load(self.text(CONTRACT))["families"]
        return {kernel: family for family, entry in families.items() for kernel in entry["kernels"]}

    def has(self, operator: Operator) -> bool:
        """Whether the table has a row for it."""
        return operator.name in self.rows

    def kernels(self, name: str) -> list[str]:
        """The kernels that the row of an overload launches."""
        _, row = self.rows[name]
        return [row["kernel"]] if "kernel" in row else list(row.get("kernels", []))

    def model(self, operator: Operator) -> Model:
        """What the row of an existing operator says. Raises SkeletonError if it is no model."""
        if not self.has(operator):
            raise SkeletonError(f"{TABLE} has no row {operator.name} to take as a model")
        source, row = self.rows[operator.name]
        if "kernel" not in row or "types" not in row:
            raise SkeletonError(
                f"the row of {operator.name} is no model: it has not one kernel and types"
            )
        types = row["types"] if isinstance(row["types"], list) else [row["types"]]
        return Model(source, self._families[row["kernel"]], types)

    def plan(self, operator: Operator, skeleton: Skeleton, source: str, family: str) -> Plan:
        """All that changes. Raises SkeletonError if a piece is there or has no place."""
        if self.has(operator):
            line = self.text(TABLE).partition(f"func: {operator.name},")[0].count("\n") + 1
            raise SkeletonError(f"{TABLE}:{line} has a row for {operator.name} already")
        if skeleton.kernel_name in self._families:
            raise SkeletonError(self._only_the_row(skeleton, source))
        kernels = f"csrc/kernels/{family}.cpp"
        if not (self.root / kernels).is_file():
            raise SkeletonError(
                f"{kernels} does not exist in {self.root}, as in repositories whose drivers have "
                "kernels of their own: --out DIR writes the pieces, to be inserted by hand"
            )
        test = f"test/aten/test_{skeleton.kernel_name}.py"
        if (self.root / test).exists():
            raise SkeletonError(f"{test} exists already")
        changes = {
            TABLE: _with_row(self.text(TABLE), f"  {source}:", f"  - {skeleton.row}", TABLE),
            CONTRACT: _with_row(
                self.text(CONTRACT), f"  {family}:", f"      {skeleton.kernel_row}", CONTRACT
            ),
            kernels: _with_kernel(self.text(kernels), skeleton, kernels),
            test: skeleton.test,
        }
        if skeleton.aten_class:
            path = f"csrc/aten/{source}"
            changes[path] = _with_class(self.text(path), skeleton, path)
        return Plan(self, changes | self._checked(changes))

    def _only_the_row(self, skeleton: Skeleton, source: str) -> str:
        """What to do by hand where the contract declares the kernel and no row launches it."""
        name = skeleton.kernel_name
        family = f"csrc/kernels/{self._families[name]}.cpp"
        host = "csrc/drivers/host/kernels.cpp"
        kernel = family if (self.root / family).is_file() else host
        return (
            f"{CONTRACT} declares the kernel {name} already, so keep its declaration. By hand: "
            f"write the kernel in {kernel}, unless it is there, and the row\n  - {skeleton.row}\n"
            f"under `{source}:` in {TABLE}; make that source if csrc/aten has none"
        )

    def _checked(self, changes: Mapping[str, str]) -> dict[str, str]:
        """What the generators make of the changes. Raises SkeletonError with what they refuse."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for each in _DEFINITIONS:
                (folder / each).parent.mkdir(parents=True, exist_ok=True)
                (folder / each).write_text(changes.get(each) or self.text(each), encoding="utf-8")
            for source in (self.root / "csrc/aten").glob("*/*.cpp"):  # whether they exist is asked
                place = folder / source.relative_to(self.root)
                place.parent.mkdir(exist_ok=True)
                place.touch()
            output = str(folder / "generated")
            _run(folder, "csrc/aten/generate_operators.py", output, "--torch", _torch())
            _run(folder, "csrc/hal/generate_kernels.py", output)
            for each in _DERIVED:
                (folder / each).parent.mkdir(parents=True, exist_ok=True)
            _run(folder, "csrc/hal/generate_kernels.py", "--update")
            return {
                each: (folder / each).read_text(encoding="utf-8")
                for each in _DERIVED
                if (self.root / each).is_file()
            }


@dataclass(frozen=True)
class Plan:
    """The new texts of files, by their names in the checkout."""

    checkout: Checkout
    changes: dict[str, str]

    def diff(self) -> str:
        """The changes as a unified diff."""
        return "".join(line for name in self.changes for line in self._diff(name))

    def _diff(self, name: str) -> Iterator[str]:
        path = self.checkout.root / name
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        return difflib.unified_diff(
            before.splitlines(keepends=True),
            self.changes[name].splitlines(keepends=True),
            f"a/{name}" if before else "/dev/null",
            f"b/{name}",
        )

    def write(self) -> None:
        """Write all files. If one cannot be written, none is changed."""
        root = self.checkout.root
        new = {root / name: root / f"{name}.new" for name in self.changes}
        before = {path: path.read_bytes() if path.exists() else None for path in new}
        try:
            for (path, beside), text in zip(new.items(), self.changes.values(), strict=True):
                beside.write_text(text, encoding="utf-8")
                if before[path] is not None:
                    shutil.copymode(path, beside)
            for path, beside in new.items():
                os.replace(beside, path)
        except OSError as error:
            _restore(before)
            raise SkeletonError(f"nothing was changed: {error}") from None
        finally:
            for beside in new.values():
                beside.unlink(missing_ok=True)


def _restore(before: Mapping[Path, bytes | None]) -> None:
    for path, content in before.items():
        if content is None:
            path.unlink(missing_ok=True)
        elif path.read_bytes() != content:
            path.write_bytes(content)


def _torch() -> str:
    """The directory of the installed torch."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    return str(Path(spec.origin).parent)


def _run(folder: Path, script: str, *arguments: str) -> None:
    command = [sys.executable, script, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SkeletonError(f"{Path(script).name} refuses the rows: {done.stderr.strip()}")


def _with_row(text: str, head: str, row: str, name: str) -> str:
    """A row behind the last one of the block that begins with the line `head`."""
    lines = text.split("\n")
    if head not in lines:
        raise SkeletonError(f"{name} has no {head.strip().rstrip(':')}")
    end = begin = lines.index(head) + 1
    indent = len(head) - len(head.lstrip())
    for number in range(begin, len(lines)):
        line = lines[number]
        inside = len(line) - len(line.lstrip()) > indent or line.startswith(f"{' ' * indent}- ")
        if not inside:
            break
        end = number + 1
    return "\n".join([*lines[:end], row, *lines[end:]])


def _with_kernel(text: str, skeleton: Skeleton, name: str) -> str:
    """The functor behind the others, its definition behind theirs."""
    if re.search(rf"\b(struct {skeleton.functor_name}|\({skeleton.functor_name},)", text):
        raise SkeletonError(f"{name} has a {skeleton.functor_name} already")
    end = "\n} // namespace\n\nPUONE_KERNEL("
    last = list(re.finditer(r"^PUONE_KERNEL\([^;]*;\n", text, re.MULTILINE))
    if text.count(end) != 1 or not last:
        raise SkeletonError(f"{name} does not end in its kernels: insert the functor by hand")
    text = text[: last[-1].end()] + skeleton.definition + "\n" + text[last[-1].end() :]
    gap = "" if skeleton.functor.startswith("PUONE_") else "\n"
    return text.replace(end, f"{gap}{skeleton.functor}\n{end}")


def _with_class(text: str, skeleton: Skeleton, name: str) -> str:
    """The class in front of the registrations, in namespaces of its own."""
    include = re.search(r'^#include "aten/.*_registrations\.inc"$', text, re.MULTILINE)
    if include is None:
        raise SkeletonError(f"{name} includes no registrations")
    head, tail = text[: include.start()], text[include.start() :]
    end = "} // namespace\n} // namespace puone\n"
    if end in head:
        body, _, rest = head.rpartition(end)
        return f"{body.rstrip()}\n\n{skeleton.aten_class}\n\n{end}{rest}{tail}"
    begin = "namespace puone {\nnamespace {\n"
    return f"{head}{begin}\n{skeleton.aten_class}\n\n{end}\n{tail}"
