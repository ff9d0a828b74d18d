# SPDX-License-Identifier: BSD-3-Clause
"""Files that repeat the version of a pin, and so change with it."""

from __future__ import annotations

import re

from torch_backend_ci.errors import CiError
from torch_backend_ci.pin.model import Pin

FILES = {"development": "requirements/torch.txt"}  # by pin; in the repository

_LINE = re.compile(rb"^torch==(\S+)[ \t]*\r?$", re.MULTILINE)


def version_in(text: bytes, file: str) -> str:
    """The version of torch that a file of requirements asks for."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise CiError(f"{file} is not UTF-8") from error
    found = _LINE.findall(text)
    if len(found) != 1:
        raise CiError(f"{file} has {len(found)} lines torch==VERSION where one is expected")
    return str(found[0].decode())


def with_version(text: bytes, pin: Pin, file: str) -> bytes:
    """The file with the version of the pin, the rest as it was."""
    if pin.torch is None or version_in(text, file) == str(pin.torch.public):
        return text
    return _LINE.sub(f"torch=={pin.torch.public}".encode(), text)
