# SPDX-License-Identifier: BSD-3-Clause
"""docs/copying.md names the files of the skeleton, each once, in an order that compiles."""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from torch_puone.new import sources

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "copying.md").read_text()

# What CMake reads and compiles nothing of, and what pip does.
BUILD = {
    "CMakeLists.txt",
    "cmake/_build.py.in",
    "cmake/backend.cmake",
    "cmake/driver.cmake",
    "cmake/driver.map",
    "cmake/puone-config.cmake",
    "cmake/torch.cmake",
    "csrc/aten/generate_operators.py",
    "csrc/aten/operators.cmake",
    "csrc/aten/operators.yaml",
    "csrc/definitions.py",
    "csrc/hal/CMakeLists.txt",
    "csrc/hal/generate_kernels.py",
    "csrc/hal/kernel_accesses.py",
    "csrc/hal/kernels.cmake",
    "csrc/hal/kernels.yaml",
    "csrc/hal/validation/sources.cmake",
    "reference_backend/build_backend.py",
}
OBJECTS = (
    r" -o \S*\b(?:CMakeFiles/torch_puone|CMakeFiles/_C|CMakeFiles/_distributed|puone_hal)\.dir/"
)
FOLDERS = (
    *("csrc/runtime", "csrc/aten/core", "csrc/autocast", "csrc/bindings"),
    *("csrc/hal", "csrc/hal/validation"),
)
PACKAGE = ("reference_backend/torch_puone", "reference_backend/torch-stubs")
# What makes a copy, and what finds its CMake package: no part of one.
SCAFFOLD = ROOT / "reference_backend/torch_puone/new"
TOOLS = {"reference_backend/torch_puone/cmake_dir.py"}
# What the scaffold leaves out, because it is about the simulator; and what no step is about.
NOT_COPIED = {"reference_backend/torch_puone/schedules.py"}
OF_NO_STEP = {"LICENSE", "pyproject.toml"}
# Headers that are generated when the project is configured.
GENERATED = re.compile(r"kernels/args(/\w+)?\.h|runtime/kernels\.h|aten/\w+/\w+_ops\.h")
# How far the lines may be from what is stated: not every change has to be one of the guide, too.
TOLERANCE = 0.1
TOLERANCE_OF_TOTAL = 0.03


@dataclass(frozen=True)
class Step:
    """A chapter of the guide that has files."""

    number: int
    title: str
    text: str

    @property
    def files(self) -> list[str]:
        """The files in the first column of its table."""
        rows = re.findall(r"^\| (`.+?`) \|", self.text, re.MULTILINE)
        return [
            file for row in rows for name in re.findall(r"`(.+?)`", row) for file in spelt(name)
        ]


def spelt(name: str) -> Iterator[str]:
    """a.{h,cpp} is a.h and a.cpp."""
    parts = [part.split(",") for part in re.split(r"[{}]", name)]
    yield from map("".join, itertools.product(*parts))


STEPS = [
    Step(int(number), title, body)
    for number, title, body in re.findall(
        r"^## (\d+)\. ([^\n]+)\n(.*?)(?=^## )", TEXT, re.DOTALL | re.MULTILINE
    )
]
STEP_OF = {file: step.number for step in STEPS for file in step.files}


def lines(file: str) -> int:
    """How many the file has."""
    return len((ROOT / file).read_text().splitlines())


