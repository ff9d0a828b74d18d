# SPDX-License-Identifier: BSD-3-Clause
"""What jobs with rights install is locked: every package, by the hashes of its files."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from requirement_files import asked

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "requirements"
LOCKED = sorted((FOLDER / "locked").glob("*.txt"))
# What jobs with `target: github-tools` run (.github/workflows).
VERBS = (
    "torch_backend_ci.label.cli",
    "torch_backend_ci.report.cli",
    "torch_backend_ci.feed.cli",
    "torch_backend_ci.relay.cli",
    "torch_backend_ci.publish",
)
ENTRY = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; (?P<marker>[^\\]+))?")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def locked(path: Path) -> dict[str, str]:
    """The versions by name; each entry must have hashes, and nothing else may be there."""
    versions = {}
    for entry in path.read_text().replace("\\\n", " ").splitlines():
        said, *hashes = re.split(r" +(?=--hash=)", entry.strip())
        assert hashes and all(map(HASH.fullmatch, hashes)), entry[:80]
        found = ENTRY.fullmatch(said.strip())
        assert found, said
        versions[found["name"]] = found["version"]
    return versions


@pytest.mark.parametrize("path", LOCKED, ids=lambda path: path.stem)
def test_what_is_asked_for_is_locked_in_its_version(path: Path) -> None:
    wanted = dict(asked(FOLDER / path.name))
    assert wanted
    assert wanted.items() <= locked(path).items(), "run `make locked`"


@pytest.mark.parametrize("path", LOCKED, ids=lambda path: path.stem)
def test_whatever_these_need_is_locked_too(path: Path) -> None:
    versions = locked(path)
    for name in versions:
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # of another system
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                assert canonicalize_name(need.name) in versions, f"{name} needs {need}"


@pytest.mark.parametrize("path", LOCKED, ids=lambda path: path.stem)
def test_no_index_is_named(path: Path) -> None:
    assert "://" not in path.read_text()


def test_there_is_a_closure_of_each_set_of_tools_and_they_agree() -> None:
    assert [path.stem for path in LOCKED] == ["ci", "github"]
    few, all_ = (locked(FOLDER / "locked" / f"{name}.txt") for name in ("github", "ci"))
    assert few.items() < all_.items()


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_that_hold_rights_import_only_what_is_locked_for_them(verb: str) -> None:
    code = (
        f"import sys, {verb}\nimport importlib.metadata as about\n"
        "owners = about.packages_distributions()\n"
        "print(*{o for m in list(sys.modules) for o in owners.get(m.partition('.')[0], ())})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    imported = {canonicalize_name(name) for name in done.stdout.split()}
    few = locked(FOLDER / "locked" / "github.txt")
    # Ours lie beside; setuptools puts itself in the place of distutils at each start.
    ours = {"torch-backend-ci", "torch-conformance", "setuptools"}
    assert imported - ours <= few.keys()
