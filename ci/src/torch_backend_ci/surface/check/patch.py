# SPDX-License-Identifier: BSD-3-Clause
"""Read a patch: git's dialect of the unified diff, a plain one, or mails of `git format-patch`.

In bytes, since sources need not be UTF-8. What cannot be read exactly is a CiError: a patch that
was cut off or mangled must not pass for one that changes less. unidiff was tried: it leaves quoted
paths quoted, takes a copy for a rename, and drops "\\ No newline at end of file".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from torch_backend_ci.errors import CiError

BYTES_LIMIT = 64 << 20
HUNKS_LIMIT = 20_000  # of one file

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = dict(zip(b"abtnvfr", b"\a\b\t\n\v\f\r", strict=True))
_PREFIXES = {"a", "b", "c", "i", "o", "w"}  # git's, and those of diff.mnemonicPrefix
_NO_NEWLINE = b"\\"
_SUBMODULE_LOG = re.compile(rb"Submodule (\S+) [0-9a-f]+\.{2,3}[0-9a-f]+")  # --submodule=log
_ONLY_IN = re.compile(rb"Only in \S+: ")


@dataclass
class Hunk:
    """One run of changed lines, newlines included. `start` counts from 1 in the old file."""

    start: int
    old: list[bytes] = field(default_factory=list)
    new: list[bytes] = field(default_factory=list)


@dataclass
class FilePatch:
    """What happens to one file. Paths are of the repository; None: there is no such file then."""

    old: str | None
    new: str | None
    hunks: list[Hunk] = field(default_factory=list)
    copied: bool = False  # the old file stays
    binary: bool = False
    mode: str = "100644"
    windows: bool = False  # the patch itself has CR LF at the ends of all lines

    @property
    def path(self) -> str:
        """How to call it."""
        return self.new or self.old or ""


def parse(data: bytes, wanted: Callable[[str], bool] = lambda path: True) -> list[FilePatch]:
    """All files of the patch in its order; hunks are kept only of `wanted` files."""
    if len(data) > BYTES_LIMIT:
        raise CiError(f"the patch has {len(data) >> 20} MB, more than {BYTES_LIMIT >> 20}: refused")
    found = _Parser(data, wanted).files()
    if not found:
        raise CiError("the patch holds no change: an empty file, or not a patch at all")
    return found


class _Parser:
    """Goes once over the lines."""

    def __init__(self, data: bytes, wanted: Callable[[str], bool]) -> None:
        self.lines = data.split(b"\n")
        self.wanted = wanted
        self.at = 0

    def files(self) -> list[FilePatch]:
        found = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith((b"diff --cc ", b"diff --combined ", b"@@@ ")):
                raise CiError("the patch is a combined diff of a merge: use `git diff BASE...HEAD`")
            if line.startswith(b"diff --git "):
                found.append(self._git(line))
            elif self._at_plain():
                found.append(self._body(FilePatch(None, None)))
            else:
                found += self._other(line)
                self.at += 1
        return found

    def _other(self, line: bytes) -> list[FilePatch]:
        """What a line between two files says: mostly nothing."""
        if _HUNK.match(line):
            raise CiError(f"the patch is damaged: line {self.at + 1} starts a hunk of no file")
        if _ONLY_IN.match(line):
            raise CiError("the patch leaves out new files: use `git diff`, or `diff -ruN`")
        if log := _SUBMODULE_LOG.match(line):
            path = _checked(_unquoted(log[1]))
            return [FilePatch(path, path, mode="160000")]
        if line.startswith(b"Binary files ") and line.rstrip(b"\r").endswith(b" differ"):
            path = _checked(_stripped(_unquoted(line.rstrip(b"\r").split(b" ")[-2])))
            return [FilePatch(path, path, binary=True)]
        return []

    def _at_plain(self) -> bool:
        both = self.lines[self.at : self.at + 2]
        return len(both) == 2 and both[0].startswith(b"--- ") and both[1].startswith(b"+++ ")

    def _git(self, line: bytes) -> FilePatch:
        """From `diff --git` on; its names count only if nothing better follows."""
        old, new = _both_names(line.rstrip(b"\r")[len(b"diff --git ") :])
        file = FilePatch(old, new, windows=line.endswith(b"\r"))
        self.at += 1
        while self.at < len(self.lines) and self._extended(file, self.lines[self.at].rstrip(b"\r")):
            self.at += 1
        if not file.binary and self._at_plain():
            return self._body(file)
        if not file.path:
            raise CiError(f"the patch is damaged: no file is named before line {self.at + 1}")
        return file

    def _extended(self, file: FilePatch, line: bytes) -> bool:
        """Take one line of git's extended header; False if it is none."""
        word, _, rest = line.partition(b" ")
        if line.startswith((b"rename from ", b"copy from ")):
            file.old = _checked(_unquoted(line.split(b" from ", 1)[1]))
            file.copied = word == b"copy"
        elif line.startswith((b"rename to ", b"copy to ")):
            file.new = _checked(_unquoted(line.split(b" to ", 1)[1]))
        elif line.startswith(b"new file mode "):
            file.old, file.mode = None, line.split()[-1].decode("latin-1")
        elif line.startswith(b"deleted file mode "):
            file.new, file.mode = None, line.split()[-1].decode("latin-1")
        elif line.startswith(b"new mode ") or (word == b"index" and rest.count(b" ")):
            file.mode = rest.split()[-1].decode("latin-1")
        elif line.startswith((b"GIT binary patch", b"Binary files ")):
            file.binary = True
        else:
            return line.startswith((b"index ", b"old mode ", b"similarity ", b"dissimilarity "))
        return True

    def _body(self, file: FilePatch) -> FilePatch:
        """From `---` on."""
        file.windows = self.lines[self.at].endswith(b"\r")
        old, new = (_side(line) for line in self.lines[self.at : self.at + 2])
        file.old, file.new = old, new
        if file.old is None and file.new is None:
            raise CiError(f"the patch is damaged: no file is named in line {self.at + 1}")
        keep = self.wanted(file.path)
        self.at += 2
        count = 0
        while self.at < len(self.lines) and (match := _HUNK.match(self.lines[self.at])):
            count += 1
            hunk = self._hunk(match, f"{file.path} hunk {count}", file.windows)
            if keep:
                file.hunks.append(hunk)
            if len(file.hunks) > HUNKS_LIMIT:
                raise CiError(f"more than {HUNKS_LIMIT} hunks for {file.path}: refused")
        if self.at < len(self.lines) and self.lines[self.at].startswith((b"@@", b"+", b" ")):
            raise CiError(f"the patch is damaged: line {self.at + 1} belongs to no hunk")
        return file

    def _hunk(self, match: re.Match[bytes], name: str, windows: bool) -> Hunk:
        start, old_left, _, new_left = (1 if g is None else int(g) for g in match.groups())
        hunk = Hunk(start)
        self.at += 1
        while old_left > 0 or new_left > 0:
            line = self.lines[self.at] if self.at < len(self.lines) else b""
            if self.at >= len(self.lines) - 1 and not line:
                raise CiError(f"the patch ends in the middle of {name}: cut off?")
            if windows:
                line = line.removesuffix(b"\r")
            tag, text = line[:1] or b" ", line[1:] + b"\n"  # editors strip a lone blank
            if tag not in b" -+":
                raise CiError(f"the patch is damaged in {name}, line {self.at + 1}")
            if tag != b"+":
                hunk.old.append(text)
                old_left -= 1
            if tag != b"-":
                hunk.new.append(text)
                new_left -= 1
            self.at += 1
            self._no_newline(hunk, tag)
        if old_left or new_left:
            raise CiError(f"the patch is damaged: {name} is not as long as it says")
        return hunk

    def _no_newline(self, hunk: Hunk, tag: bytes) -> None:
        if self.at < len(self.lines) and self.lines[self.at].startswith(_NO_NEWLINE):
            for side in (hunk.old, hunk.new)[tag == b"+" : 1 + (tag != b"-")]:
                side[-1] = side[-1].removesuffix(b"\n")
            self.at += 1


