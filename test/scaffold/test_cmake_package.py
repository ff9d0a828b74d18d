# SPDX-License-Identifier: BSD-3-Clause
"""The CMake package that a wheel carries: other projects build with it, and the scaffold works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scaffolding import ROOT, TOOL, contents, written

from torch_puone.cmake_dir import cmake_dir

DOCUMENT = (ROOT / "docs/own-backend.md").read_text()

BACKEND = """
#include <c10/core/DeviceType.h>
static const bool named = (c10::register_privateuse1_backend("mychip"), true);
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel has of the scaffold: CMake's part of the installation, and the package's."""
    directory = tmp_path_factory.mktemp("wheel")
    install = ["cmake", "--install", str(ROOT / "build"), "--component", "scaffold"]
    subprocess.run([*install, "--prefix", str(directory)], check=True, capture_output=True)
    tool = directory / "torch_puone/new"
    shutil.copytree(TOOL, tool, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TOOL.parent / "_version.py", tool.parent)
    shutil.copy(TOOL.parent / "cmake_dir.py", tool.parent)
    (tool.parent / "__init__.py").write_text("")
    return directory


def test_a_wheel_writes_the_same_repository_as_the_checkout(wheel: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(wheel / "torch_puone/new"), "mychip", "--out", "mychip"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "mychip") == contents(written(tmp_path / "other"))


@pytest.mark.nightly
def test_the_directory_is_printed() -> None:
    command = [sys.executable, "-m", "torch_puone.cmake_dir"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == f"{cmake_dir()}\n"
    assert (cmake_dir() / "puone-config.cmake").is_file()


def built(source: Path, where: Path, target: str) -> subprocess.CompletedProcess[str]:
    """Configure a project that finds the package of `where`, and build a target."""
    build = source / "build"
    environment = os.environ | {"PYTHONPATH": str(where)}
    subprocess.run(
        [
            *("cmake", "-S", str(source), "-B", str(build), "-G", "Ninja"),
            *(f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"),
        ],
        env=environment,
        check=True,
        capture_output=True,
    )
    command = ["cmake", "--build", str(build), "--target", target]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.nightly
def test_the_documented_project_builds_with_the_package_of_a_wheel(
    wheel: Path, tmp_path: Path
) -> None:
    (block,) = re.findall(r"^```cmake\n(.*?)^```", DOCUMENT, re.S | re.M)
    (tmp_path / "CMakeLists.txt").write_text(block)
    shutil.copy(ROOT / "csrc/drivers/template/template.c", tmp_path / "driver.c")
    (tmp_path / "backend.cpp").write_text(BACKEND)
    done = built(tmp_path, wheel, "all")
    assert done.returncode == 0, done.stdout
    libraries = {path.name for path in (tmp_path / "build/lib").iterdir()}
    assert libraries == {"libpuone_mychip.so", "libtorch_mychip.so"}
    code = f"""
import ctypes, torch
ctypes.CDLL({str(tmp_path / "build/lib/libtorch_mychip.so")!r})
print(torch._C._get_privateuse1_backend_name())
"""
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
    )
    assert loaded.stdout == "mychip\n", loaded.stderr


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("puone_add_driver(SOURCES driver.c)", "puone_add_driver was called without NAME"),
        ("puone_add_driver(mychip SOURCES driver.c)", "unknown arguments: mychip"),
        ("puone_add_backend(NAME x)", "puone_add_backend was called without SOURCES"),
        ("puone_add_kernels(NAME SOURCES x.cpp)", "without values of NAME"),
    ],
)
def test_a_wrong_call_is_named(call: str, said: str, tmp_path: Path) -> None:
    module = ROOT / "cmake/puone-config.cmake"
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES C CXX)\n"
        "find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)\n"
        f'include("{module}")\n{call}\n'
    )
    (tmp_path / "driver.c").write_text("")
    done = subprocess.run(
        [
            *("cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build"), "-G", "Ninja"),
            f"-DPython_EXECUTABLE={sys.executable}",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())
