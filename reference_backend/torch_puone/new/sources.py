# SPDX-License-Identifier: BSD-3-Clause
"""Which files of this project a backend starts from, and where they are.

They are the skeleton of docs/copying.md with a driver over host memory. A checkout has them in
their places; a wheel carries them beside this file, in the same places.
"""

from __future__ import annotations

import re
from pathlib import Path

PATTERNS = (
    "CMakeLists.txt",
    "LICENSE",
    "pyproject.toml",
    "cmake/*",
    "csrc/definitions.py",
    "csrc/hal/**/*",
    "csrc/runtime/*",
    "csrc/aten/*.*",
    "csrc/aten/core/*",
    "csrc/autocast/*",
    "csrc/profiler/*",
    "csrc/graph/*",
    "csrc/sanitizer/*",
    "csrc/distributed/*",
    "csrc/extension/**/*",
    "csrc/bindings/**/*",
    "csrc/drivers/CMakeLists.txt",
    "csrc/drivers/common/error.cpp",
    "csrc/drivers/host/*",
    "reference_backend/build_backend.py",
    "reference_backend/torch-stubs/*",
    "reference_backend/torch_puone/**/*",
)
# Of another driver, of this tool itself, built in place.
EXCLUDED = re.compile(
    r"cmake/cuda\.cmake|reference_backend/torch_puone/(?:schedules\.py|cmake_dir\.py|_build\.py"
    r"|(?:new|lib)/.*|[^/]*\.so)|(?:.*/)?__pycache__/.*"
)
TABLE = "csrc/aten/operators.yaml"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def root() -> Path:
    """The directory that the paths are relative to."""
    carried = Path(__file__).with_name("sources")
    return carried if carried.is_dir() else Path(__file__).resolve().parents[3]


def paths(base: Path) -> list[str]:
    """The files, sorted, relative to `base`."""
    found = {
        path.relative_to(base).as_posix()
        for pattern in PATTERNS
        for path in base.glob(pattern)
        if path.is_file()
    }
    kept = {path for path in found if EXCLUDED.fullmatch(path) is None}
    kept |= {f"csrc/aten/{source}" for source in core_sources((base / TABLE).read_text())}
    return sorted(_with_headers(base, kept))


def core_sources(table: str) -> list[str]:
    """The sources of operators besides those of core/ that the table says the core has."""
    (listed,) = re.findall(r"^core:\n((?:- .*\n)+)", table, re.MULTILINE)
    return re.findall(r"^- ([\w/.]+)", listed, re.MULTILINE)


def _with_headers(base: Path, files: set[str]) -> set[str]:
    """The files, and the headers of this project that they include, and so on."""
    waiting = list(files)
    found = set(files)
    while waiting:
        path = waiting.pop()
        if not path.endswith((".h", ".cpp")):
            continue
        for header in INCLUDE.findall((base / path).read_text()):
            name = f"csrc/{header}"
            if name not in found and (base / name).is_file():
                found.add(name)
                waiting.append(name)
    return found


def identifiers(base: Path) -> set[str]:
    """Words of the C and C++ sources, without their comments and strings."""
    words: set[str] = set()
    for path in paths(base):
        if path.endswith((".h", ".cpp")):
            code = COMMENT_OR_STRING.sub(" ", (base / path).read_text())
            words.update(re.findall(r"[A-Za-z_]\w*", code))
    return words


if __name__ == "__main__":  # for CMakeLists.txt, which puts them into a wheel
    print("\n".join(paths(root())))
