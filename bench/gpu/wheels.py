# SPDX-License-Identifier: BSD-3-Clause
"""``python -m bench.gpu.wheels``: fetch what a machine without a network may lack.

Downloads wheels into build/wheels, in the versions that requirements/ pins. Carry that folder to
the machine with the GPU; `make gpu` unpacks there what its Python can use into a folder of its own,
and installs nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import platform
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "wheels"
# Small, without needs of their own, and not part of what a machine with torch usually has.
BROUGHT = ("expecttest", "msgspec")
PINS = ("base.txt", "run.txt")
# What wheels call the systems that they run on: those of the last years, by their C library.
LINUX = [f"manylinux_2_{minor}_{{machine}}" for minor in (17, 24, 26, 27, 28, 31, 34, 35)]


def missing(modules: Iterable[str], site: Path) -> list[str]:
    """Those of `modules` that neither this Python nor the unpacked wheels have."""
    return [
        name
        for name in modules
        if importlib.util.find_spec(name) is None
        and not (site / name).is_dir()
        and not (site / f"{name}.py").is_file()
    ]


def unpack(site: Path, folder: Path = FOLDER) -> list[str]:
    """Unpack the wheels that were brought for this Python; their names."""
    wheels = [wheel for wheel in sorted(folder.glob("*.whl")) if _fits(wheel.name)]
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    return [wheel.name for wheel in wheels]


def _fits(wheel: str) -> bool:
    """Whether the wheel is pure Python, or of this version and this kind of processor."""
    *_, python, _, system = wheel.removesuffix(".whl").split("-")
    ours = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return system == "any" or (python == ours and system.endswith(platform.machine()))


def pinned(names: Iterable[str]) -> list[str]:
    """The requirements of these packages, as they are pinned."""
    text = "\n".join((ROOT / "requirements" / name).read_text() for name in PINS)
    pins = {line.split("==")[0].lower(): line for line in re.findall(r"^[\w.-]+==\S+", text, re.M)}
    return [pins[name] for name in names]


def main() -> int:
    """Download."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu.wheels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    parser.add_argument(
        "--python", default=version, help="version of the Python there (default: %(default)s)"
    )
    parser.add_argument(
        "--machine", default=platform.machine(), help="processor there (default: %(default)s)"
    )
    there = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    systems = [f"--platform={name.format(machine=there.machine)}" for name in LINUX]
    target = [f"--python-version={there.python}", "--implementation=cp", *systems]
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(FOLDER)]
    command = [sys.executable, "-m", "pip", "download", *options, *target, *pinned(BROUGHT)]
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        print(f"{FOLDER.relative_to(ROOT)}: carry it along with the checkout")
    return code


if __name__ == "__main__":
    sys.exit(main())
