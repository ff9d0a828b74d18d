# SPDX-License-Identifier: BSD-3-Clause
"""Find the torch that a user means."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from packaging.version import InvalidVersion, Version

from torch_backend_ci.errors import CiError
from torch_backend_ci.output import say
from torch_backend_ci.torch_tree import cache as caches
from torch_backend_ci.torch_tree import folders, index, remote, source, wheel
from torch_backend_ci.torch_tree.read import tree_at
from torch_backend_ci.torch_tree.tree import TorchTree

Progress = Callable[[str], None]


def locate(
    where: str,
    cache: Path | None = None,
    progress: Progress = say,
    index_url: str | None = None,
) -> TorchTree:
    """The torch at `where`: a directory with an installed or unpacked torch, its torch/ directory,
    a virtual environment, a Python interpreter, a wheel file, a checkout of PyTorch, or a version,
    which is fetched from `index_url` (default: pip's) and kept in `cache` (default: the user's)."""
    cache = cache or caches.default_folder()
    path = Path(where).expanduser()
    if path.is_dir():
        return _folder(path.absolute(), cache, progress)
    if path.is_file():
        if path.suffix == ".whl":
            return _wheel(path, cache)
        if os.access(path, os.X_OK):
            return _folder(_of_interpreter(path), cache, progress)
        raise CiError(f"{where} is neither a wheel (.whl) nor a Python interpreter")
    if not _is_version(where):
        raise CiError(f"{where}: no such file or directory, and not a version such as 2.13.0")
    return _version(where, cache, progress, index_url)


def linked(tree: TorchTree, changes: dict[str, folders.Change]) -> TorchTree:
    """The tree with some files changed, as links in a temporary directory that ends with the
    process. It has no libraries: the changes are not in them."""
    root = Path(tempfile.mkdtemp(prefix="torch-tree-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    folders.link_tree(tree.root, changes, root)
    include = tuple(root / folder.relative_to(tree.root) for folder in tree.include)
    return replace(tree, root=root, include=include, libraries=None)


def _folder(path: Path, cache: Path, progress: Progress) -> TorchTree:
    for root in (path, path.parent):
        if source.is_source(root):
            return _source(root, cache, progress)
        if (root / "torch" / "version.py").is_file() and (root == path or path.name == "torch"):
            return tree_at(root)
    for packages in sorted(path.glob("lib/python3*/site-packages")):
        if (packages / "torch" / "version.py").is_file():
            return tree_at(packages)
    raise CiError(
        f"there is no torch in {path}: expected is a directory that contains torch/, that torch/ "
        "itself, a virtual environment, or a checkout of PyTorch"
    )


def _of_interpreter(python: Path) -> Path:
    """The directory that holds the interpreter's torch, found without importing it."""
    program = (
        "import sys, importlib.util as u; sys.path[:1] = []; s = u.find_spec('torch'); "
        "print(s.origin if s else '')"
    )
    try:
        done = subprocess.run(
            [python, "-c", program], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CiError(f"{python} does not answer as a Python interpreter: {error}") from error
    if not done.stdout.strip():
        raise CiError(f"{python} has no torch installed")
    return Path(done.stdout.strip()).parents[1]


def _wheel(path: Path, cache: Path) -> TorchTree:
    try:
        with open(path, "rb") as file:
            archive = wheel.open_wheel(file, path.name)
            members = wheel.wanted(archive, path.name)
            contents = repr([(m.filename, m.CRC, m.file_size) for m in members])
            digest = hashlib.sha256(contents.encode()).hexdigest()[:16]
            fill = functools.partial(wheel.unpack, archive, members, name=path.name)
            return tree_at(caches.tree(cache, f"wheel-{digest}", fill))
    except OSError as error:
        raise CiError(f"cannot read {path}: {error.strerror}") from error


def _version(
    version: str, cache: Path, progress: Progress, index_url: str | None = None
) -> TorchTree:
    def fill(into: Path) -> None:
        with index.opened(index_url) as pip:
            found = pip.wheel(version)
            progress(f"torch {version}: reading {found.shown}")
            if found.path is None:
                remote.fetch(found, pip.session, into, progress)
            else:
                with open(found.path, "rb") as file:
                    archive = wheel.open_wheel(file, found.name)
                    wheel.unpack(archive, wheel.wanted(archive, found.name), into, found.name)

    return tree_at(caches.tree(cache, str(Version(version)), fill))


def _source(path: Path, cache: Path, progress: Progress) -> TorchTree:
    if source.is_built(path):
        base = tree_at(path)
        progress(f"{path}: generated headers are those of its build")
    else:
        base = _version(_release_near(source.version(path)), cache, progress)
        progress(
            f"{path} is not built: generated headers (ATen/ops and the like) are those of torch "
            f"{base.version}"
        )
    tree = linked(base, source.changes(path, base.root))
    version = Version(source.version(path)).public
    return replace(tree, version=version, git_version=source.commit(path))


def _release_near(wanted: str) -> str:
    """The newest release that is not newer than `wanted`, else the oldest."""
    with index.opened() as pip:
        releases = [v for v in pip.versions() if not v.is_prerelease]
    key = Version(Version(wanted).base_version)
    older = [v for v in releases if v <= key]
    if not releases:
        raise CiError("pip finds no release of torch to take generated headers from")
    return (older[-1] if older else releases[0]).public


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return re.match(r"\d+\.\d", text) is not None
