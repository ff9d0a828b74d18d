# SPDX-License-Identifier: BSD-3-Clause
"""Why a check neither passed nor failed: one class for each kind of reason.

Code decides by the class and its fields. The text is rendered last, for people: nothing reads it.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from torch_conformance.spec.outcome import Outcome

#: The lists of an expectations file.
List = Literal["unsupported", "xfail", "flaky"]


class _Reason(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="kind",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """What all kinds have in common."""

    @property
    def heading(self) -> str:
        """What reasons of one kind have in common, for lists that group them."""
        return str(self)


class MissingCapability(_Reason, frozen=True, kw_only=True, tag="missing_capability"):
    """The backend lacks capabilities that the check needs."""

    names: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]

    def __str__(self) -> str:
        return f"needs capability {', '.join(map(repr, self.names))}"


class NotApplicable(_Reason, frozen=True, kw_only=True, tag="not_applicable"):
    """The requirement is of a later torch, or of an earlier one."""

    requirement: str
    since: str | None = None
    until: str | None = None

    def __str__(self) -> str:
        limit = f"since torch {self.since}" if self.since else f"until torch {self.until}"
        return f"{self.requirement} applies {limit}"


class DeclaredUnsupported(_Reason, frozen=True, kw_only=True, tag="declared_unsupported"):
    """The descriptor says that the backend does not have this data type."""

    dtype: str

    def __str__(self) -> str:
        return f"dtype {self.dtype} is declared unsupported"


class Blocked(_Reason, frozen=True, kw_only=True, tag="blocked"):
    """PyTorch itself prevents it, by an issue that the catalogue names."""

    issue: str
    message: str = ""
    """How the check failed."""

    def __str__(self) -> str:
        return f"{self.issue}; {self.message}" if self.message else self.issue

    @property
    def heading(self) -> str:
        return self.issue


class Excused(_Reason, frozen=True, kw_only=True, tag="excused"):
    """An entry of the expectations file decided."""

    list: List
    """The list of the entry."""
    entry: str
    """The pattern of the entry."""
    text: str
    """The reason that the entry gives."""
    link: str
    observed: Outcome | None = None
    """How the check itself ended; unknown in reports of an earlier suite."""
    message: str = ""
    """What the check said."""

    def __str__(self) -> str:
        said = f"{self.text} ({self.link})" if self.link else self.text
        if self.list != "flaky" or self.observed is None:
            return said
        if self.observed is Outcome.PASS:
            return f"{said}; passed this time"
        return f"{said}; {self.observed} this time: {self.message}"

    @property
    def heading(self) -> str:
        return self.text


class NoReference(_Reason, frozen=True, kw_only=True, tag="no_reference"):
    """The CPU has no answer to compare with."""

    text: str

    def __str__(self) -> str:
        return f"the CPU gives nothing to compare with: {self.text}"

    @property
    def heading(self) -> str:
        return "the CPU gives nothing to compare with"


class Stated(_Reason, frozen=True, kw_only=True, tag="stated"):
    """The check itself said why, in a text of its own."""

    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def heading(self) -> str:
        return self.text.partition(": ")[0]


class Environment(_Reason, frozen=True, kw_only=True, tag="environment"):
    """The environment failed, by the descriptor's `environment_errors`."""

    text: str

    def __str__(self) -> str:
        return f"environment: {self.text}"

    @property
    def heading(self) -> str:
        return "environment"


class DeviceGone(_Reason, frozen=True, kw_only=True, tag="device_gone"):
    """The device was lost before the check could run."""

    text: str

    def __str__(self) -> str:
        return f"device lost: {self.text}"

    @property
    def heading(self) -> str:
        return "device lost"


class CannotLoadBackend(_Reason, frozen=True, kw_only=True, tag="cannot_load"):
    """The backend did not come up in the process that was to run the check."""

    text: str

    def __str__(self) -> str:
        return f"cannot load: {self.text}"

    @property
    def heading(self) -> str:
        return "cannot load"


#: A further kind of reason is a further member.
Reason = (
    MissingCapability
    | NotApplicable
    | DeclaredUnsupported
    | Blocked
    | Excused
    | NoReference
    | Stated
    | Environment
    | DeviceGone
    | CannotLoadBackend
)


class Unsupported(Exception):
    """Raised by a check (or on its behalf) when the backend lacks what the check needs."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason
