# SPDX-License-Identifier: BSD-3-Clause
"""The README of the suite lists the outcomes and the keys of the descriptor that there are."""

from __future__ import annotations

import pytest
from readme_tables import TABLES, written


@pytest.mark.parametrize("name", TABLES)
def test_the_readme_has_each_table_as_it_is_declared(name: str) -> None:
    assert written(name) == TABLES[name](), "run: python test/docs/readme_tables.py"
