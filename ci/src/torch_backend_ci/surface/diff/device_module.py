# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch reads off torch.<device>, compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from torch_backend_ci.surface.diff.rules import finding
from torch_backend_ci.surface.model import Declaration, Finding

_MOST_FILES = 3
_TESTS = "torch/testing/"


def findings(
    before: Mapping[str, list[Declaration]], after: Mapping[str, list[Declaration]]
) -> Iterator[Finding]:
    """Every difference between two contracts, by attribute."""
    for name in before.keys() | after.keys():
        was, now = _only(before.get(name)), _only(after.get(name))
        if any(one and one.kind == "module" for one in (was, now)):
            yield from _module(was, now)
        elif now is None:
            yield finding("attribute_not_read", was, None)
        elif was is None:
            yield _new(now)
        else:
            yield from _changed(was, now)


def _only(declarations: list[Declaration] | None) -> Declaration | None:
    return declarations[0] if declarations else None


def _module(was: Declaration | None, now: Declaration | None) -> Iterator[Finding]:
    if was is None:
        yield finding("device_module_required", None, now)
    elif now is None:
        yield finding("device_module_not_required", was, None)


def _new(now: Declaration) -> Finding:
    if now.facts.get("guarded"):
        return finding("attribute_used", None, now, files=_files(now.facts["readers"]))
    return _required("attribute_required", None, now)


def _required(rule: str, was: Declaration | None, now: Declaration) -> Finding:
    files = now.facts["required_by"]
    if all(file.startswith(_TESTS) for file in files):
        rule = "attribute_required_by_tests"
    return finding(rule, was, now, files=_files(files))


def _changed(was: Declaration, now: Declaration) -> Iterator[Finding]:
    needed, needs = was.facts.get("required_by", []), now.facts.get("required_by", [])
    more = sorted(set(needs) - set(needed))
    if needs and not needed:
        yield _required("attribute_made_required", was, now)
    elif needed and not needs:
        yield finding("attribute_made_optional", was, now)
    elif more:
        yield finding("attribute_required_elsewhere", was, now, files=_files(more))
    if now.facts.get("called") and not was.facts.get("called"):
        yield finding("attribute_called", was, now)


def _files(files: Iterable[str]) -> str:
    """The first few, in words."""
    listed = list(files)
    more = len(listed) - _MOST_FILES
    return ", ".join(listed[:_MOST_FILES]) + (f" and {more} more" if more > 0 else "")
