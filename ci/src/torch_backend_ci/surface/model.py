# SPDX-License-Identifier: BSD-3-Clause
"""The words of the surface: declaration, snapshot, finding.

All are immutable values without behaviour beyond JSON; the files have classes of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

SCHEMA_VERSION = 1


class Domain(str, Enum):
    """Where a declaration was read; each domain has its extractor and its rules of comparison."""

    CPP = "cpp"  # C++ declarations and macros of the headers
    HEADER = "header"  # the headers themselves: there, complete, compiling alone
    SYMBOL = "symbol"  # exported by the shared libraries
    PYTHON = "python"  # functions, classes, attributes of the Python modules
    OPERATOR = "operator"  # native_functions.yaml
    DEVICE_MODULE = "device_module"  # what PyTorch reads off torch.<device>


@dataclass(frozen=True)
class Declaration:
    """One thing a backend can derive from, call, register with or be asked for.

    `name` is the qualified name, the same wherever the declaration is written down, and the same
    for all overloads: `c10::Allocator::allocate`, `torch.accelerator.current_stream`,
    `aten::add.Tensor`. `facts` are what is compared; which there are depends on `kind`, see
    surface/facts.py. `text`, `file` and `line` are for people and never compared.
    """

    domain: Domain
    kind: str
    name: str
    surface: str
    text: str
    file: str  # relative to the torch tree
    line: int  # from 1; 0 where a line has no meaning
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Torch:
    """Which torch a snapshot is of."""

    version: str  # "2.13.0"
    git_version: str | None  # 40 hexadecimal digits, of torch/version.py


@dataclass(frozen=True)
class Snapshot:
    """The surface of one torch.

    `declarations` are sorted by domain, name, kind and facts. `domains` are those that were looked
    at: a torch without libraries at hand has no SYMBOL, which is not the same as exporting nothing.
    """

    torch: Torch
    domains: frozenset[Domain]
    declarations: tuple[Declaration, ...]


class Severity(str, Enum):
    """What a difference does to an out-of-tree backend, worst first."""

    COMPILE_BREAK = "compile_break"  # code that compiled does not
    SILENT_BREAK = "silent_break"  # compiles, and does something else
    REBUILD = "rebuild"  # the same source, but a binary built before is broken
    SEMANTIC = "semantic"  # the declaration promises something else
    NEW_CAPABILITY = "new_capability"  # something more to implement or to call
    DEPRECATED = "deprecated"  # still there; breaks builds with -Werror
    COSMETIC = "cosmetic"  # seen, and of no concern

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


@dataclass(frozen=True)
class Finding:
    """One classified difference between two snapshots."""

    rule: str  # "virtual_signature_changed": a name of diff/rules
    severity: Severity
    surface: str
    domain: Domain
    name: str  # of the declaration
    message: str  # one sentence: what changed, and what that does
    before: Declaration | None
    after: Declaration | None
    concerns: tuple[str, ...]  # of "overriders", "callers", "registrars", "users"
    hint: str | None = None  # what to do, where the pattern is known
    used_by: tuple[str, ...] = ()  # known backends that use the declaration (usage.py)
    probe: str | None = None  # the second opinion: "agrees", "disagrees", "not_covered"

    @property
    def identity(self) -> str:
        """The same for the same difference, wherever the declaration stands and moves."""
        parts = (
            self.rule,
            self.domain.value,
            self.name,
            self.before.text if self.before else "",
            self.after.text if self.after else "",
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
