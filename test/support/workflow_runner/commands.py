# SPDX-License-Identifier: BSD-3-Clause
"""What a step says to its job: by files, and by `::commands::` in what it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workflow_runner.mistakes import Mistake

SUMMARY_LIMIT = 1 << 20  # bytes
_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_STATE")
_COMMAND = re.compile(r"::([a-z-]+)(?: ([^\n]*?))?::(.*)")
_LEVELS = ("error", "warning", "notice")
# Taken out of service because what a step prints may come from anybody.
_WITHDRAWN = ("set-output", "save-state", "set-env", "add-path")
_IGNORED = ("debug", "group", "endgroup", "echo", "add-matcher", "remove-matcher")


@dataclass(frozen=True)
class Annotation:
    """A line at a place of the change."""

    level: str
    message: str
    properties: dict[str, str] = field(default_factory=dict)


class Files:
    """The files by which one step hands on values."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._paths = {name: folder / name.lower() for name in _FILES}
        for path in self._paths.values():
            path.touch()

    @property
    def env(self) -> dict[str, str]:
        return {name: str(path) for name, path in self._paths.items()}

    @property
    def outputs(self) -> dict[str, str]:
        return _pairs(self._paths["GITHUB_OUTPUT"])

    @property
    def environment(self) -> dict[str, str]:
        return _pairs(self._paths["GITHUB_ENV"])

    @property
    def path(self) -> list[str]:
        return self._paths["GITHUB_PATH"].read_text().splitlines()

    @property
    def summary(self) -> str:
        text = self._paths["GITHUB_STEP_SUMMARY"].read_text()
        if len(text.encode()) > SUMMARY_LIMIT:
            raise Mistake("the step summary is larger than GitHub shows (1 MiB)")
        return text


def _pairs(file: Path) -> dict[str, str]:
    """`name=value`, or `name<<END`, lines, `END`. GitHub lets the step fail over anything else."""
    result: dict[str, str] = {}
    lines = iter(file.read_text().split("\n"))
    for line in lines:
        name, sign, value = _partition(line)
        if sign == "<<":
            result[name] = "\n".join(_until(value, lines, name))
        elif sign == "=":
            result[name] = value
        elif line:
            raise Mistake(f"{file.name}: not a value: {line!r}")
    return result


def _partition(line: str) -> tuple[str, str, str]:
    """By whichever sign comes first."""
    signs = [(line.index(sign), sign) for sign in ("=", "<<") if sign in line]
    return line.partition(min(signs)[1]) if signs else (line, "", "")


def _until(end: str, lines: Iterator[str], name: str) -> Iterator[str]:
    for line in lines:
        if line == end:
            return
        yield line
    raise Mistake(f"the value of {name} has no end: {end}")


def annotated(log: str) -> list[Annotation]:
    """Those that a step prints; a command that GitHub does not take any more is a mistake."""
    found = []
    for name, properties, message in _commands(log):
        if name in _LEVELS:
            found.append(Annotation(name, _unescaped(message), _properties(properties)))
        elif name in _WITHDRAWN:
            raise Mistake(f"GitHub has withdrawn the command ::{name}::")
        elif name not in (*_IGNORED, "add-mask"):
            raise Mistake(f"there is no command ::{name}::")
    return found


def masks(log: str) -> list[str]:
    """What is secret from here on."""
    return [_unescaped(text) for name, _, text in _commands(log) if name == "add-mask" and text]


def _commands(log: str) -> Iterator[tuple[str, str, str]]:
    """But for what stands between ::stop-commands::TOKEN and ::TOKEN::."""
    stopped = None
    for line in log.splitlines():
        if stopped is not None:
            stopped = None if line == f"::{stopped}::" else stopped
        elif match := _COMMAND.match(line):
            if match[1] == "stop-commands":
                stopped = match[3]
            else:
                yield match[1], match[2] or "", match[3]


def _properties(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.strip().split(",") if pair)
    return {name.strip(): _unescaped(value, ":,") for name, _, value in pairs}


def _unescaped(text: str, more: str = "") -> str:
    for character in "\r\n" + more:
        text = text.replace(f"%{ord(character):02X}", character)
    return text.replace("%25", "%")
