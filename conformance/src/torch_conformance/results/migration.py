# SPDX-License-Identifier: BSD-3-Clause
"""Reports of earlier suites, in today's names of tiers and requirements."""

from __future__ import annotations

from typing import Any, TypeGuard

from torch_conformance.spec import former_names

Json = dict[str, Any]


def current(content: Any) -> Any:
    """The report in today's names. What has not the form of a report stays as it is."""
    if not isinstance(content, dict):
        return content
    listed, records = content.get("requirements"), content.get("checks")
    if not isinstance(listed, dict) or not isinstance(records, list):
        return content
    renamed = [_record(record) for record in records]
    new = {id: old for record in renamed for id, old in record[1].items()}
    entries = {id: _with_tier(entry) for id, entry in listed.items()}
    gone = set(new.values())
    return {
        **content,
        "requirements": {id: entry for id, entry in entries.items() if id not in gone}
        | {id: entries[old] for id, old in new.items() if old in entries},
        "checks": [record for record, _ in renamed],
    }


def _record(record: Any) -> tuple[Any, dict[str, str]]:
    """The record, and which requirements of it (by their new ids) had which id."""
    if not isinstance(record, dict):
        return record, {}
    made = _with_tier(record)
    ids = record.get("requirements")
    if not isinstance(record.get("id"), str) or not _are_texts(ids):
        return made, {}
    changed = {}
    for old in ids:
        (new,) = former_names.requirements([old], record["id"])
        if new != old:
            changed[new] = old
    if changed:
        made = {**made, "requirements": former_names.requirements(ids, record["id"])}
    return made, changed


def _with_tier(entry: Any) -> Any:
    if isinstance(entry, dict) and entry.get("tier") in tuple(former_names.TIERS):
        return {**entry, "tier": former_names.tier(entry["tier"])}
    return entry


def _are_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
