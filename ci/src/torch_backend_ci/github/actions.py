# SPDX-License-Identifier: BSD-3-Clause
"""What a step says to the run of its workflow: outputs, summary, annotations.

Outside of GitHub Actions all of it does nothing. Values may come from anybody: none can end its own
value, start a second one, or become a command of its own.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Literal

from torch_backend_ci.errors import CiError
from torch_backend_ci.github.markdown import cut

Level = Literal["error", "warning", "notice"]

_MAX_SUMMARY = 1 << 20  # bytes of a step's summary
_MIN_SUMMARY = 1000  # bytes that are worth adding to one
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def active() -> bool:
    """Whether this is a step of a workflow."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def set_output(name: str, value: str) -> None:
    """`steps.ID.outputs.<name>` of the steps that follow."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"no name of an output: {name!r}")
    delimiter = f"end_{secrets.token_hex(16)}"  # nobody can write what nobody knows
    _append("GITHUB_OUTPUT", f"{name}<<{delimiter}\n{value}\n{delimiter}\n")


def step_summary(markdown: str) -> None:
    """Add to the page of the run; GitHub drops a summary that is too long, so it is cut."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    taken = Path(path).stat().st_size if path and Path(path).exists() else 0
    room = _MAX_SUMMARY - taken - 1
    if room >= _MIN_SUMMARY:
        _append("GITHUB_STEP_SUMMARY", cut(markdown.rstrip("\n"), room) + "\n")


def annotation(
    level: Level,
    message: str,
    *,
    file: str | None = None,
    line: int | None = None,
    title: str | None = None,
) -> None:
    """A remark on the run, and on a line of the PR where a file is given."""
    given = {"file": file, "line": line, "title": title}
    properties = ",".join(f"{k}={_property(v)}" for k, v in given.items() if v is not None)
    _command(f"{level} {properties}" if properties else level, message)


def mask(secret: str) -> None:
    """The log shows *** where a line of the secret would appear."""
    for line in filter(str.strip, re.split(r"[\r\n]+", secret)):
        _command("add-mask", line)


def _command(head: str, message: str) -> None:
    if active():
        print(f"::{head}::{_data(message)}", flush=True)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str | int) -> str:
    return _data(str(value)).replace(":", "%3A").replace(",", "%2C")


def _append(variable: str, text: str) -> None:
    path = os.environ.get(variable)
    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except OSError as error:
        raise CiError(f"cannot write ${variable}: {error.strerror}") from error
