# SPDX-License-Identifier: BSD-3-Clause
"""rules.yaml and replacements.yaml, read."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from torch_backend_ci.errors import CiError

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Hit:
    """One place where generic code knows the vendor, or one file that is the vendor's."""

    rule: str
    file: str
    line: int  # from 1; 0 for a whole file
    symbol: str  # the coupled word: "torch.cuda.synchronize", "USE_CUDA"
    scope: str = ""  # the function or class around it (Python only)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The same wherever in its file the hit stands."""
        return self.rule, self.file, self.symbol, self.scope


@dataclass(frozen=True)
class Replacement:
    """What to write instead (replacements.yaml)."""

    pattern: str
    use: str
    names: tuple[str, ...]
    since: str
    note: str | None = None


@dataclass(frozen=True)
class Vendor:
    """Whose words are looked for. Everything here is data, so that processes can share it."""

    key: str
    title: str
    words: tuple[str, ...]
    exact: tuple[str, ...]
    unless: tuple[str, ...]
    suffixes: tuple[str, ...]
    listed: tuple[str, ...]
    device: re.Pattern[str]
    enumerator: re.Pattern[str]
    namespace: re.Pattern[str]
    is_device: str
    method: str
    modules: tuple[str, ...]

    def names(self, name: str) -> bool:
        """Whether something with this name is the vendor's."""
        lower = name.lower()
        for word in self.unless:
            lower = lower.replace(word, "")
        return any(word in lower for word in self.words) or bool(
            self.exact and self._exact.search(name)
        )

    def occurs(self, content: bytes) -> bool:
        """Whether a file is worth reading: every hit contains one of the words."""
        lower = content.lower()
        return any(word.encode() in lower for word in self.words) or any(
            word.encode() in content for word in self.exact
        )

    @functools.cached_property
    def _exact(self) -> re.Pattern[str]:
        return re.compile(rf"(?<![A-Za-z])(?:{'|'.join(self.exact)})(?![A-Za-z])")


@dataclass(frozen=True)
class Rules:
    """rules.yaml for one vendor."""

    vendor: Vendor
    rules: dict[str, str]  # name -> what it means
    device_types: frozenset[str]
    text_calls: frozenset[str]
    text_names: re.Pattern[str]
    vendor_folders: frozenset[str]
    kinds: dict[str, tuple[str, ...]]
    max_bytes: int
    layouts: dict[str, tuple[str, ...]]
    skip: re.Pattern[str]
    subsystems: dict[str, tuple[str, ...]]
    replacements: tuple[Replacement, ...]
    rule_replacements: dict[str, Replacement]

    def kind(self, file: str) -> str | None:
        """Which reader a file has, if any."""
        return next((k for k, ends in self.kinds.items() if file.endswith(ends)), None)

    def skipped(self, file: str) -> bool:
        """Whether others wrote it."""
        return bool(self.skip.fullmatch(file))

    def subsystem(self, file: str) -> str:
        """The subsystem of a file."""
        return next(
            (name for folder, name in self._folders if f"{file}/".startswith(folder)), "other"
        )

    @functools.cached_property
    def _folders(self) -> tuple[tuple[str, str], ...]:
        return tuple((f"{f}/", name) for name, folders in self.subsystems.items() for f in folders)

    def replacement(self, hit: Hit) -> Replacement | None:
        """What to write instead of a hit."""
        for entry in self.replacements:
            if fnmatchcase(hit.symbol, entry.pattern) and hit.rule.startswith("py."):
                return entry
        return self.rule_replacements.get(hit.rule)


def vendors() -> tuple[str, ...]:
    """The vendors there are rules for."""
    return tuple(_read(HERE / "rules.yaml")["vendors"])


def load(vendor: str = "cuda") -> Rules:
    """The rules for a vendor."""
    data = _read(HERE / "rules.yaml")
    if vendor not in data["vendors"]:
        raise CiError(f"no rules for vendor {vendor!r}; there are {', '.join(data['vendors'])}")
    other = _read(HERE / "replacements.yaml")
    return Rules(
        vendor=_vendor(vendor, data["vendors"][vendor]),
        rules=data["rules"],
        device_types=frozenset(data["device_types"]),
        text_calls=frozenset(data["text_calls"]),
        text_names=re.compile(data["text_names"]),
        vendor_folders=frozenset(data["vendor_folders"]),
        kinds=_tuples(data["kinds"]),
        max_bytes=data["limits"]["bytes"],
        layouts=_tuples(data["layouts"]),
        skip=re.compile(data["skip"]),
        subsystems=_tuples(data["subsystems"]),
        replacements=tuple(_replacement(vendor, entry) for entry in other["symbols"]),
        rule_replacements={e["for"]: _replacement(vendor, e) for e in other["rules"]},
    )


@functools.cache
def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise CiError(f"{path}: {error}") from error


def _tuples(table: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(values) for key, values in table.items()}


def _vendor(key: str, entry: dict[str, Any]) -> Vendor:
    texts = {"title", "is_device", "method"}
    lists = {"words", "exact", "unless", "suffixes", "listed", "modules"}
    fields: dict[str, Any] = {
        name: value if name in texts else tuple(value) if name in lists else re.compile(value)
        for name, value in entry.items()
    }
    return Vendor(key=key, **fields)


def _replacement(vendor: str, entry: dict[str, Any]) -> Replacement:
    return Replacement(
        pattern=entry["for"].replace("<vendor>", vendor),
        use=entry["use"],
        names=tuple(entry["names"]),
        since=entry["since"],
        note=entry.get("note"),
    )
