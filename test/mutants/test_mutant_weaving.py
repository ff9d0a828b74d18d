# SPDX-License-Identifier: BSD-3-Clause
"""Many mutants in one program: a number switches one of them on, and none is on without it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from mutants.grammar import Source
from mutants.rules import Mutant, mutants
from mutants.tree import ROOT, Tree
from mutants.weave import apart, woven

HERE = Path(__file__).resolve().parent
SWITCH = HERE / "path"

CPP = """#include <cstdio>
#include <mutex>
#include <algorithm>
#include <optional>
std::mutex lock;
bool positive(std::optional<int> n) {
  if (n) n = *n - 1;
  return n && *n > 0;
}
int twice(int n) {
  std::lock_guard<std::mutex> guard(lock);
  if (n < 0) {
    return
      -n;
  }
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += 2;
  }
  return sum;
}
int main() { std::printf("%d %d %d", twice(3), std::max(1, twice(-4)), positive(1)); }
"""
PYTHON = """def twice(n):
    total = 0
    for _ in range(n):
        total += 2
    return total

print(twice(3) if twice(2) == 4 else -1, end="")
"""


def batches(name: str, text: str) -> Iterator[dict[int, Mutant]]:
    """All of a file, so many at a time as do not overlap; but one, that is no program."""
    every = mutants(Source(name, text.encode()))
    left = [mutant for mutant in every if not mutant.instead.startswith("std::printf(twice")]
    while left:
        taken = list(apart(left))
        yield dict(enumerate(taken))
        left = [mutant for mutant in left if mutant not in taken]


def run(command: list[str], number: int | None, marks: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(SWITCH), "PUONE_MUTANTS_REACHED": str(marks)}
    if number is not None:
        env["PUONE_MUTANT"] = str(number)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    file = tmp_path / "marks"
    file.write_bytes(bytes(65536))
    return file


def test_each_one_of_a_cpp_program_is_switched_on_by_its_number(
    tmp_path: Path, marks: Path
) -> None:
    said: dict[str, str] = {}
    for chosen in batches("a.cpp", CPP):
        source, program = tmp_path / "a.cpp", tmp_path / "a"
        source.write_text(woven(CPP.encode(), chosen).text)
        command = ["c++", "-std=c++20", "-include", str(HERE / "mutants.h"), "-o", str(program)]
        subprocess.run([*command, str(source), "-lpthread"], check=True)
        marks.write_bytes(bytes(65536))
        assert run([str(program)], None, marks) == "6 4 0"
        assert [n for n, mark in enumerate(marks.read_bytes()) if mark] == list(chosen)
        said |= {str(chosen[n]): run([str(program)], n, marks) for n in chosen}
    assert said["a.cpp:17: operator: `i < n` -> `i <= n`"] == "8 4 0"
    assert said["a.cpp:14: lost -: `-n` -> `n`"] == "6 1 0"
    assert said["a.cpp:18: constant: `2` -> `(2 + 1)`"] == "9 4 0"
    assert said["a.cpp:22: call: `std::max(1, twice(-4))` -> `std::min(1, twice(-4))`"] == "6 1 0"
    assert said["a.cpp:8: one side: `n && *n > 0` -> `n`"] == "6 4 1"
    assert any("lost guard" in name and text == "6 4 0" for name, text in said.items())
    assert len(said) > 20 and sum(text != "6 4 0" for text in said.values()) > len(said) / 2


def test_what_the_backend_generates_compiles_with_headers_that_have_mutants_in_them(
    tmp_path: Path, marks: Path
) -> None:
    generated = '#include <cstdio>\nint main() { std::printf(::puone_mutants::on(7) ? "a" : "b"); }'
    program = str(tmp_path / "a.out")
    command = [str(HERE / "compiler"), "-O1", "-x", "c++", "-", "-o", program]
    subprocess.run(command, input=generated, text=True, check=True)
    assert run([program], 7, marks) == "a"
    assert run([program], 8, marks) == "b"


def test_each_one_of_a_python_module_is_switched_on_by_its_number(
    tmp_path: Path, marks: Path
) -> None:
    said: dict[str, str] = {}
    for chosen in batches("a.py", PYTHON):
        source = tmp_path / "a.py"
        source.write_text(woven(PYTHON.encode(), chosen).text)
        start = f"import mutant_switch as m, runpy; m.install(); runpy.run_path({str(source)!r})"
        command = [sys.executable, "-c", start]
        marks.write_bytes(bytes(65536))
        assert run(command, None, marks) == "6"
        assert [n for n, mark in enumerate(marks.read_bytes()) if mark] == list(chosen)
        said |= {str(chosen[n]): run(command, n, marks) for n in chosen}
    assert said["a.py:4: constant: `2` -> `(2 + 1)`"] == "-1"
    assert len(said) > 5 and "6" not in said.values()


def test_the_lines_of_each_one_are_known_where_text_was_added() -> None:
    for chosen in batches("a.cpp", CPP):
        made = woven(CPP.encode(), chosen)
        written = made.text.splitlines()
        for number, lines in made.lines.items():
            assert f"on({number})" in "\n".join(written[line - 1] for line in lines)


def test_overlapping_ones_are_not_taken_together() -> None:
    every = list(mutants(Source("a.cpp", CPP.encode())))
    taken = sorted(apart(every), key=lambda mutant: mutant.start)
    assert len(taken) < len(every)
    assert all(one.end <= other.start for one, other in pairwise(taken))


@pytest.mark.parametrize("directory", ["{source}/", "../tree/"])
def test_an_error_accuses_the_one_on_its_line_wherever_the_compiler_says_it_is(
    tmp_path: Path, directory: str
) -> None:
    tree = Tree(tmp_path)
    name = "csrc/kernels/host/scan.h"
    chosen = dict(enumerate(apart(mutants(Source(name, (ROOT / name).read_bytes())))))
    tree.weave(chosen)
    file = directory.format(source=tree.source) + name
    line = (tree.source / name).read_text().partition("on(3)")[0].count("\n") + 1
    said = f"{file}:{line}:45: error: cannot convert\n{file}:1:2: note: declared here\n"
    assert 3 in tree.accused(said)
    assert len(tree.accused(said)) < 4
    assert not tree.accused("/usr/include/stdio.h:3:1: error: no\n")


def test_an_error_on_a_line_without_any_accuses_the_nearest_one_before_it(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    name = "csrc/kernels/host/scan.h"
    chosen = dict(enumerate(apart(mutants(Source(name, (ROOT / name).read_bytes())))))
    # Two of them, apart: between them are lines of neither.
    first, last = 0, len(chosen) - 1
    tree.weave({number: chosen[number] for number in (first, last)})
    text = (tree.source / name).read_text()
    line = text.partition(f"on({last})")[0].count("\n")
    assert tree.accused(f"../tree/{name}:{line}:5: error: not declared\n") == {first}
    end = text.count("\n")
    assert tree.accused(f"../tree/{name}:{end}:5: error: not declared\n") == {last}
    assert not tree.accused(f"../tree/{name}:1:5: error: not declared\n")


def test_an_error_in_a_macro_accuses_the_mutants_of_the_function_s_file(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    name = "csrc/runtime/launch_debugging.cpp"
    chosen = dict(enumerate(apart(mutants(Source(name, (ROOT / name).read_bytes())))))
    tree.weave(chosen)
    said = (
        f"../tree/{name}: In function 'void puone::debugLaunches(puone_hal_api&)':\n"
        "../tree/csrc/hal/hal.h:473:31: error: invalid initialization of reference\n"
    )
    assert tree.accused(said) == set(chosen)
