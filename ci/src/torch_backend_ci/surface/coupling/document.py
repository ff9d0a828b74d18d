# SPDX-License-Identifier: BSD-3-Clause
"""An audit as programs get it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from torch_backend_ci.document import Natural, Part, Sha


class Count(Part, frozen=True):
    """How much of a subsystem is coupled."""

    files: Natural
    vendor_files: Annotated[Natural, Meta(description="The vendor's as a whole.")]
    generic_files: Annotated[Natural, Meta(description="All others: they ought to know no vendor.")]
    coupled_files: Annotated[Natural, Meta(description="Generic files with a hit.")]
    percent: Annotated[float, Meta(ge=0, le=100, description="Of the generic files.")]
    hits: Annotated[Natural, Meta(description="In generic files.")]


class Tree(Part, frozen=True):
    """A torch on disk."""

    layout: Literal["source", "package"]
    version: str | None
    git_version: Sha | None


class Hit(Part, frozen=True):
    """One place where generic code knows the vendor, or one file that is the vendor's."""

    rule: Annotated[str, Meta(description="A rule of surface/coupling/rules.yaml.")]
    file: Annotated[str, Meta(description="Relative to the tree.")]
    line: Annotated[Natural, Meta(description="0: the whole file.")]
    symbol: str
    subsystem: str
    scope: Annotated[
        str | UnsetType, Meta(description="The Python function or class around it.")
    ] = UNSET
    replacement: Annotated[
        str | UnsetType, Meta(description="What generic Python can say instead.")
    ] = UNSET
    since: Annotated[
        str | UnsetType, Meta(description="The first torch that has the replacement.")
    ] = UNSET


class Problem(Part, frozen=True):
    """A file that could not be audited, or only in part."""

    file: str
    problem: str


class Trend(Part, frozen=True):
    """What is new and gone since another torch."""

    since: Tree
    hits_before: Annotated[Natural, Meta(description="Whole files included.")]
    new: tuple[Hit, ...]
    gone: tuple[Hit, ...]


class Coupling(Part, tag_field="schema_version", tag=1, frozen=True):
    """What `torch-backend-ci surface coupling --format json` prints."""

    vendor: str
    tree: Tree
    subsystem: Annotated[str | None, Meta(description="The one that was asked for.")]
    total: Count
    subsystems: Mapping[str, Count]
    rules: Annotated[Mapping[str, Natural], Meta(description="Hits of each rule.")]
    hits: Annotated[tuple[Hit, ...], Meta(description="By file and line.")]
    problems: tuple[Problem, ...]
    trend: Annotated[Trend | None, Meta(description="Null without --against.")]
