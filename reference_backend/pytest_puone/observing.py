# SPDX-License-Identifier: BSD-3-Clause
"""In the process of one test: what the device and the sanitizer say about it."""

from __future__ import annotations

from collections.abc import Generator

import pytest

import torch_puone
from torch_puone import _C, faults, sanitizer

from .settings import Settings

# Frames of these are no part of the program: the runner of tests.
_RUNNERS = ("/_pytest/", "/pluggy/", "/pytest_puone/", "/pytest/", "/xdist/", "/execnet/")


def fallbacks() -> dict[str, int]:
    """The operators that ran on the CPU in this process, and how often."""
    return {name: count for name, count in torch_puone._fallback_counts().items() if count}


class Observer:
    """Fails the test for what it has done wrong without an exception."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._reported = 0  # reports of the sanitizer that have failed the test already

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """The options may be wrong, which the driver says when it is loaded."""
        if not torch_puone.is_available():
            pytest.fail(f"puone is not available: {_C.driver_info()['error']}", pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Judge the test with its fixtures, so far."""
        yield from self._judged(item, "call")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        """Judge what the fixtures did at their end."""
        yield from self._judged(item, "teardown")

    def _judged(self, item: pytest.Item, when: str) -> Generator[None]:
        try:
            yield
        except BaseException:
            if found := self._findings():
                item.add_report_section(when, "puone", found)
            raise
        if found := "\n\n".join(filter(None, [_late_error(), self._findings()])):
            pytest.fail(found, pytrace=False)

    def _findings(self) -> str:
        """What was found since the last call; "" if nothing."""
        reports = sanitizer.reports()
        texts = [_without_runners(str(report)) for report in reports[self._reported :]]
        self._reported = len(reports)
        if self._settings.fallback == "forbid" and (counts := fallbacks()):
            listed = "\n".join(f"  {name}: {count}" for name, count in sorted(counts.items()))
            texts.append(f"puone: operators ran on the CPU, which this test forbids:\n{listed}")
            torch_puone._reset_fallback_counts()
        return "\n\n".join(texts)


def _late_error() -> str:
    """Wait for all devices, while this test is the one to blame for an error; its text, or ""."""
    if not torch_puone.is_initialized():
        return ""
    faults.reset()  # a device that was lost on purpose is no error
    try:
        for device in range(torch_puone.device_count()):
            torch_puone.synchronize(device)
    except RuntimeError as error:
        return f"puone: an error that the test did not wait for: {_without_runners(str(error))}"
    return ""


def _without_runners(text: str) -> str:
    def is_runner(line: str) -> bool:
        path = line.strip().partition('"')[2].partition('"')[0]
        return line.lstrip().startswith("File ") and any(name in path for name in _RUNNERS)

    return "\n".join(line for line in text.splitlines() if not is_runner(line))
