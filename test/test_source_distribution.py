# SPDX-License-Identifier: BSD-3-Clause
"""What is released of the backend: its source, all of it and nothing else."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest
from scikit_build_core.build import build_sdist

ROOT = Path(__file__).parents[1]
FOLDERS = ("cmake", "csrc", "reference_backend")
FILES = ("CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml")


def test_the_source_distribution_is_what_git_would_keep_of_the_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    archive = tmp_path / build_sdist(str(tmp_path))
    with tarfile.open(archive) as opened:
        names = {member.name.partition("/")[2] for member in opened if member.isfile()}
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    known = subprocess.run(
        [*command, *FOLDERS, *FILES], check=True, capture_output=True, text=True
    ).stdout
    assert names - {"PKG-INFO"} == set(filter(None, known.split("\0")))
