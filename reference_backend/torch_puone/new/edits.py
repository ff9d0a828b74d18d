# SPDX-License-Identifier: BSD-3-Clause
"""What differs in the sources for another backend: files left out, and texts replaced.

An edit names the exact text that it replaces, before names are changed. One that does not find its
text is an error, so that it cannot be forgotten when the text changes.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .sources import TABLE, core_sources

PACKAGE = "reference_backend/torch_puone"


class EditError(RuntimeError):
    """A text that is to be replaced is not there, or more than once: this tool is out of date."""


@dataclass(frozen=True)
class Edit:
    """`old`, which is in the file once, becomes `new`."""

    path: str
    old: str
    new: str = ""

    def apply(self, text: str) -> str:
        """The text with it; raises EditError."""
        if text.count(self.old) != 1:
            raise EditError(f"{self.path} has {text.count(self.old)} times {self.old!r}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Cut:
    """Out of the file goes what is from `first`, which is there once, to the next `last`."""

    path: str
    first: str
    last: str = ""  # the end of the file

    def apply(self, text: str) -> str:
        """The text without it; raises EditError."""
        before, _, behind = text.partition(self.first)
        if text.count(self.first) != 1 or self.last not in behind:
            raise EditError(f"{self.path} has no lines from {self.first!r} to {self.last!r}")
        if not self.last:
            return before.rstrip("\n") + "\n"
        return before + behind.partition(self.last)[2]


@dataclass(frozen=True)
class Part:
    """An integration point that a backend may be made without: its files, and what names them."""

    name: str
    what: str
    files: Sequence[str]  # patterns of a shell
    edits: Sequence[Edit | Cut] = field(default_factory=tuple)


ALWAYS = (
    Edit(
        "CMakeLists.txt",
        "  DRIVER cuda sim) # the hardware that is really there, else the simulated one\n",
        "  DRIVER host)\n",
    ),
    Edit("csrc/drivers/CMakeLists.txt", "IN ITEMS sim cuda template host)", "IN ITEMS host)"),
    Edit(
        TABLE,
        "fallback:\n",
        "fallback:\n- reason: no kernel was written yet\n  operators:\n  - div*_mode\n",
    ),
    Edit(
        "csrc/hal/hal.h",
        "the one contract between the reference backend's runtime",
        "the one contract between the backend's runtime",
    ),
    Edit(
        "csrc/hal/hal.h",
        "It\n *            is always around sim; "
        "the runtime's loader puts it around any other driver if\n",
        "The\n *            runtime's loader puts it around a driver if\n",
    ),
    Edit(
        "csrc/hal/validation.h",
        "// It is always on over sim. The loader puts it around every other driver if",
        "// The loader puts it around a driver if",
    ),
    Edit(
        "csrc/hal/generate_kernels.py",
        '        "hal_conformance/src/hal_conformance/kernels.yaml": CONTRACT.read_text(),\n',
    ),
    Edit(
        "csrc/hal/generate_kernels.py",
        "    hal_conformance/src/hal_conformance/kernels.yaml      "
        "the HAL suite's copy of the contract\n",
    ),
    Edit(
        "csrc/hal/kernels.yaml",
        "hal_conformance/src/hal_conformance/kernels.yaml is a copy of it, which\n"
        "# generate_kernels.py --update renews.",
        "generate_kernels.py --update\n# writes docs/kernels.md.",
    ),
    Edit(
        PACKAGE + "/__init__.py",
        "a reference backend for PyTorch's PrivateUse1 device.",
        "a backend for PyTorch's PrivateUse1 device.",
    ),
    Edit(PACKAGE + "/interop.py", ", as that of `sim`, makes", ", as that of `host`, makes"),
    Edit(
        "pyproject.toml",
        '"A complete, small reference backend for PyTorch\'s PrivateUse1 device"',
        '"The backend of PyTorch for the device puone"',
    ),
    Edit(
        "pyproject.toml",
        "# The driver for hardware belongs into a wheel wherever its compiler is there.\n"
        'cmake.define.PUONE_CUDA = "ON"\n',
    ),
    # The plugin for tests of applications: its schedules and faults are those of the simulator.
    Cut(
        "pyproject.toml", "# It adds nothing to runs of pytest", 'pytest_puone = "pytest_puone"\n\n'
    ),
    Edit("pyproject.toml", '  "reference_backend/pytest_puone",\n'),
    # The tests of this project, and its tools.
    Cut("CMakeLists.txt", "if(NOT SKBUILD) # for the tests only\n", "endif()\n\n"),
    Cut("CMakeLists.txt", "# What torch_puone.new makes", "endforeach()\n\n"),
    Cut("csrc/drivers/CMakeLists.txt", "if(PUONE_DRIVER_TESTS)\n", "endif()\n"),
    Edit(
        "csrc/drivers/CMakeLists.txt",
        'option(PUONE_DRIVER_TESTS "Build the drivers\' C++ tests and benchmark" OFF)\n',
    ),
    Cut("pyproject.toml", "[tool.pytest.ini_options]\n"),
)

DISTRIBUTED = Part(
    "distributed",
    "the process group",
    files=(
        "csrc/distributed/*",
        "csrc/bindings/process_group/*",
        PACKAGE + "/distributed.py",
        PACKAGE + "/_distributed.pyi",
    ),
    edits=(
        Edit(
            "CMakeLists.txt",
            """\
