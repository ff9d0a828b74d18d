# SPDX-License-Identifier: BSD-3-Clause
"""Which kernels are compiled: for this processor only, or for all of its kind."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def commands(folder: Path, *options: str) -> dict[str, str]:
    """The command for each object file of the drivers, configured with these options."""
    cmake = shutil.which("cmake")
    assert cmake
    words = ["-S", str(ROOT / "csrc/drivers"), "-B", str(folder), "-G", "Ninja"]
    fixed = ["-DPUONE_CUDA=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    subprocess.run([cmake, *words, *fixed, *options], check=True, capture_output=True)
    entries = json.loads((folder / "compile_commands.json").read_text())
    return {entry["output"]: entry["command"] for entry in entries}


def levels(objects: dict[str, str]) -> set[str]:
    """The instruction sets among them."""
    return {found[1] for name in objects if (found := re.search(r"_kernels_(\w+)\.dir", name))}


@pytest.fixture(scope="module")
def native_and_all(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], ...]:
    """The commands of one build directory, configured as for the suite, and then for the rest."""
    folder = tmp_path_factory.mktemp("build")
    native = commands(folder, "-DPUONE_KERNEL_LEVELS=native")
    return native, commands(folder, "-UPUONE_KERNEL_LEVELS")


def test_the_suite_needs_one_and_it_is_the_best(
    native_and_all: tuple[dict[str, str], ...],
) -> None:
    flags = set(Path("/proc/cpuinfo").read_text().split())
    best = "v4" if "avx512vl" in flags else "v3" if "avx2" in flags else "baseline"
    assert levels(native_and_all[0]) == {best}


def test_a_driver_for_every_processor_has_all(native_and_all: tuple[dict[str, str], ...]) -> None:
    assert levels(native_and_all[1]) >= {"baseline"}
    assert levels(native_and_all[1]) >= levels(native_and_all[0])


def test_going_from_one_to_all_compiles_only_the_list_of_them_again(
    native_and_all: tuple[dict[str, str], ...],
) -> None:
    native, every = native_and_all
    changed = {Path(name).name for name in native if every[name] != native[name]}
    assert changed <= {"variants.cpp.o"}


@pytest.mark.nightly
@pytest.mark.parametrize("level", ["native", "baseline"])
def test_a_driver_of_one_instruction_set_links_without_the_others(
    tmp_path: Path, level: str
) -> None:
    objects = commands(tmp_path, f"-DPUONE_KERNEL_LEVELS={level}", "-DPUONE_KERNELS=basic")
    cmake, nm = shutil.which("cmake"), shutil.which("nm")
    assert cmake and nm
    build = [cmake, "--build", str(tmp_path), "--target", "puone_sim"]
    subprocess.run(build, check=True, capture_output=True)
    library = str(tmp_path / "lib/libpuone_sim.so")
    symbols = subprocess.run([nm, "-C", library], check=True, capture_output=True, text=True)
    linked = set(re.findall(r"puone::kernels::(\w+)::kernels\(\)", symbols.stdout))
    assert linked == levels(objects) and len(linked) == 1