def includes(file: str) -> Iterator[str]:
    """The headers of this project that a source includes, without those that are generated."""
    for name in re.findall(r'^#include "([^"]+\.h)"', (ROOT / file).read_text(), re.MULTILINE):
        if not GENERATED.fullmatch(name):
            yield f"csrc/{name}"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The sources that a build with PUONE_OPERATORS=core compiles for the backend."""
    folder = tmp_path_factory.mktemp("skeleton")
    cmake = shutil.which("cmake")
    assert cmake
    options = {
        "Python_EXECUTABLE": sys.executable,
        "PUONE_OPERATORS": "core",
        "PUONE_CUDA": "OFF",
        "PUONE_NVCC": "",
        "PUONE_KERNEL_LEVELS": "baseline",
        "PUONE_EXTENSION_DIR": str(folder / "extension"),
        "CMAKE_UNITY_BUILD": "OFF",  # each source by its own name
    }
    definitions = [f"-D{name}={value}" for name, value in options.items()]
    done = subprocess.run(
        [cmake, "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", *definitions],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    commands = json.loads((folder / "compile_commands.json").read_text())
    sources = {Path(each["file"]) for each in commands if re.search(OBJECTS, each["command"])}
    return {file.relative_to(ROOT).as_posix() for file in sources if file.is_relative_to(ROOT)}


def skeleton(compiled: set[str]) -> set[str]:
    """Its sources, the headers they include, the build, and the Python package."""
    found: set[str] = set()
    waiting = set(compiled)
    while waiting:
        found |= waiting
        waiting = {header for file in waiting for header in includes(file)} - found
    python = {
        path.relative_to(ROOT).as_posix()
        for folder in PACKAGE
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".pyi", ".typed"} and path.name != "_build.py"
        if path.relative_to(ROOT).as_posix() not in TOOLS and SCAFFOLD not in path.parents
    }
    return found | BUILD | python


def test_the_guide_names_what_the_build_of_the_core_consists_of(compiled: set[str]) -> None:
    assert len(compiled) > 50
    assert set(STEP_OF) == skeleton(compiled)


def test_the_scaffold_copies_what_the_guide_names() -> None:
    of_a_driver = ("csrc/drivers/", "csrc/kernels/")
    copied = {path for path in sources.paths(ROOT) if not path.startswith(of_a_driver)}
    assert copied - OF_NO_STEP == set(STEP_OF) - NOT_COPIED


def test_a_file_is_in_one_step() -> None:
    counted = Counter(file for step in STEPS for file in step.files)
    assert {file: number for file, number in counted.items() if number > 1} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_file_of_these_folders_is_left_out(folder: str) -> None:
    there = {f"{folder}/{path.name}" for path in (ROOT / folder).iterdir() if path.is_file()}
    assert len(there) > 1
    assert there - set(STEP_OF) == set()


def test_a_step_includes_headers_of_its_own_and_of_steps_before() -> None:
    early = {
        (file, header)
        for file, number in STEP_OF.items()
        if file.endswith((".h", ".cpp"))
        for header in includes(file)
        if STEP_OF[header] > number
    }
    assert early == set()


def stated() -> dict[int, tuple[str, int, int, str]]:
    """(title, files, lines, chapters) of each step, as the first table says."""
    row = r"^\| \[(\d+)\. ([^]]+)\]\(#([^)]+)\) \| (\d+) \| ([\d,]+) \|.*\| ([^|]*) \|$"
    result = {}
    for number, title, anchor, files, count, chapters in re.findall(row, TEXT, re.MULTILINE):
        assert anchor == re.sub(r"[^\w -]", "", f"{number}. {title}".lower()).replace(" ", "-")
        result[int(number)] = title, int(files), int(count.replace(",", "")), chapters
    return result


def test_the_table_has_every_step() -> None:
    assert [step.number for step in STEPS] == list(range(1, len(STEPS) + 1))
    assert {number: row[0] for number, row in stated().items()} == {
        step.number: step.title for step in STEPS
    }


@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step.number))
def test_the_numbers_of_a_step_are_true(step: Step) -> None:
    _, files, count, _ = stated()[step.number]
    actual = sum(map(lines, step.files))
    assert files == len(step.files)
    assert abs(count - actual) <= max(20, TOLERANCE * actual), f"{actual} lines"


def test_the_numbers_of_the_skeleton_are_true() -> None:
    found = re.search(r"The skeleton has (\d+) files and about ([\d,]+) lines", TEXT)
    assert found
    actual = sum(map(lines, STEP_OF))
    assert int(found[1]) == len(STEP_OF)
    assert abs(int(found[2].replace(",", "")) - actual) <= TOLERANCE_OF_TOTAL * actual, actual


def test_the_chapters_of_the_suite_exist() -> None:
    named = set(re.findall(r"`(\w+)/\*`", TEXT))
    chapters = ROOT / "conformance/src/torch_conformance/spec/requirements"
    there = {path.stem for path in chapters.glob("*.yaml")}
    assert len(named) > 15
    assert named <= there


def test_the_headers_of_torch_exist() -> None:
    torch = importlib.util.find_spec("torch")
    assert torch and torch.origin
    folder = Path(torch.origin).parent / "include"
    named = set(re.findall(r"`((?:c10|ATen|torch)/[\w/]+\.h)`", TEXT))
    assert len(named) > 10
    assert {name for name in named if not (folder / name).is_file()} == set()
