# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: writes which mutants each test of the driver suite reaches."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import mutant_switch
import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    marks = mutant_switch.shared(os.environ["PUONE_MUTANTS_REACHED"])
    assert marks is not None
    marks[:] = bytes(len(marks))
    begin = time.perf_counter()
    result = yield
    seconds = time.perf_counter() - begin
    reached = [number for number, mark in enumerate(marks[:]) if mark]
    with open(os.environ["PUONE_MUTANTS_LOG"], "a") as log:
        log.write(json.dumps([item.nodeid, round(seconds, 4), reached]) + "\n")
    return result
