# SPDX-License-Identifier: BSD-3-Clause
"""A PR, brought to bear on a pinned torch: which files of the tree become what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface.check import patch
from torch_backend_ci.surface.check.apply import Conflict, applied
from torch_backend_ci.surface.check.wrapping import unwrapped, wrapped_as
from torch_backend_ci.torch_tree import TorchTree, layout, source

FILE_LIMIT = 16 << 20  # the largest source of PyTorch has 1 MB

_BINARY = "binary"
_GENERATES = "a build writes other files from it: needs a build"
_LINK = "a symbolic link"
_NOT_CARRIED = "not in a wheel"
_SUBMODULE = "a submodule"


@dataclass
class Change:
    """`files`: by their place in a wheel, what they become; None: gone. `conflicts`: what of the
    patch does not fit, also by place. `unjudged`: paths of the repository, and why."""

    files: dict[str, bytes | None] = field(default_factory=dict)
    conflicts: dict[str, str] = field(default_factory=dict)
    unjudged: dict[str, str] = field(default_factory=dict)


def of_patch(tree: TorchTree, data: bytes) -> Change:
    """What a patch makes of the tree."""
    return _Patching(tree).run(patch.parse(data, lambda path: layout.to_wheel(path) is not None))


def of_checkout(tree: TorchTree, folder: Path, files: Iterable[str] | None = None) -> Change:
    """What a checkout of PyTorch has other than the tree; all of it, or only some `files` of the
    repository, where a file that the checkout lacks is one that the PR deletes."""
    if files is None and not source.is_source(folder):
        raise CiError(f"{folder} is not a checkout of PyTorch; for a part of one, give --files")
    change = Change()
    wanted = _of_whole(tree, folder) if files is None else _of_list(tree, folder, files, change)
    for wheel, path in wanted.items():
        if path is not None and (why := _unreadable(folder, path)):
            change.unjudged[path.relative_to(folder).as_posix()] = why
            continue
        before = _content(tree, wheel)
        after = path.read_bytes() if path else None
        if after != (None if before is None else unwrapped(before)):
            change.files[wheel] = after if after is None else wrapped_as(before or b"", after)
    return change


def _of_whole(tree: TorchTree, folder: Path) -> Mapping[str, Path | None]:
    changes = source.changes(folder, tree.root)
    return {wheel: path for wheel, path in changes.items() if not isinstance(path, bytes)}


def _of_list(
    tree: TorchTree, folder: Path, files: Iterable[str], change: Change
) -> Mapping[str, Path | None]:
    wanted: dict[str, Path | None] = {}
    for file in files:
        wheel, path = layout.to_wheel(file), folder / file
        if ".." in Path(file).parts or file.startswith("/"):
            raise CiError(f"{file!r} leads out of the checkout: refused")
        if why := _unfit(tree, file, file):
            change.unjudged[file] = why
        elif wheel:
            wanted[wheel] = path if path.is_symlink() or path.exists() else None
    return wanted


def _unreadable(folder: Path, path: Path) -> str | None:
    """A link may lead anywhere, and what it leads to would be shown in a report."""
    if path.resolve() != folder.resolve() / path.relative_to(folder):
        return _LINK
    if not path.is_file():
        return "not a plain file"
    if path.stat().st_size > FILE_LIMIT:
        raise CiError(f"{path} has more than {FILE_LIMIT >> 20} MB: refused")
    return None


def _content(tree: TorchTree, wheel: str) -> bytes | None:
    try:
        return (tree.root / wheel).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _unfit(tree: TorchTree, old: str, new: str) -> str | None:
    """Why a file cannot be judged; None if it can."""
    if layout.makes_generated(old) or layout.makes_generated(new):
        return _GENERATES
    wheels = [wheel for wheel in (layout.to_wheel(old), layout.to_wheel(new)) if wheel]
    if not wheels:
        return _NOT_CARRIED
    if not any((tree.root / wheel).parent.is_dir() for wheel in wheels) and all(
        wheel.startswith("torch/include/") for wheel in wheels
    ):
        return f"torch {tree.version} installs no header of that directory"
    return None


class _Patching:
    """Applies file by file; a later patch of a mailbox sees what the earlier ones did."""

    def __init__(self, tree: TorchTree) -> None:
        self.tree = tree
        self.change = Change()

    def run(self, files: list[patch.FilePatch]) -> Change:
        for file in files:
            if why := self._unfit(file):
                self.change.unjudged[file.path] = why
                continue
            try:
                self._apply(file)
            except Conflict as conflict:
                place = layout.to_wheel(file.path) or layout.to_wheel(file.old or "") or file.path
                self.change.conflicts[place] = str(conflict)
        return self.change

    def _unfit(self, file: patch.FilePatch) -> str | None:
        if file.mode == "160000":
            return _SUBMODULE
        if file.mode == "120000":
            return _LINK
        why = _unfit(self.tree, file.old or file.path, file.new or file.path)
        return why or (_BINARY if file.binary else None)

    def _apply(self, file: patch.FilePatch) -> None:
        before = self._before(file)
        after = applied(before, file)
        old, new = (layout.to_wheel(path) if path else None for path in (file.old, file.new))
        if new and new != old and self._now(new) is not None:
            raise Conflict(f"the patch adds {file.new}, which is there already")
        if old and old != new and not file.copied:
            self.change.files[old] = None
        if new:
            model = _content(self.tree, old or new) or b""
            self.change.files[new] = wrapped_as(model, after)
        elif file.new is None and after:
            raise Conflict("the patch deletes it with other contents than it has")

    def _before(self, file: patch.FilePatch) -> bytes:
        """The contents that the patch is made for."""
        if file.old is None:
            return b""
        wheel = layout.to_wheel(file.old)
        if wheel is None:
            raise Conflict(f"the patch makes it of {file.old}, which no wheel carries")
        content = self._now(wheel)
        if content is None:
            raise Conflict("there is no such file")
        return unwrapped(content)

    def _now(self, wheel: str) -> bytes | None:
        if wheel in self.change.files:
            return self.change.files[wheel]
        return _content(self.tree, wheel)
