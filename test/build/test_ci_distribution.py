# SPDX-License-Identifier: BSD-3-Clause
"""`ci/` is a distribution of its own: what its wheel needs, has, and does without a checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from requirement_files import asked

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "ci" / "src"
FILES = ROOT / "docs" / "surface" / "examples" / "label-files.json"


def tomllib() -> Any:
    """Python's reader of TOML, which 3.10 does not have."""
    return pytest.importorskip("tomllib")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """The project table of its pyproject.toml."""
    text = (ROOT / "ci" / "pyproject.toml").read_text()
    return dict(tomllib().loads(text)["project"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: setuptools leaves files beside the sources."""
    folder = tmp_path_factory.mktemp("distribution")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    shutil.copytree(ROOT / "ci", folder / "ci", ignore=ignored)
    _pip("wheel", "--no-build-isolation", "--wheel-dir", str(folder), str(folder / "ci"))
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The wheel, installed into a directory of its own."""
    folder = wheel.parent / "installed"
    _pip("install", "--target", str(folder), str(wheel))
    return folder


def _pip(verb: str, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", verb, "--quiet", "--no-deps", "--no-index", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def run(command: list[str], installed: Path, folder: Path) -> str:
    """What a command of the installed tools prints in a directory; it must succeed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(ROOT / "ci") not in done.stdout + done.stderr
    return done.stdout


def test_it_needs_what_the_requirements_pin_and_the_suite(project: dict[str, Any]) -> None:
    needed = {canonicalize_name(r.name): r for r in map(Requirement, project["dependencies"])}
    pins = dict(asked(ROOT / "requirements" / "ci.txt"))
    assert pins.keys() == needed.keys() - {"torch-conformance"}
    for name, version in pins.items():
        assert needed[name].specifier.contains(version), f"{needed[name]} excludes {version}"


def test_its_versions_are_bounded_as_those_of_the_suite(project: dict[str, Any]) -> None:
    text = (ROOT / "conformance" / "pyproject.toml").read_text()
    suite = tomllib().loads(text)["project"]["dependencies"]
    shared = {canonicalize_name(r.name): r for r in map(Requirement, suite)}
    for need in map(Requirement, project["dependencies"]):
        beside = shared.get(canonicalize_name(need.name), need)
        assert need.specifier == beside.specifier, f"{need} here, {beside} in the suite"


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = {file.relative_to(SOURCE).as_posix() for file in SOURCE.rglob("*") if file.is_file()}
    made = re.compile(r"__pycache__/|\.egg-info/")
    assert len(files) > 300
    assert packed == {name for name in files if not made.search(name)}


def test_the_command_runs_from_any_directory(installed: Path, tmp_path: Path) -> None:
    command = installed / "bin" / "torch-backend-ci"
    said = run([str(command), "--help"], installed, tmp_path)
    assert said.startswith("usage: torch-backend-ci [-h] VERB")
    module = run([sys.executable, "-m", "torch_backend_ci", "--help"], installed, tmp_path)
    assert module == said
    where = run([sys.executable, "-c", "import torch_backend_ci as t; print(t.__file__)"],
                installed, tmp_path)  # fmt: skip
    assert Path(where.strip()).is_relative_to(installed)


def test_labels_are_planned_by_the_data_in_the_wheel(installed: Path, tmp_path: Path) -> None:
    command = [str(installed / "bin" / "torch-backend-ci"), "label", "plan", f"--files={FILES}"]
    said = run(command, installed, tmp_path)
    assert re.search(r"^surface: allocator$", said, re.MULTILINE), said


def test_the_schemas_of_documents_are_in_the_wheel(installed: Path) -> None:
    folder = installed / "torch_backend_ci" / "schema"
    found = {file.name for file in folder.glob("*.schema.json")}
    assert {"pin.schema.json", "verdict.schema.json", "findings.schema.json"} <= found
    assert (folder / "dashboard" / "run.schema.json").is_file()


def test_pins_are_those_of_the_directory_in_which_it_starts(
    installed: Path, tmp_path: Path
) -> None:
    (tmp_path / "ci").mkdir()
    shutil.copytree(ROOT / "ci" / "pins", tmp_path / "ci" / "pins")
    (tmp_path / "ci" / "pins" / "newest.yaml").unlink()
    said = run([str(installed / "bin" / "torch-backend-ci"), "pin", "show"], installed, tmp_path)
    assert re.findall(r"^(\w+): ", said, re.MULTILINE) == ["development", "nightly", "oldest"]
