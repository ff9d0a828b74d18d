# SPDX-License-Identifier: BSD-3-Clause
"""docs/migration.md says what the table of names says."""

from __future__ import annotations

import migration

from torch_puone.migrate import table


def test_the_tables_of_the_document_are_those_of_the_data() -> None:
    assert migration.PAGE.read_text() == migration.page(), "run python docs/migration.py"


def test_every_name_is_in_the_document() -> None:
    text = migration.page()
    assert all(f"`{row.name}`" in text for row in table.ROWS)
