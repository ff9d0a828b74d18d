# SPDX-License-Identifier: BSD-3-Clause
"""The committed schemas, asked by another library than the one that reads the documents."""

from __future__ import annotations

import functools
from typing import Any

import jsonschema

from torch_backend_ci.schema import load


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """The committed schema of a document."""
    return load(name)


def valid(instance: object, name: str) -> None:
    """The document must be as its schema says."""
    jsonschema.Draft202012Validator(schema(name)).validate(instance)
