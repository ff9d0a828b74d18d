# SPDX-License-Identifier: BSD-3-Clause
"""The device allocator as Python sees it; test/cpp/allocator tests what it does inside."""

from __future__ import annotations

import threading
import time

import pytest
import torch


@pytest.mark.usefixtures("uncollected")
def test_a_block_whose_event_cannot_be_recorded_is_not_handed_out() -> None:
    puone = torch.puone  # type: ignore[attr-defined]  # set at run time
    puone.empty_cache()
    side = torch.Stream(device="puone:0")
    a, b = (torch.empty(100, device="puone:0") for _ in range(2))
    address, active = a.data_ptr(), puone.memory_stats(0)["active.all.current"]
    a.record_stream(side)
    puone.faults.device_lost(0)
    del a
    puone.faults.reset()
    del b
    again = [torch.empty(100, device="puone:0") for _ in range(16)]
    assert address not in [x.data_ptr() for x in again]
    del again
    assert puone.memory_stats(0)["active.all.current"] == active - 1  # the held one
    puone.empty_cache()
    assert puone.memory_stats(0)["active.all.current"] == active - 2


def test_statistics_do_not_wait_for_a_cache_that_is_being_emptied() -> None:
    puone = torch.puone  # type: ignore[attr-defined]  # set at run time
    puone.empty_cache()
    side = torch.Stream(device="puone:0")
    for ms in (600, 3000, 10000):  # A slow machine only costs another attempt.
        x = torch.empty(1000, device="puone:0")
        with side:
            puone._sleep_ms(ms)
        x.record_stream(side)
        del x
        emptying = threading.Thread(target=puone.empty_cache)
        emptying.start()
        time.sleep(0.05)
        puone.memory_stats(0)
        puone.memory_snapshot()
        puone.reset_peak_memory_stats(0)
        torch.empty(10, device="puone:0")
        torch.empty(10, device="puone:1")
        was_alive = emptying.is_alive()
        emptying.join()
        if was_alive:
            return
    raise AssertionError("the statistics came after the cache had been emptied, each time")
