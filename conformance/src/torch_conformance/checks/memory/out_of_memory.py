# SPDX-License-Identifier: BSD-3-Clause
"""Running out of memory and other failures: what is raised, said and counted, and what stays."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check, in_thread, raised, words
from torch_conformance.checks.memory._blocks import (
    LARGE,
    LIMITED,
    MIB,
    all_returned,
    allocate,
    allocated_bytes,
    exhaust,
    free_bytes,
    on_first_device,
    reserved_bytes,
    settle,
)

#: What fails, with a vector of a thousand elements that requires a gradient.
_FAILURES: dict[str, Callable[[torch.Tensor], object]] = {
    "operator": lambda x: (x * 2) + torch.ones(999, device=x.device),
    "backward": lambda x: (x * 2).backward(),  # not a scalar
    "allocation": lambda x: x.new_empty(1 << 46, dtype=torch.uint8),
}


@check("memory/after_exception", "MEM-019", cases=_FAILURES, needs=("memory_stats",))
def exceptions_leak_no_memory(dev: Device, case: str) -> None:
    """Memory held by a failed operation is returned once its exception is gone."""

    def fail() -> None:
        _FAILURES[case](torch.ones(1000, device=dev.device(), requires_grad=True))

    with all_returned(dev):
        for _ in range(5):
            raised(fail)


@check("memory/after_half", "MEM-019", needs=("memory_limit", "memory_info", "memory_stats"))
def operations_that_fail_half_way_leak_no_memory(dev: Device) -> None:
    """An operator that has memory for its first result only returns that, too."""
    with on_first_device(dev):
        x = torch.empty(LARGE // 8, device=dev.device()).zero_()
        # Room for the sorted values, and not for their indices, which are twice as large.
        ballast = allocate(dev, free_bytes() - LARGE)
        before = allocated_bytes()
        for _ in range(3):
            assert isinstance(raised(x.sort), torch.OutOfMemoryError)
        assert allocated_bytes() == before, f"{allocated_bytes() - before} bytes stay allocated"
        del ballast
        assert x.clone()[-1].item() == 0


#: Operators that need memory for more than their results, and what they are given.
_HUNGRY: dict[str, Callable[[torch.Tensor], Any]] = {
    "sort": lambda x: x.sort().values,
    "unique": lambda x: x.unique_consecutive(),
    "cumsum": lambda x: x.cumsum(0),
    "nonzero": lambda x: x.nonzero(),
    "masked_select": lambda x: x[x > 2],
    "index_put": lambda x: torch.zeros_like(x).index_put_((x.long(),), x, accumulate=True),
    "median": lambda x: x.median(),
    "sum": lambda x: (x * 2).view(3, -1).t().sum(1),
    "cat": lambda x: torch.cat([x, x + 1]),
}
_PARTS = 4


@check(
    "memory/oom_at_any_point",
    "MEM-020",
    cases=_HUNGRY,
    needs=(*LIMITED, "memory_stats", "empty_cache"),
)
def operators_that_run_out_of_memory_say_so(dev: Device, case: str) -> None:
    """Whichever of an operator's allocations fails, that is raised, or the result is right."""
    run = _HUNGRY[case]
    with on_first_device(dev):
        x = torch.arange(3 * MIB, device=dev.device()).remainder_(7).float()
        settle(dev)
        before = allocated_bytes()
        torch.accelerator.reset_peak_memory_stats(0)
        expected = dev.cpu(run(x))
        peak = torch.accelerator.max_memory_allocated(0) - before
        assert peak > 0
        failed = 0
        for part in range(_PARTS):
            settle(dev)
            ballast = allocate(dev, free_bytes() - peak * part // _PARTS)
            try:
                result = dev.cpu(run(x))
            except torch.OutOfMemoryError:
                failed += 1
            else:
                assert torch.equal(result, expected), f"wrong with {part}/{_PARTS} of the memory"
            del ballast
        assert failed > 0, "it needs memory, and ran without any"
        settle(dev)
        assert torch.equal(dev.cpu(run(x)), expected)


def _too_much(dev: Device) -> torch.Tensor:
    return allocate(dev, torch.accelerator.get_memory_info(0)[1] + MIB)


def _runs_out(dev: Device) -> None:
    error = raised(lambda: _too_much(dev))
    assert isinstance(error, torch.OutOfMemoryError), f"{type(error).__name__}: {error}"


def _runs_out_again(dev: Device) -> None:
    for _ in range(5):
        _runs_out(dev)


def _adds(dev: Device) -> None:
    # Not in memory that was cached: the driver has to be asked.
    result = torch.ones(8 * MIB, device=dev.device()) + 1
    dev.assert_equal(result, torch.full((8 * MIB,), 2.0))


@check("memory/oom:type", "MEM-020", needs=LIMITED)
def running_out_raises_out_of_memory(dev: Device) -> None:
    """More than the device has raises torch.OutOfMemoryError."""
    with on_first_device(dev):
        _runs_out(dev)


@check("memory/oom:in_thread", "MEM-020", needs=LIMITED)
def running_out_raises_out_of_memory_in_a_thread(dev: Device) -> None:
    """More than the device has raises torch.OutOfMemoryError in another thread as well."""
    with on_first_device(dev):
        _runs_out(dev)
        in_thread(lambda: _runs_out(dev))


#: What is done after memory has run out.
_AFTERWARDS: dict[str, Callable[[Device], None]] = {
    "usable_after": _adds,
    "repeatedly": _runs_out_again,
}


@check("memory/oom", "MEM-048", cases=_AFTERWARDS, needs=LIMITED)
def running_out_leaves_the_device_usable(dev: Device, case: str) -> None:
    """After torch.OutOfMemoryError the device computes, and raises it again when it is due."""
    with on_first_device(dev):
        _runs_out(dev)
        _AFTERWARDS[case](dev)


@check("memory/oom:runtime_error", "MEM-020", needs=LIMITED)
def running_out_can_be_caught_as_a_runtime_error(dev: Device) -> None:
    """More than the device has raises a RuntimeError."""
    with on_first_device(dev):
        error = raised(lambda: _too_much(dev))
        assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"


@check("memory/oom:nothing_leaked", "MEM-019", needs=LIMITED)
def running_out_leaks_no_memory(dev: Device) -> None:
    """An out-of-memory error leaves no more memory allocated than before."""
    dev.require("memory_stats")
    with all_returned(dev):
        _runs_out(dev)


#: What the message says when so many bytes were asked for.
_SAID: dict[str, Callable[[str, int], bool]] = {
    "out_of_memory": lambda message, asked: "out of memory" in message.lower(),
    "size": lambda message, asked: any(abs(s / asked - 1) < 0.12 for s in _sizes(message)),
    "device": lambda message, asked: "0" in words(message),
}


@check("memory/oom_message", "MEM-021", cases=_SAID, needs=LIMITED)
def out_of_memory_says_what_happened(dev: Device, case: str) -> None:
    """The message says out of memory, how much was asked for, and of which device."""
    with on_first_device(dev):
        # Not to be taken for any other number of the message.
        asked = 3 * torch.accelerator.get_memory_info(0)[1]
        message = str(raised(lambda: allocate(dev, asked)))
    assert _SAID[case](message, asked), message


_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40}


