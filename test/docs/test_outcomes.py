# SPDX-License-Identifier: BSD-3-Clause
"""The README lists the outcomes that there are."""

from __future__ import annotations

from outcomes import expected, written


def test_the_readme_lists_every_outcome_as_the_table_has_it() -> None:
    assert written() == expected(), "run: python test/docs/outcomes.py"
