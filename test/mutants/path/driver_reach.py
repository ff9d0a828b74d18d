# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: writes which mutants each test of the driver suite reaches."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import mutant_switch
import pytest
import reach_log


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    marks = mutant_switch.shared(os.environ[reach_log.MARKS])
    assert marks is not None
    begin = time.perf_counter()
    result = yield
    reach_log.write(item.nodeid, marks, time.perf_counter() - begin)
    return result
