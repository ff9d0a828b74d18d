# SPDX-License-Identifier: BSD-3-Clause
"""What a machine without a network is brought."""

from __future__ import annotations

import ast
import platform
import sys
import zipfile
from pathlib import Path

from bench.gpu import wheels
from bench.gpu.steps.conformance import MODULES

ROOT = Path(__file__).resolve().parents[2]


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


def test_compiled_wheels_are_unpacked_for_this_python_and_processor(tmp_path: Path) -> None:
    ours = f"cp{sys.version_info.major}{sys.version_info.minor}"
    machine = platform.machine()
    fits = f"fast-1.0-{ours}-{ours}-manylinux_2_17_{machine}.manylinux2014_{machine}.whl"
    with zipfile.ZipFile(tmp_path / fits, "w") as wheel:
        wheel.writestr("fast/__init__.py", "")
    for other in (f"cp39-cp39-linux_{machine}", f"{ours}-{ours}-linux_alpha"):
        (tmp_path / f"fast-1.0-{other}.whl").write_bytes(b"not even a wheel")
    assert wheels.unpack(tmp_path / "site", tmp_path) == [fits]


def test_every_library_that_the_suite_imports_is_asked_for() -> None:
    """A step without one of them is `not run`, and says so; it does not break."""
    sources = (ROOT / "conformance" / "src").rglob("*.py")
    top = [node for path in sources for node in ast.parse(path.read_text()).body]
    imported = {name for node in top for name in _imported(node)}
    ours = {"torch", "torch_conformance", *sys.stdlib_module_names}
    assert imported - ours - {"_pytest", "xdist"} <= set(MODULES)


def _imported(node: ast.stmt) -> list[str]:
    """The packages that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module.split(".")[0]]
    return []


def test_without_wheels_nothing_is_unpacked(tmp_path: Path) -> None:
    assert wheels.unpack(tmp_path / "site", tmp_path / "absent") == []
