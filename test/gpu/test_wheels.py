# SPDX-License-Identifier: BSD-3-Clause
"""What a machine without a network is brought."""

from __future__ import annotations

import zipfile
from pathlib import Path

from bench.gpu import wheels


def test_what_is_brought_is_pinned() -> None:
    assert all("==" in requirement for requirement in wheels.pinned(wheels.BROUGHT))


def test_a_module_is_missing_until_its_wheel_is_unpacked(tmp_path: Path) -> None:
    site, folder = tmp_path / "site", tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "brought-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("brought_module/__init__.py", "")
        wheel.writestr("brought_file.py", "")
    wanted = ("sys", "brought_module", "brought_file")
    assert wheels.missing(wanted, site) == ["brought_module", "brought_file"]
    assert wheels.unpack(site, folder) == ["brought-1.0-py3-none-any.whl"]
    assert wheels.missing(wanted, site) == []


def test_wheels_with_compiled_code_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "fast-1.0-cp312-cp312-linux_x86_64.whl").write_bytes(b"not even a wheel")
    assert wheels.unpack(tmp_path / "site", tmp_path) == []


def test_without_wheels_nothing_is_unpacked(tmp_path: Path) -> None:
    assert wheels.unpack(tmp_path / "site", tmp_path / "absent") == []
