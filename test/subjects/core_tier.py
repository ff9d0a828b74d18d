# SPDX-License-Identifier: BSD-3-Clause
"""The whole core tier on every unusual but correct backend: minutes, so not in `make test`."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_truth_tellers import SUBJECTS, judge


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_core_tier_stays_green(name: str, tmp_path: Path) -> None:
    judge(name, tmp_path, "--tier=core").assert_green(executed=1500)
