# SPDX-License-Identifier: BSD-3-Clause
"""What a report says of a place in a source file, and the edit that would change it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Position:
    """Line and column, from 1, in characters."""

    line: int
    column: int


@dataclass(frozen=True)
class Edit:
    """Text in place of what is between two positions; an insertion where they are equal."""

    start: Position
    end: Position
    text: str


@dataclass(frozen=True)
class Place:
    """One use of CUDA."""

    start: Position
    #: What is used: "torch.cuda.synchronize", 'the device "cuda"'.
    what: str
    #: What to do about it.
    advice: str
    #: What changes it without changing what the program does on CUDA; empty if a person must look.
    edits: tuple[Edit, ...] = ()

    @property
    def fixable(self) -> bool:
        return bool(self.edits)
