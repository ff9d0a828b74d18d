# SPDX-License-Identifier: BSD-3-Clause
"""A copy of the backend's sources with mutants in them, built in a directory of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mutants.generated import compiler_errors
from mutants.rules import Mutant
from mutants.weave import Woven, woven

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
#: What every source with mutants includes.
SWITCHES = HERE / "mutants.h"
#: What the backend and the simulated device are built from.
SOURCES = ("CMakeLists.txt", "cmake", "csrc", "reference_backend")
_SAID = re.compile(r"^(\S+?):(\d+):(?:\d+:)? +(fatal error|error|required from|note|  )?", re.M)
# The file of the function that the next error is in, as GCC says it.
_INSIDE = re.compile(r"^(\S+?): In [^\n]*:$", re.M)


_COMPILE = "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS>"
# What Python imports at every start, in the processes that checks start, too.
_AT_START = "import mutant_switch\nmutant_switch.install()\n"


class Tree:
    """The copy, its build, and which of its lines are whose."""

    def __init__(self, folder: Path) -> None:
        self.source, self.build = folder / "tree", folder / "build"
        self.log = folder / "build.log"
        self.package = self.source / "reference_backend"
        self._woven: dict[str, Woven] = {}

    def weave(self, mutants: Mapping[int, Mutant]) -> None:
        """Write the copy; files that are as they were are not touched."""
        by_file: defaultdict[str, dict[int, Mutant]] = defaultdict(dict)
        for number, mutant in mutants.items():
            by_file[mutant.file][number] = mutant
        for file in _files():
            name = str(file.relative_to(ROOT))
            data = file.read_bytes()
            if name in by_file:
                self._woven[name] = woven(data, by_file[name])
                data = self._woven[name].text.encode()
            else:
                self._woven.pop(name, None)
            copy = self.source / name
            if not copy.is_file() or copy.read_bytes() != data:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(data)

        (self.package / "sitecustomize.py").write_text(_AT_START)

    def compile(self) -> set[int]:
        """Build everything that compiles; the numbers of the mutants that do not.

        Of headers that only generated kernels include, it is known when all else compiles.
        """
        self._configure()
        command = ["cmake", "--build", str(self.build), "--", "-k", "0"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.log.write_text(done.stdout + done.stderr)
        found = self._in_python()
        if done.returncode == 0:
            return found or self._in_generated()
        found |= self.accused(done.stdout)
        if not found:
            raise RuntimeError(f"the mutated backend does not build: see {self.log}")
        return found

    def _configure(self) -> None:
        if (self.build / "build.ninja").is_file():
            return
        options = (
            "-DSKBUILD=ON",  # without the targets of the tests
            "-DPUONE_CUDA=OFF",
            "-DPUONE_KERNEL_LEVELS=native",
            f"-DPUONE_LIB_DIR={self.build / 'lib'}",
            f"-DPUONE_EXTENSION_DIR={self.package / 'torch_puone'}",
            "-DCMAKE_CXX_FLAGS=-w",
            # After the flags: a precompiled header must be the first that is included.
            f"-DCMAKE_CXX_COMPILE_OBJECT={_COMPILE} -include {SWITCHES} -o <OBJECT> -c <SOURCE>",
            f"-DPython_EXECUTABLE={sys.executable}",
        )
        command = ["cmake", "-G", "Ninja", "-S", str(self.source), "-B", str(self.build), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"cmake cannot configure the copy:\n{done.stdout}{done.stderr}")

    def accused(self, said: str, folder: Path | None = None) -> set[int]:
        """By what the compiler said: the mutants on lines of errors; else on lines that lead there.

        Where there is none, the error may follow from another line, such as that of a declaration:
        then it is the nearest mutant before it, and the next build tells whether it was that one.
        An error in what a macro stands for has the place of the macro alone: then it may be any
        mutant of the file whose function has it. Relative paths are relative to the folder, by
        default that of the build.
        """
        folder = folder or self.build
        errors: set[int] = set()
        others: set[int] = set()
        nearest: set[int] = set()
        for path, text, kind in _SAID.findall(said):
            line = int(text)
            lines = self._lines(folder / path)
            found = [number for number, where in lines.items() if line in where]
            if not kind.endswith("error"):
                others.update(found)
                continue
            errors.update(found)
            before = [number for number, where in lines.items() if where.stop <= line]
            nearest.update(before[-1:])
        inside = {number for path in _INSIDE.findall(said) for number in self._lines(folder / path)}
        return errors or others or nearest or inside

    def _lines(self, path: Path) -> Mapping[int, range]:
        """Which lines of a file that the compiler names are whose, in the order of the file."""
        try:
            name = str(path.resolve().relative_to(self.source.resolve()))
        except ValueError:
            return {}
        return self._woven[name].lines if name in self._woven else {}

    def _in_generated(self) -> set[int]:
        said = compiler_errors(environment(self.package))
        if not said:
            return set()
        with self.log.open("a") as log:
            log.write(said)
        found = self.accused(said, self.source / "csrc")
        if not found:
            raise RuntimeError(f"what the backend generates does not compile: see {self.log}")
        return found

    def _in_python(self) -> set[int]:
        found: set[int] = set()
        for name in [name for name in self._woven if name.endswith(".py")]:
            try:
                compile(self._woven[name].text, name, "exec")
            except SyntaxError as error:
                line = error.lineno or 1
                lines = self._lines(self.source / name)
                found |= {number for number, where in lines.items() if line in where}
        return found


def environment(package: Path) -> dict[str, str]:
    """In which a process uses the backend of the package."""
    path = [package, ROOT, HERE / "path"]
    return {
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "PUONE_DRIVER": "sim",
        "CXX": str(HERE / "compiler"),
    }


@contextmanager
def modules(cold: bool) -> Iterator[dict[str, str]]:
    """In which a process finds what earlier ones compiled, or, if it starts cold, nothing."""
    if not cold:
        yield {}
        return
    with tempfile.TemporaryDirectory() as empty:
        yield {"PUONE_MODULE_CACHE": empty}


def _files() -> Iterable[Path]:
    for name in SOURCES:
        path = ROOT / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".so":
                yield file
