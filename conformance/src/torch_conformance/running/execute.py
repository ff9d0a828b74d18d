# SPDX-License-Identifier: BSD-3-Clause
"""Running one check in this process and judging how it ended."""

from __future__ import annotations

import gc
import re
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import TracebackType

from torch_conformance.authoring.assertion import said
from torch_conformance.authoring.backend import first_line, text_of
from torch_conformance.authoring.check import Check
from torch_conformance.authoring.compare import DifferentError
from torch_conformance.authoring.device import Device
from torch_conformance.authoring.origin import is_verdict
from torch_conformance.running.result import Result
from torch_conformance.spec.capabilities import NO_STORAGE, NO_SYNCHRONIZE
from torch_conformance.spec.outcome import CheckError, Outcome
from torch_conformance.spec.reason import Environment, MissingCapability, Unsupported

# From here on, PyTorch lists guesses and every kernel that a missing operator has elsewhere.
DISPATCHER = " This could be because the operator doesn't exist for this backend"


#: Capabilities whose absence PyTorch states in fixed words, and these words.
TOLD = {"storages": NO_STORAGE, "synchronize": NO_SYNCHRONIZE}


def execute(
    check: Check, dev: Device, raised: Callable[[BaseException], object] = lambda error: None
) -> Result:
    """Run the check, then wait for the device: a late error belongs to the check that caused it.

    `raised` gets the exception that the check ended with, if there is one.
    """
    begin = time.perf_counter()
    result = Result(check.id, Outcome.PASS)
    try:
        dev.begin(check.id)
        with _uncollected() if check.counts_memory else nullcontext():
            check.run(dev)
            dev.synchronize()
    except Unsupported as error:
        result.outcome, result.reason = Outcome.UNSUPPORTED, error.reason
        _take_late_error(result, check, dev)
    except BaseException as error:
        missing = _missing(error, dev)
        if missing is not None:
            result.outcome = Outcome.UNSUPPORTED
            result.reason = MissingCapability(names=(missing,))
            _take_late_error(result, check, dev)
        else:
            raised(error)
            _judge(result, error, check, dev)
            _quiesce(dev)
    result.duration = time.perf_counter() - begin
    try:
        result.fallbacks = sorted(dev.fallbacks())
    except BaseException as error:  # the backend's own counter
        _judge(result, error, check, dev)
    for name, value in dev.facts.items():
        setattr(result, name, value)
    return result


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage is freed in the block unless it asks for that, as that would move the counts."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _missing(error: BaseException, dev: Device) -> str | None:
    """The capability for want of which PyTorch raised the error.

    Many checks use these capabilities, most of them in PyTorch's own code: to copy, save or share a
    tensor. So this is found out where it happens.
    """
    if not isinstance(error, Exception):
        return None
    absent = (name for name in TOLD if not dev.has(name) and name not in dev.broken)
    return next((name for name in absent if re.search(TOLD[name], text_of(error))), None)


def _judge(result: Result, error: BaseException, check: Check, dev: Device) -> None:
    text = text_of(error).partition(DISPATCHER)[0]
    if any(re.search(pattern, text) for pattern in dev.descriptor.environment_errors):
        result.outcome, result.reason = Outcome.NOT_RUN, Environment(text=first_line(error))
        return
    result.reason = None
    if isinstance(error, AssertionError) and is_verdict(error, check.file):
        result.outcome = Outcome.FAIL
        result.message = said(error).partition(DISPATCHER)[0]
        result.mismatch = error.mismatch if isinstance(error, DifferentError) else None
    else:
        result.outcome = Outcome.ERROR
        named = text if isinstance(error, CheckError) else f"{type(error).__name__}: {text}"
        result.message = named.removesuffix(": ")
    result.detail = _traceback(error.__traceback__, check)


def _take_late_error(result: Result, check: Check, dev: Device) -> None:
    """Wait for the work that an unsupported check has queued; its error is the check's own."""
    try:
        dev.synchronize()
    except BaseException as error:
        _judge(result, error, check, dev)
        _quiesce(dev)


def _quiesce(dev: Device) -> None:
    """After a failure: take late errors off the device, so that the next check starts clean."""
    try:
        dev.synchronize()
    except BaseException:  # SystemExit, too: the check that ran has its result
        pass


def _traceback(trace: TracebackType | None, check: Check) -> str:
    """The frames from the body of the check inwards, as text."""
    frames = traceback.extract_tb(trace)
    inner = [i for i, frame in enumerate(frames) if frame.filename == check.file]
    return "".join(traceback.format_list(frames[inner[0] if inner else 0 :]))