def _sizes(message: str) -> list[float]:
    """The numbers of bytes that a text names; units of 1000 and of 1024 are taken for the same."""
    found = re.findall(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])i?b\b|bytes|b\b)?", message, re.IGNORECASE)
    return [float(number) * 2 ** _UNITS.get(unit.lower(), 0) for number, unit in found]


@check("memory/oom_counted", "MEM-022", needs=("memory_limit", "memory_info", "memory_stats"))
def out_of_memory_is_counted(dev: Device) -> None:
    """Each out-of-memory error raises num_ooms by one."""
    with on_first_device(dev):
        before = torch.accelerator.memory_stats(0)["num_ooms"]
        for count in (1, 2):
            raised(lambda: _too_much(dev))
            assert torch.accelerator.memory_stats(0)["num_ooms"] == before + count


@check("memory/oom_elsewhere:message", "MEM-021", needs=(*LIMITED, "multi_device"))
def out_of_memory_names_the_device_that_ran_out(dev: Device) -> None:
    """Running out on the last device while the first is current names the last device."""
    with on_first_device(dev):
        message = str(exhaust(dev, dev.count - 1))
    assert str(dev.count - 1) in words(message), f"device {dev.count - 1} is not named: {message}"


@check("memory/oom_elsewhere:counted", "MEM-022", needs=(*LIMITED, "memory_stats", "multi_device"))
def out_of_memory_is_counted_where_it_happened(dev: Device) -> None:
    """Running out on the last device raises num_ooms of that device alone."""
    with on_first_device(dev):
        before = [torch.accelerator.memory_stats(i).get("num_ooms", 0) for i in range(dev.count)]
        exhaust(dev, dev.count - 1)
        after = [torch.accelerator.memory_stats(i).get("num_ooms", 0) for i in range(dev.count)]
    assert after == [*before[:-1], before[-1] + 1]


