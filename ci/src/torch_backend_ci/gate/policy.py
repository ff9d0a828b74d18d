# SPDX-License-Identifier: BSD-3-Clause
"""The policy: which configurations decide, and what each class of check means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from torch_backend_ci import document
from torch_backend_ci.checkout import ROOT
from torch_backend_ci.document import Part, Text, one_of
from torch_backend_ci.gate.verdict import Class, LaneName, Means

FILE = ROOT / "ci" / "gate" / "policy.yaml"
MAX_BYTES = 1 << 20

DEFAULTS: Mapping[Class, Means] = {
    Class.MISSING: Means.INFRASTRUCTURE,
    Class.NEW_FAILURE: Means.REGRESSION,
    Class.WITHDRAWN: Means.REGRESSION,
    Class.UNEXPECTED_PASS: Means.REGRESSION,
    Class.TO_FALLBACK: Means.REGRESSION,
}

#: What a policy may speak of: of an unchanged check there is nothing to say.
Judged = Annotated[str, one_of(*(c.value for c in Class if c is not Class.UNCHANGED))]


class Limits(Part, frozen=True):
    """What is read and written at most."""

    report_mib: Annotated[int, Meta(ge=1, le=64)] = 64
    reports_per_lane: Annotated[int, Meta(ge=1, le=10_000)] = 256
    lanes: Annotated[int, Meta(ge=1, le=256)] = 64
    checks: Annotated[int, Meta(ge=1, le=2000)] = 500


class Retired(Part, frozen=True):
    """Checks whose disappearance is meant."""

    id: Annotated[str, Meta(pattern=r"^[^*]+\*?$", description="`*` only at the end.")]
    reason: Text

    def matches(self, id: str) -> bool:
        """Whether it is about this check."""
        return id.startswith(self.id[:-1]) if self.id.endswith("*") else id == self.id


class LanePolicy(Part, frozen=True):
    """What is asked of one configuration."""

    required: bool
    pin: Annotated[
        Text | UnsetType,
        Meta(description="The pin (ci/pins) whose torch it must have run, to the commit."),
    ] = UNSET
    torch: Annotated[
        Text | UnsetType,
        Meta(
            description="Without a pin: the version that it must have run, without its local part "
            "(+cpu)."
        ),
    ] = UNSET
    backend: Annotated[Text | UnsetType, Meta(description="The backend, by its name.")] = UNSET
    driver: Annotated[
        Text | UnsetType, Meta(description="What the backend must call the driver in use.")
    ] = UNSET

    def __post_init__(self) -> None:
        if self.pin is not UNSET and self.torch is not UNSET:
            raise ValueError("either `pin` or `torch`")


class MissingAfterChange(Part, frozen=True):
    """What a missing check means where the run before asked for something else."""

    suite: Means | UnsetType = UNSET
    torch: Means | UnsetType = UNSET


class Policy(Part, frozen=True):
    """What `torch-backend-ci gate` asks for."""

    lanes: Annotated[
        Mapping[LaneName, LanePolicy],
        Meta(
            min_length=1,
            description="Configurations that are not listed are shown and decide nothing.",
        ),
    ]
    classes: Mapping[Judged, Means] = {}
    missing_after_change: MissingAfterChange = MissingAfterChange()
    may_differ: frozenset[Literal["backend", "suite", "options", "selection", "seed"]] = frozenset()
    retired: tuple[Retired, ...] = ()
    without_baseline: Literal["note", "infrastructure"] = "infrastructure"
    limits: Limits = Limits()

    def requires(self, lane: str) -> bool:
        """Whether a configuration decides."""
        return lane in self.lanes and self.lanes[lane].required

    def means(self, kind: Class) -> Means:
        """What a class of checks means."""
        return self.classes.get(kind.value) or DEFAULTS.get(kind, Means.NOTE)

    def missing(self, changed: Iterable[str]) -> Means:
        """What a missing check means, if between the runs these things changed: suite, torch."""
        usual = self.means(Class.MISSING)
        after = (getattr(self.missing_after_change, what) or usual for what in changed)
        return min(after, key=lambda means: means.rank, default=usual)


def load(file: Path = FILE) -> Policy:
    """Read a policy; DocumentError says what is wrong in it, and where."""
    return document.read(file, Policy, MAX_BYTES)
