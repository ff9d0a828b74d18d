# SPDX-License-Identifier: BSD-3-Clause
"""The machines on which our workflows are played: nothing is compiled, fetched or installed there.

Make's recipes run as they are. Where they call pip, cmake or sudo, a stand-in answers
(`stand_ins/`), and the virtual environment of a checkout has the packages of the tests.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
STAND_INS = Path(__file__).parent / "stand_ins"

# Installed where the tests run, and not on a fresh machine.
_NOT_THERE = (
    *("pip", "_editable", "__editable"),
    *("puone_", "torch_backend_ci", "torch_conformance", "torch_puone"),
)


def prepare(folder: Path) -> dict[str, str]:
    """The environment of a machine; its own programs are put into `folder`."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    base = Path(os.path.realpath(sys.executable))
    for name in ("python", "python3"):
        (programs / name).symlink_to(base)
    _write(programs / "pip", f'exec python {STAND_INS / "pip.py"} "$@"')
    _write(programs / "cmake", f'exec python3 {STAND_INS / "cmake.py"} "$@"')
    _write(programs / "sudo", ":  # of: apt-get install ccache")
    _write(programs / "nvidia-smi", "exit 9  # even where there is a card")
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return {
        "PATH": os.pathsep.join([str(programs), "/usr/bin", "/bin"]),
        "STAGE_BUILT": str(ROOT),  # where the stand-in for cmake finds the extension
        "XDG_CACHE_HOME": cache,  # what ci/ keeps of a torch that it has read
        "PIP_CONFIG_FILE": os.devnull,
    }


def furnish(checkout: Path, programs: Path) -> None:
    """A checkout on a machine that has its virtual environment from an earlier run.

    Whichever torch is then asked for, it is that of the tests.
    """
    venv = checkout / ".venv"
    python = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = venv / "lib" / python / "site-packages"
    packages.mkdir(parents=True)
    for package in _packages().iterdir():
        if not package.name.startswith(_NOT_THERE):
            (packages / package.name).symlink_to(package)
    _without_main(_packages() / "pip", packages / "pip")
    shutil.copytree(programs, venv / "bin", symlinks=True)
    for tool in Path(sys.executable).parent.iterdir():
        if not (venv / "bin" / tool.name).exists() and not tool.name.startswith("pip"):
            (venv / "bin" / tool.name).symlink_to(tool)
    home = Path(os.path.realpath(sys.executable)).parent
    (venv / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")


def _without_main(pip: Path, here: Path) -> None:
    """The pip that programs look into (`torch_tree`), but `python -m pip` is the stand-in."""
    here.mkdir()
    for part in pip.iterdir():
        if part.name != "__main__.py":
            (here / part.name).symlink_to(part)
    (here / "__main__.py").symlink_to(STAND_INS / "pip.py")


def _packages() -> Path:
    """The directory with torch, and with what else the tests have."""
    torch = importlib.util.find_spec("torch")
    assert torch and torch.origin
    return Path(torch.origin).parents[1]


def _write(program: Path, line: str) -> None:
    program.write_text(f"#!/bin/sh\n{line}\n")
    program.chmod(0o755)
