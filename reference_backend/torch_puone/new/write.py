# SPDX-License-Identifier: BSD-3-Clause
"""Writing the repository: the sources as they are for another backend, and what comes with them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import edits, sources
from .names import OURS, renamed

FILES = Path(__file__).with_name("files")
BSD = "BSD-3-Clause"
PROVENANCE = "PROVENANCE.md"


class TargetError(ValueError):
    """The directory cannot be written to, with the reason."""


@dataclass(frozen=True)
class Backend:
    """What is asked for."""

    name: str
    license: str  # an SPDX expression, of what is added to the sources
    without: Sequence[edits.Part] = ()


def write(backend: Backend, directory: Path, version: str) -> list[str]:
    """Write the repository into `directory` and return its files, sorted.

    The directory must be empty, but for .git, or not be there. If it is not, or cannot be written,
    TargetError is raised and nothing changes.
    `version` is that of this project, for the note of where the sources are from. The files are
    written beside their place and moved there at the end, so that there is all or nothing.
    """
    try:
        _check_target(directory)
        return _write(backend, directory, version)
    except OSError as error:
        raise TargetError(f"{directory} cannot be written: {error.strerror}") from error


def _write(backend: Backend, directory: Path, version: str) -> list[str]:
    is_there = directory.is_dir()
    place = directory if is_there else directory.parent
    place.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=".new-", dir=place))
    try:
        written = []
        for path, text in _files(backend, version):
            target = beside / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            written.append(path)
        if is_there:
            _move_into(directory, beside)
        else:
            beside.chmod(0o777 & ~_umask())
            beside.replace(directory)
    except BaseException:
        shutil.rmtree(beside)
        raise
    return sorted(written)


def _move_into(directory: Path, beside: Path) -> None:
    """Move all that is in `beside` into the directory around it, or nothing."""
    moved: list[Path] = []
    try:
        for path in sorted(beside.iterdir()):
            moved.append(path.rename(directory / path.name))
        beside.rmdir()
    except BaseException:
        for path in moved:
            path.rename(beside / path.name)
        raise


def _check_target(directory: Path) -> None:
    if directory.is_symlink() and not directory.exists():
        raise TargetError(f"{directory} is a link to {directory.readlink()}, which is not there")
    if directory.exists() and not directory.is_dir():
        raise TargetError(f"{directory} is there and is not a directory")
    if directory.is_dir() and any(path.name != ".git" for path in directory.iterdir()):
        raise TargetError(f"{directory} is not empty; nothing was written")
    # The nearest directory above that is there: what lies below is made.
    above = next(parent for parent in directory.absolute().parents if parent.exists())
    if not above.is_dir():
        raise TargetError(f"{above}, in which {directory.name} would be, is not a directory")


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _files(backend: Backend, version: str) -> Iterator[tuple[str, str]]:
    """Each file's path and text, with the names of the backend."""
    base = sources.root()
    for path in sources.paths(base):
        if edits.left_out(path, backend.without) or path == "LICENSE":
            continue
        text = edits.edited(path, (base / path).read_text(encoding="utf-8"), backend.without)
        if path == "pyproject.toml":
            text = text.replace(f'license = "{BSD}"', f'license = "{_both(backend.license)}"')
        yield renamed(path, backend.name), renamed(text, backend.name)
    for file in sorted(FILES.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            path = file.relative_to(FILES).as_posix().replace("dot-", ".")
            text = file.read_text(encoding="utf-8")
            yield renamed(path, backend.name), renamed(text, backend.name)
    notice = (base / "LICENSE").read_text(encoding="utf-8")
    yield "LICENSE", _license(backend, notice)
    yield PROVENANCE, _provenance(backend, notice, version)


def _both(license: str) -> str:
    """The licence of a package that also has the sources of this project."""
    if license == BSD:
        return BSD
    return f"({license}) AND {BSD}" if " " in license else f"{license} AND {BSD}"


def _license(backend: Backend, notice: str) -> str:
    own = renamed(notice, backend.name)
    if backend.license == BSD:
        return own
    return (
        f"What the authors of torch-{backend.name} add is under {backend.license}\n"
        f"(https://spdx.org/licenses/). The sources that it was made from, as {PROVENANCE}\n"
        f"says, remain under {BSD}:\n\n{own}"
    )


def _provenance(backend: Backend, notice: str, version: str) -> str:
    without = "".join(f" --without-{part.name}" for part in backend.without)
    license = "" if backend.license == BSD else f" --license '{backend.license}'"
    return f"""\
# Where these sources are from

`python -m torch_{OURS}.new {backend.name}{without}{license}` of torch-{OURS} {version} made this
repository from torch-{OURS}'s own sources, with other names. Where a comment names a file of
`csrc/kernels/` or `docs/` that is not here, it is one of that project. Its conformance suites are
`conformance/` and `hal_conformance/`. The sources are under the following licence.

    {notice.strip().replace(chr(10), chr(10) + "    ")}
""".replace("    \n", "\n")
