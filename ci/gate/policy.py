# SPDX-License-Identifier: BSD-3-Clause
"""The policy: which configurations decide, and what each class of check means."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from ci.errors import CiError
from ci.gate.verdict import Class, Means

FILE = Path(__file__).parent / "policy.yaml"
SCHEMA = Path(__file__).parent / "schema" / "policy.schema.json"
MAX_BYTES = 1 << 20

DEFAULTS: Mapping[Class, Means] = {
    Class.MISSING: Means.INFRASTRUCTURE,
    Class.NEW_FAILURE: Means.REGRESSION,
    Class.WITHDRAWN: Means.REGRESSION,
    Class.UNEXPECTED_PASS: Means.REGRESSION,
    Class.TO_FALLBACK: Means.REGRESSION,
}


@dataclass(frozen=True)
class Limits:
    """What is read and written at most."""

    report_mib: int = 64
    reports_per_lane: int = 256
    lanes: int = 64
    checks: int = 500


@dataclass(frozen=True)
class Retired:
    """Checks whose disappearance is meant; `*` only at the end of `id`."""

    id: str
    reason: str

    def matches(self, id: str) -> bool:
        """Whether it is about this check."""
        return id.startswith(self.id[:-1]) if self.id.endswith("*") else id == self.id


@dataclass(frozen=True)
class Policy:
    """What the gate asks for."""

    lanes: Mapping[str, bool]  # whether it is required
    torches: Mapping[str, str] = field(
        default_factory=dict
    )  # which configuration must have run which
    classes: Mapping[Class, Means] = field(default_factory=dict)
    missing_after_change: Mapping[str, Means] = field(default_factory=dict)  # suite, torch
    may_differ: frozenset[str] = frozenset()
    retired: tuple[Retired, ...] = ()
    without_baseline: Means = Means.INFRASTRUCTURE
    limits: Limits = Limits()

    def means(self, kind: Class) -> Means:
        """What a class of checks means."""
        return self.classes.get(kind) or DEFAULTS.get(kind, Means.NOTE)

    def missing(self, changed: Iterable[str]) -> Means:
        """What a missing check means, if between the runs these things changed: suite, torch."""
        usual = self.means(Class.MISSING)
        after = (self.missing_after_change.get(what, usual) for what in changed)
        return min(after, key=lambda means: means.rank, default=usual)


def load(file: Path = FILE) -> Policy:
    """Read a policy; CiError says what is wrong in it."""
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        return parse(data, str(file))
    except OSError as error:
        raise CiError(f"{file}: cannot read the policy: {error.strerror}") from error


def parse(data: bytes, name: str) -> Policy:
    """The policy that these bytes are."""
    if len(data) > MAX_BYTES:
        raise CiError(f"{name}: no policy: larger than {MAX_BYTES >> 20} MiB")
    try:
        text = data.decode()
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise CiError(f"{name}: no policy: aliases (*name) are not taken")
        document = yaml.safe_load(text)
    except (UnicodeDecodeError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise CiError(f"{name}: no policy: {error}") from None
    if wrong := next(_validator().iter_errors(document), None):
        place = "/".join(map(str, wrong.absolute_path)) or "the document"
        raise CiError(f"{name}: no policy: {place}: {wrong.message[:200]}")
    return _policy(document)


@functools.cache
def _validator() -> Any:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _policy(document: dict[str, Any]) -> Policy:
    lanes, classes = document["lanes"], document.get("classes", {})
    after = document.get("missing_after_change", {})
    return Policy(
        lanes={name: lane["required"] for name, lane in lanes.items()},
        torches={name: lane["torch"] for name, lane in lanes.items() if "torch" in lane},
        classes={Class(name): Means(means) for name, means in classes.items()},
        missing_after_change={what: Means(means) for what, means in after.items()},
        may_differ=frozenset(document.get("may_differ", ())),
        retired=tuple(Retired(**entry) for entry in document.get("retired", ())),
        without_baseline=Means(document.get("without_baseline", "infrastructure")),
        limits=Limits(**document.get("limits", {})),
    )
