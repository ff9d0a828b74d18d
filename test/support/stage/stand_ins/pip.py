# SPDX-License-Identifier: BSD-3-Clause
"""Stands in for pip on a machine where workflows are played: `python -m pip`, `pip`.

What is asked for is there already, and nothing is fetched or compiled. What pip would refuse is
refused: a requirements file that is not there, a directory that is not a project. A project of
Python is installed by a path to its directory and by its entry points; a wheel is a file without
contents.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import sysconfig
from pathlib import Path
from typing import Any

tomllib: Any = importlib.import_module("tomllib")  # of Python 3.11


def main() -> None:
    parser = argparse.ArgumentParser(prog="pip")
    parser.add_argument("verb", choices=["install", "wheel"])
    parser.add_argument("--requirement", "-r", action="append", default=[])
    parser.add_argument("--constraint", "-c", action="append", default=[])
    parser.add_argument("--editable", "-e", action="append", default=[])
    parser.add_argument("--wheel-dir", type=Path)
    parser.add_argument("--target")
    parser.add_argument("--config-settings", action="append")
    parser.add_argument("--extra-index-url")
    parser.add_argument("--progress-bar")
    parser.add_argument("--retries")
    for switch in (
        *("--quiet", "--no-deps", "--no-build-isolation", "--require-hashes"),
        *("--no-compile", "--no-input", "--disable-pip-version-check"),
    ):
        parser.add_argument(switch, action="store_true")
    parser.add_argument("what", nargs="*")
    args = parser.parse_intermixed_args()
    for file in [*args.requirement, *args.constraint]:
        _requirements(file)
    for what in [*args.editable, *args.what]:
        if "/" in what or what == ".":
            _project(Path(what.partition("[")[0]), args.wheel_dir)
    if not (args.requirement or args.editable or args.what):
        sys.exit("ERROR: You must give at least one requirement")


def _requirements(file: str) -> None:
    try:
        text = Path(file).read_text()
    except OSError as error:
        sys.exit(f"ERROR: Could not open requirements file: {error}")
    if not [line for line in text.splitlines() if line.strip() and not line.startswith("#")]:
        sys.exit(f"ERROR: {file} asks for nothing")


def _project(folder: Path, wheels: Path | None) -> None:
    try:
        document = tomllib.loads((folder / "pyproject.toml").read_text())
        project = document["project"]
    except (OSError, KeyError):
        sys.exit(f"ERROR: {folder} does not appear to be a Python project")
    name, version = project["name"].replace("-", "_"), project.get("version", "0")
    if wheels:
        wheels.mkdir(parents=True, exist_ok=True)
        (wheels / f"{name}-{version}-py3-none-any.whl").touch()
    else:
        tool = document.get("tool", {})
        link = f"_editable_skbc_{name}" if "scikit-build" in tool else name
        _install(_source(folder.resolve(), tool), link, name, version, project)


def _source(folder: Path, tool: dict[str, Any]) -> Path:
    """The directory that has the project's packages."""
    for package in tool.get("scikit-build", {}).get("wheel", {}).get("packages", []):
        return (folder / package).parent
    return folder / "src" if (folder / "src").is_dir() else folder


def _install(source: Path, link: str, name: str, version: str, project: dict[str, Any]) -> None:
    packages = Path(sysconfig.get_paths()["purelib"])
    (packages / f"{link}.pth").write_text(f"{source}\n")
    about = packages / f"{name}-{version}.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = project.get("entry-points", {})
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
