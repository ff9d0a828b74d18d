# SPDX-License-Identifier: BSD-3-Clause
"""What crosses the border to the relay, and the check that it has its form."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema

from ci.output import printable

_FOLDER = Path(__file__).parent
_SHOWN = 160  # characters of what is wrong


def problem(name: str, value: Any) -> str | None:
    """Why `value` is not what the schema `name` says, None if it is."""
    try:
        error = jsonschema.exceptions.best_match(_validator(name).iter_errors(value))
    except RecursionError:
        return "is nested too deeply"
    if error is None:
        return None
    where = ".".join(map(str, error.absolute_path))
    said = error.message if len(error.message) <= _SHOWN else f"... {error.message[-_SHOWN:]}"
    return printable(f"{where}: {said}" if where else said)


@functools.cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    text = (_FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))
