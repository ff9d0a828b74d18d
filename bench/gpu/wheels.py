# SPDX-License-Identifier: BSD-3-Clause
"""``python -m bench.gpu.wheels``: fetch what a machine without a network may lack.

Downloads pure-Python wheels into build/wheels, in the versions of requirements/run.txt. Carry that
folder to the machine with the GPU; `make gpu` unpacks it into its own folder and installs nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "wheels"
# Small, without needs of their own, and pure Python: anything else is the machine's matter.
BROUGHT = ("expecttest",)


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
    """Unpack the wheels that were brought; their names. A pure wheel is the files to import."""
    wheels = sorted(folder.glob("*-none-any.whl"))
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    return [wheel.name for wheel in wheels]


def pinned(names: Iterable[str]) -> list[str]:
    """The requirements of these packages as requirements/run.txt pins them."""
    text = (ROOT / "requirements" / "run.txt").read_text()
    pins = {line.split("==")[0].lower(): line for line in re.findall(r"^[\w.-]+==\S+", text, re.M)}
    return [pins[name] for name in names]


def main() -> int:
    """Download."""
    argparse.ArgumentParser(
        prog="python -m bench.gpu.wheels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(FOLDER)]
    command = [sys.executable, "-m", "pip", "download", *options, *pinned(BROUGHT)]
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        print(f"{FOLDER.relative_to(ROOT)}: carry it along with the checkout")
    return code


if __name__ == "__main__":
    sys.exit(main())
