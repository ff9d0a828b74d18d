# SPDX-License-Identifier: BSD-3-Clause
"""What a verb writes is there as a whole or not at all, and nothing else is harmed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from torch_backend_ci import output
from torch_backend_ci.errors import CiError


def test_the_old_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    output.write(target, b"new")
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_disk_that_is_full_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")

    def full(path: Path, data: bytes) -> int:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(CiError, match=r"cannot write .*report\.json: No space left on device"):
        output.write(target, b"new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_is_missing_is_an_error_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(CiError, match="No such file or directory"):
        output.write(tmp_path / "missing" / "report.json", b"new")
    assert not (tmp_path / "missing").exists()


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    output.write(pipe, b"text")
    assert os.read(reader, 100) == b"text"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    os.close(reader)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    output.write(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_the_umask_decides_who_may_read(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        output.write(tmp_path / "report.json", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "report.json").stat().st_mode) == 0o640
