# SPDX-License-Identifier: BSD-3-Clause
"""Names that changed. Reports and stores keep the old ones; their readers ask here for today's."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torch_conformance.spec.operator_families import LISTS, of_case, requirement

#: Tiers, and the levels that have the names of their tiers.
TIERS = {"scale_out": "multi_device"}

#: Until operators had families, one requirement for each topic: OPINFO-003.
_OF_ALL_OPERATORS = re.compile(r"OPINFO-([0-9]{3})")
_IN_PLACE = "011"


def tier(name: str) -> str:
    """The name that the tier, or the level, has today."""
    return TIERS.get(name, name)


def requirements(ids: Iterable[str], check_id: str) -> list[str]:
    """The requirements of a check by the ids that they have today."""
    return list(dict.fromkeys(_requirement(id, check_id) for id in ids))


def _requirement(id: str, check_id: str) -> str:
    old = _OF_ALL_OPERATORS.fullmatch(id)
    topic, *cases = check_id.rpartition("/")[2].split(":")
    if old is None or not cases:
        return id
    if topic != "foreach":
        return requirement(of_case(cases[0]), old[1])
    return requirement(LISTS, _IN_PLACE if cases[0].endswith("_inplace") else old[1])
