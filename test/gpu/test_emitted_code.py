# SPDX-License-Identifier: BSD-3-Clause
"""What nvcc makes of kernels, read as PTX, which shows without a card what would be slow on one."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from suites import ROOT, needs_cuda_driver

pytestmark = needs_cuda_driver

#: Kernels that move elements of every size, and one that needs many registers.
SOURCES = ("copy", "dot", "fill", "indexing", "shape")
#: In names of kernels for elements of one byte.
BYTES = re.compile(r"I(?:[ahc]|NS[^E]*4BoolE)")
ACCESS = re.compile(r"(ld|st)\.global\S*\.[usb]8\s+(?:%\w+, )?\[(%rd\d+)(?:\+(\d+))?\]")
REGISTERS_OF_A_MULTIPROCESSOR = 65536


def _command(source: str) -> tuple[list[str], str]:
    """How the build would compile a source for cards by itself, and where."""
    for entry in json.loads((ROOT / "build/compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        if "nvcc" in words[0] and "puone_cuda_kernels" in entry["command"]:
            words[words.index(entry["file"])] = str(ROOT / f"csrc/kernels/{source}.cpp")
            return words, entry["directory"]
    raise AssertionError("the build has no command for a kernel")


@pytest.fixture(scope="module", params=SOURCES)
def ptx(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    words, directory = _command(request.param)
    output = tmp_path_factory.mktemp("ptx") / f"{request.param}.ptx"
    kept = [word for word in words if word != "-c" and not word.startswith("--generate-code")]
    kept[kept.index("-o") + 1] = str(output)
    for depend in ("-MD", "-MT", "-MF"):
        if depend in kept:
            at = kept.index(depend)
            del kept[at : at + (1 if depend == "-MD" else 2)]
    subprocess.run([*kept, "-ptx", "-arch=sm_90"], cwd=directory, check=True, capture_output=True)
    return output


def _kernels(ptx: Path) -> dict[str, str]:
    found = re.findall(r"\.entry (\w+)(.*?\n\})", ptx.read_text(), re.DOTALL)
    assert found, f"{ptx} has no kernels"
    return dict(found)


def _has_neighbours(places: set[int]) -> bool:
    return any({at, at + 1, at + 2, at + 3} <= places for at in places)


def test_elements_are_not_moved_byte_by_byte(ptx: Path) -> None:
    """A fill of 16 bytes was 16 stores, and took twice as long on a card."""
    slow = []
    for name, body in _kernels(ptx).items():
        if BYTES.search(name):
            continue
        places = defaultdict(set)
        for kind, base, place in ACCESS.findall(body):
            places[kind, base].add(int(place or 0))
        if any(map(_has_neighbours, places.values())):
            slow.append(name)
    assert slow == []


def test_blocks_find_the_registers_that_they_need(ptx: Path) -> None:
    """The compiler was not told of 512 threads, and a card refused the launch."""
    kernels = _kernels(ptx)
    threads = {name: re.findall(r"\.maxntid\s+(\d+)", body) for name, body in kernels.items()}
    assert [name for name, bound in threads.items() if not bound] == []
    nvcc = _command(ptx.stem)[0][0]
    done = subprocess.run(
        [nvcc, "-cubin", "-arch=sm_90", "-Xptxas=-v", ptx, "-o", ptx.with_suffix(".cubin")],
        capture_output=True,
        text=True,
        check=True,
    )
    said = re.findall(r"Compiling entry function '(\w+)'.*?Used (\d+) reg", done.stderr, re.DOTALL)
    assert {name for name, _ in said} == set(kernels)
    for name, registers in said:
        assert int(registers) * int(threads[name][0]) <= REGISTERS_OF_A_MULTIPROCESSOR, name