@check("memory/oom_restores", "MEM-019", needs=(*LIMITED, "memory_stats", "empty_cache"))
def running_out_takes_no_free_memory(dev: Device) -> None:
    """After out-of-memory errors each device has as much free and reserved memory as before."""
    with on_first_device(dev):
        for index in {0, dev.count - 1}:
            allocate(dev, 1, index)
            settle(dev)
            before = free_bytes(index), reserved_bytes(index)
            for _ in range(3):
                exhaust(dev, index)
            settle(dev)
            assert (free_bytes(index), reserved_bytes(index)) == before, (
                f"(free, reserved) of {index}"
            )


@check("memory/oom_restores:fill_up", "MEM-019", needs=(*LIMITED, "memory_stats", "empty_cache"))
def memory_that_ran_out_comes_back(dev: Device) -> None:
    """A device that was filled with blocks until none was left has all its memory again."""
    with on_first_device(dev):
        before = free_bytes(), reserved_bytes()
        size = max(before[0] // 24, LARGE) // MIB * MIB
        live: list[torch.Tensor] = []
        with suppress(torch.OutOfMemoryError):
            while len(live) < 100:
                live.append(allocate(dev, size))
        assert 1 <= len(live) < 100 and free_bytes() < size, (
            f"{len(live)} blocks, {free_bytes()} bytes free"
        )
        live.clear()
        settle(dev)
        assert (free_bytes(), reserved_bytes()) == before, "(free, reserved)"


_IMPOSSIBLE: dict[str, Callable[[torch.device], Any]] = {
    "empty": lambda d: torch.empty(1 << 46, dtype=torch.uint8, device=d),
    "zeros": lambda d: torch.zeros(1 << 44, device=d),
    "resize": lambda d: torch.empty(1, dtype=torch.uint8, device=d).resize_(1 << 46),
    "overflow": lambda d: torch.empty(1 << 62, 1 << 62, device=d),
    "just_below_overflow": lambda d: torch.empty((1 << 61) - 1, device=d),
}


def _is_impossible(dev: Device, make: Callable[[torch.device], Any]) -> None:
    error = raised(lambda: make(dev.device()))
    assert isinstance(error, RuntimeError), f"{type(error).__name__}: {error}"
    dev.assert_equal(torch.ones(2, device=dev.device()), torch.ones(2))


@check("memory/impossible", "MEM-024", cases=_IMPOSSIBLE, needs=("accelerator",))
def impossible_sizes_are_refused(dev: Device, case: str) -> None:
    """64 TiB and sizes that overflow raise RuntimeError at once; nothing is promised or wrapped."""
    _is_impossible(dev, _IMPOSSIBLE[case])


@check("memory/impossible:storage", "MEM-024", needs=("accelerator",))
def an_impossible_storage_is_refused(dev: Device) -> None:
    """A storage of 64 TiB raises RuntimeError at once."""
    dev.require("storage_allocation")
    _is_impossible(dev, lambda d: torch.UntypedStorage(1 << 46, device=d))
