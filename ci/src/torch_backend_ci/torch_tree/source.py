# SPDX-License-Identifier: BSD-3-Clause
"""A checkout of PyTorch, brought into the layout of a wheel.

What a build generates is taken from the checkout's own torch/include if it was built in place, else
from a release (`base`); everything else is the checkout's.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from torch_backend_ci.errors import CiError
from torch_backend_ci.torch_tree import folders, layout

# A build in place writes its headers and packaged files here; they are not sources.
_BUILT = ("torch/include/", "torch/lib/", "torch/bin/", "torch/share/", "torchgen/packaged/")


def is_source(path: Path) -> bool:
    """True for the root of a checkout of PyTorch."""
    return all((path / part).is_dir() for part in ("aten/src/ATen", "c10/core", "torch/csrc"))


def is_built(path: Path) -> bool:
    """True for a checkout that was built in place and so has the generated files."""
    needed = ("torch/include/ATen/core/TensorBody.h", "torch/version.py")
    return all((path / part).is_file() for part in needed)


def version(path: Path) -> str:
    """What version.txt says: "2.13.0a0"."""
    try:
        return (path / "version.txt").read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CiError(f"{path}: a source tree of PyTorch without version.txt") from error


def commit(path: Path) -> str | None:
    """The commit that is checked out, if git knows."""
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(path.resolve().parent)}
    command = ["git", "-c", f"safe.directory={path.resolve()}", "-C", str(path), "rev-parse"]
    try:
        done = subprocess.run(
            [*command, "HEAD"], env=environment, capture_output=True, text=True, check=False
        )
    except OSError:  # no git here
        return None
    text = done.stdout.strip()
    return text if re.fullmatch(r"[0-9a-f]{40}", text) else None


def files(path: Path) -> Iterator[str]:
    """The files of the checkout that a wheel carries too, relative to it."""
    tops = {row.repository for row in layout.WHEEL}
    for top in sorted(t for t in tops if not any(t.startswith(f"{o}/") for o in tops)):
        for folder, subfolders, names in os.walk(path / top):
            relative = Path(folder).relative_to(path).as_posix()
            subfolders[:] = [s for s in subfolders if s != "__pycache__"]
            for name in names:
                file = f"{relative}/{name}"
                if not file.startswith(_BUILT) and layout.to_wheel(file):
                    yield file
    yield from (file for file in layout.FILES if (path / file).is_file())


def changes(path: Path, base: Path) -> dict[str, folders.Change]:
    """What turns the release at `base` into this checkout, by places in a wheel.

    A header that the release's wheel does not carry, in a directory where it carries no header, is
    not installed by PyTorch and so left out. What the checkout's parents carry is replaced, and
    gone where the checkout has it no more.
    """
    shipped = set(folders.files(base))
    shipping = {file.rpartition("/")[0] for file in shipped}
    sources = {layout.to_wheel(file): file for file in files(path)}
    present = {_top(file) for file in sources.values()}
    gone: dict[str, folders.Change] = {
        file: None
        for file in shipped - sources.keys()
        if (origin := layout.to_repository(file)) and _top(origin) in present
    }
    return gone | {
        wheel: path / file
        for wheel, file in sources.items()
        if wheel in shipped or (wheel and wheel.rpartition("/")[0] in shipping)
    }


def _top(path: str) -> str:
    """What is there or not there as a whole: a submodule, or a directory of the repository."""
    parts = path.split("/")
    return "/".join(parts[: 2 if parts[0] == "third_party" else 1])
