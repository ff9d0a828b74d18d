# SPDX-License-Identifier: BSD-3-Clause
"""How pytest collects the checks."""

from __future__ import annotations

from pathlib import Path

import harness

SPY = """
import gc
from pathlib import Path

def pytest_collection_modifyitems():
    Path("collecting").write_text(str(gc.isenabled()))

def pytest_unconfigure():
    Path("afterwards").write_text(str(gc.isenabled()))
    Path("frozen").write_text(str(gc.get_freeze_count() > 0))
"""


def test_garbage_is_collected_but_not_while_checks_are(tmp_path: Path) -> None:
    (tmp_path / "spy.py").write_text(SPY)
    options = ("-p", "spy", "--backend=cpu", "--check=planted/good*")
    run = harness.run(tmp_path, harness.PLANTED, *options)
    assert run.code == 0, run.text
    assert (tmp_path / "collecting").read_text() == "False"
    assert (tmp_path / "afterwards").read_text() == "True"
    assert (tmp_path / "frozen").read_text() == "True", "all tests are looked at again at the end"
