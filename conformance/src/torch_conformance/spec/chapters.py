# SPDX-License-Identifier: BSD-3-Clause
"""The chapters of the suite: what the head of each catalogue file says of its surface."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import yaml
from msgspec import Meta

from torch_conformance.spec.plain_yaml import LOADER

FOLDER = Path(__file__).parent / "requirements"
#: Where the requirements begin; what is above is short and read often.
_REQUIREMENTS = "\nrequirements:"


class ChapterError(Exception):
    """A catalogue file whose head breaks the rules; the text names the file."""


class Chapter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The requirements of one surface, as a whole."""

    surface: str
    title: Annotated[str, Meta(min_length=1)]
    summary: Annotated[str, Meta(min_length=1)]
    order: int
    """A new backend meets chapters with a lower number first."""
    budget_s: Annotated[int, Meta(gt=0)]
    """Seconds that its part of the default selection may take on two cores that do nothing else:
    half of what its checks take one by one on the reference backend, with some room."""
    upstream: tuple[str, ...]
    """The surfaces of PyTorch (`surfaces.yaml` of torch_backend_ci) that it depends on."""


@functools.cache
def chapters(folder: Path = FOLDER) -> Mapping[str, Chapter]:
    """The chapters of a directory by surface, in their order."""
    found = (_chapter(file) for file in folder.glob("*.yaml"))
    ordered = sorted(found, key=lambda chapter: (chapter.order, chapter.surface))
    return {chapter.surface: chapter for chapter in ordered}


def _chapter(file: Path) -> Chapter:
    head, _, _ = file.read_text(encoding="utf-8").partition(_REQUIREMENTS)
    try:
        chapter = msgspec.convert(yaml.load(head, LOADER), Chapter)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ChapterError(f"{file}: {error}") from None
    if chapter.surface != file.stem:
        raise ChapterError(f"{file}: needs `surface: {file.stem}`")
    return chapter
