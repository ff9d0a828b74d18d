# SPDX-License-Identifier: BSD-3-Clause
"""The HAL suite on the cuda driver's own host code, over the stand-in in several guises."""

from __future__ import annotations

from pathlib import Path

import pytest
from suites import STANDIN, needs_standin
from test_hal_suite import ALL, NO_DEVICE, ONE_DEVICE, Guise, run_suite

pytestmark = needs_standin

# Nobody plants misfortune in a real device.
NO_FAULTS = 'not there: the extension "fault"'
SMALL = {"PUONE_STANDIN_MEMORY": "64"}
GUISES = {
    "one_device": Guise({**SMALL, "PUONE_STANDIN_DEVICES": "1"}, frozenset(ONE_DEVICE)),
    "adversarial": Guise({**SMALL, "PUONE_STANDIN_DEVICES": "3", "PUONE_STANDIN_SEED": "20"}),
    "no_device": Guise({"PUONE_STANDIN_DEVICES": "0"}, frozenset(NO_DEVICE)),
}


@pytest.mark.parametrize("guise", GUISES.values(), ids=list(GUISES))
def test_the_cuda_driver_satisfies_every_requirement(guise: Guise, tmp_path: Path) -> None:
    done, verdicts = run_suite(STANDIN, tmp_path, environment=guise.environment)
    assert done.returncode == 0, done.stdout
    assert len(verdicts) > ALL
    skips = {NO_FAULTS, *guise.skips}
    assert set(verdicts.values()) <= {"passed", *(f"skipped: {why}" for why in skips)}