# Process groups, loaded by the first one.
file(GLOB process_group_bindings CONFIGURE_DEPENDS csrc/bindings/process_group/*.cpp)
puone_add_extension(NAME _distributed BACKEND torch_puone
  SOURCES ${process_group_bindings} DERIVES_FROM_TORCH)
add_dependencies(_C _distributed)
install(TARGETS _distributed DESTINATION torch_puone)

""",
        ),
        Edit(
            "CMakeLists.txt",
            "file(GLOB distributed_sources CONFIGURE_DEPENDS csrc/distributed/*.cpp)\n",
        ),
        Edit(
            "CMakeLists.txt",
            "csrc/runtime/launch_debugging.cpp csrc/runtime/module_kernel.cpp\n"
            "  csrc/distributed/native.cpp csrc/distributed/native_parts.cpp\n",
            "csrc/runtime/launch_debugging.cpp csrc/runtime/module_kernel.cpp\n",
        ),
        Edit("CMakeLists.txt", " ${distributed_sources}"),
        Edit(
            "pyproject.toml",
            """\
[project.entry-points."torch.distributed.backends"]
pccl = "torch_puone._registration:register_process_group"

""",
        ),
        Edit(PACKAGE + "/_registration.py", 'PROCESS_GROUP = "pccl"\n'),
        Edit(PACKAGE + "/_registration.py", "    register_process_group()\n"),
        Cut(PACKAGE + "/_registration.py", "def register_process_group() -> None:\n"),
        Edit(
            PACKAGE + "/_exit.py",
            """\
    # Work that waits for another process would keep what follows.
    groups = sys.modules.get(f"{__package__}._distributed")
    memory_is_free = groups is None or groups.abort_all(GRACE)
""",
        ),
        Edit(
            PACKAGE + "/_exit.py",
            """\
    # The memory that a transport sends from or receives into is left to the operating system.
    if memory_is_free:
        _C.shutdown()
""",
            "    _C.shutdown()\n",
        ),
        Edit(
            PACKAGE + "/_exit.py",
            """\
#: How long calls of process groups that were not destroyed may still take.
GRACE = timedelta(seconds=2)


""",
            "\n",
        ),
        Edit(PACKAGE + "/_exit.py", "import sys\nfrom datetime import timedelta\n"),
    ),
)

COMPILE = Part(
    "compile",
    "torch.compile and C++ extensions with kernels",
    files=(
        "csrc/extension/*",
        "csrc/bindings/module_kernel.cpp",
        "csrc/runtime/module_kernel.*",
        PACKAGE + "/_inductor/*",
        PACKAGE + "/_after_import.py",
        PACKAGE + "/cpp_extension.py",
    ),
    edits=(
        Edit("CMakeLists.txt", " csrc/runtime/module_kernel.cpp"),
        Edit(
            "CMakeLists.txt",
            """\
file(GLOB extension_sources CONFIGURE_DEPENDS csrc/extension/*.cpp)
set_source_files_properties(${extension_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
""",
        ),
        Edit("CMakeLists.txt", " ${extension_sources})", ")"),
        Edit(
            "CMakeLists.txt",
            "install(DIRECTORY csrc/extension/include/ DESTINATION torch_puone/include)\n",
        ),
        Edit("csrc/bindings/module.cpp", "  puone::bindModuleKernel(m);\n"),
        Edit("csrc/bindings/bindings.h", "void bindModuleKernel(pybind11::module_& m);\n"),
        Cut(PACKAGE + "/_C.pyi", "# kernels that are compiled while the program runs\n"),
        Edit(PACKAGE + "/__init__.py", "    _inductor,\n"),
        Edit(
            PACKAGE + "/__init__.py",
            "from ._inductor import register as _inductor_backend_init  # PyTorch 2.15 calls it\n",
        ),
        Edit(
            PACKAGE + "/__init__.py",
            "        if name in _inductor.NAMES:\n            return _inductor.register()\n",
        ),
        Edit(PACKAGE + "/__init__.py", "_inductor.follow_dynamo()\n"),
    ),
)
OPTIONAL = (DISTRIBUTED, COMPILE)

# The documents of this project quote parts of its sources; these lines mark them.
QUOTE = re.compile(r"^ *(?://|#) \[(?:quote|end): [^]]+\]\n", re.MULTILINE)


def left_out(path: str, without: Sequence[Part]) -> bool:
    """Whether the file belongs to one of the parts."""
    return any(fnmatch.fnmatch(path, pattern) for part in without for pattern in part.files)


def edited(path: str, text: str, without: Sequence[Part]) -> str:
    """The text of the file for another backend, with the names of this one."""
    edits = [*ALWAYS, *(edit for part in without for edit in part.edits)]
    for edit in edits:
        if edit.path == path:
            text = edit.apply(text)
    if path == TABLE:
        text = _rows_of(text)
    return QUOTE.sub("", text)


def _rows_of(table: str) -> str:
    """The table of operators with the rows of the core's sources alone."""
    kept = set(core_sources(table))
    blocks = re.split(r"^(?=  [\w/]+\.cpp:\n)", table, flags=re.MULTILINE)
    last, tail = re.split(r"^(?=fallback:\n)", blocks[-1], maxsplit=1, flags=re.MULTILINE)
    blocks[-1] = last
    rows = [block for block in blocks[1:] if _is_kept(block.partition(":")[0].strip(), kept)]
    return "".join([blocks[0], *rows, tail])


def _is_kept(source: str, listed: set[str]) -> bool:
    return source.startswith("core/") or source in listed