def _side(line: bytes) -> str | None:
    """The path of a `---` or `+++` line; None for /dev/null."""
    text = line[4:].rstrip(b"\r")
    if not text.startswith(b'"'):
        text = text.split(b"\t", 1)[0]  # a time stamp follows
    name = _unquoted(text)
    return None if name == "/dev/null" else _checked(_stripped(name))


def _both_names(text: bytes) -> tuple[str | None, str | None]:
    """The names of a `diff --git` line, which are only unambiguous if they are equal."""
    if text.startswith(b'"'):
        middle = re.match(rb'"(?:[^"\\]|\\.)*"', text)
        end = middle.end() if middle else 0
    else:
        end = len(text) // 2
    old, new = _unquoted(text[:end]), _unquoted(text[end + 1 :])
    if _stripped(old) != _stripped(new):
        return None, None
    return _checked(_stripped(old)), _checked(_stripped(new))


def _unquoted(text: bytes) -> str:
    """A path as git writes it: in quotes, with escapes, if anything in it is unusual."""
    if len(text) > 1 and text.startswith(b'"') and text.endswith(b'"'):
        text = _ESCAPE.sub(_unescaped, text[1:-1])
    return text.decode("utf-8", "surrogateescape")


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if len(code) == 3:
        return bytes([int(code, 8) & 0xFF])
    return bytes([_ESCAPED.get(code[0], code[0])])


def _stripped(path: str) -> str:
    first, _, rest = path.partition("/")
    return rest if first in _PREFIXES else path


def _checked(path: str) -> str:
    parts = path.split("/")
    if any(part in {"", ".", "..", ".git"} for part in parts) or "\0" in path or "\\" in path:
        raise CiError(f"the patch names {path!r}, which leads out of the repository: refused")
    return path
