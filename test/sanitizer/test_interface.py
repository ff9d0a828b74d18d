# SPDX-License-Identifier: BSD-3-Clause
"""How the sanitizer is turned on, and what its reports look like."""

from __future__ import annotations

import pytest
from interpreter import Python

RACE = """
import torch, warnings
def race():
    x = torch.zeros(1024, device="puone")
    torch.puone.synchronize()
    side = torch.puone.Stream()
    x.fill_(2)
    with torch.puone.stream(side):
        x.sum()
    return side
"""


def succeeds(python: Python, code: str, **env: str) -> str:
    done = python(RACE + code, autoload=True, env={"PUONE_DRIVER": "sim", **env})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_report_says_who_where_and_what_is_missing(python: Python) -> None:
    succeeds(
        python,
        """
with torch.puone.sanitizer.watch("collect") as reports:
    side = race()
[report] = reports
first, then = report.accesses
assert report.kind == "race" and report.bytes == 4096
assert (first.operator, first.mode, first.stream) == (
    "aten::fill_", "write", "the default stream of puone:0")
assert first.argument == "out" and first.work == "kernel fill", first
assert (then.operator, then.mode, then.stream) == (
    "aten::sum", "read", f"stream {side.stream_id} of puone:0")
assert (then.argument, then.work) == ("in", "kernel sum"), then
assert [frame.function for frame in first.stack] == ["<module>", "race"], first.stack
assert then.stack[-1].line == first.stack[-1].line + 2
assert report.allocated_by == "aten::zeros"
assert then.stream in report.missing and "wait_stream" in report.missing
for part in (report.missing, "race", "aten::fill_", "line", first.stream, then.stream):
    assert part in str(report)
""",
    )


def test_the_variable_watches_a_program_and_warns(python: Python) -> None:
    succeeds(
        python,
        """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    race()
assert len(caught) == 1 and "puone sanitizer: a race" in str(caught[0].message), caught
assert torch.puone.sanitizer.is_enabled()
assert [report.kind for report in torch.puone.sanitizer.reports()] == ["race"]
""",
        PUONE_SANITIZE="1",
    )


def test_the_call_that_completes_the_race_raises(python: Python) -> None:
    succeeds(
        python,
        """
try:
    race()
except RuntimeError as error:
    assert "puone sanitizer: a race" in str(error)
    assert error.__traceback__.tb_next.tb_lineno == 9, error.__traceback__.tb_next.tb_lineno
else:
    raise AssertionError("did not raise")
""",
        PUONE_SANITIZE="raise",
    )


def test_what_the_host_does_raises_at_the_end_of_the_block(python: Python) -> None:
    succeeds(
        python,
        """
host = torch.ones(1024).pin_memory()
x = torch.zeros(1024, device="puone")
try:
    with torch.puone.sanitizer.watch("raise"):
        x.copy_(host, non_blocking=True)
        host.zero_()
except RuntimeError as error:
    assert "the host uses pinned memory too early" in str(error)
else:
    raise AssertionError("did not raise")
""",
    )


def test_nothing_is_watched_before_and_behind(python: Python) -> None:
    succeeds(
        python,
        """
sanitizer = torch.puone.sanitizer
race()
assert not sanitizer.is_enabled() and sanitizer.reports() == []
with sanitizer.watch("collect") as reports:
    pass
race()
assert not sanitizer.is_enabled() and reports == sanitizer.reports() == []
""",
    )


def test_a_place_is_reported_once(python: Python) -> None:
    succeeds(
        python,
        """
with torch.puone.sanitizer.watch("collect") as reports:
    for _ in range(5):
        x = torch.zeros(1024, device="puone")
        torch.puone.synchronize()
        x.fill_(2)
        with torch.puone.stream(torch.puone.default_stream()):
            x.sum()
        side = torch.puone.Stream(stream_id=3, device_index=0, device_type=20)
        with torch.puone.stream(side):
            x.mean()
        torch.puone.synchronize()
assert len(reports) == 1, [str(report) for report in reports]
""",
    )


def test_reports_end_with_clear(python: Python) -> None:
    succeeds(
        python,
        """
torch.puone.sanitizer.enable("collect")
race()
torch.puone.sanitizer.clear()
assert torch.puone.sanitizer.reports() == []
torch.puone.sanitizer.disable()
""",
    )


def test_profiler_and_sanitizer_are_on_together(python: Python) -> None:
    succeeds(
        python,
        """
from torch.profiler import ProfilerActivity, profile
with torch.puone.sanitizer.watch("collect") as reports:
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiled:
        race()
    race()
assert len(reports) == 2, reports
assert "fill" in {event.name for event in profiled.events()}
""",
    )


@pytest.mark.parametrize("value", ["yes", "2"])
def test_an_unknown_value_is_an_error(python: Python, value: str) -> None:
    done = python("import torch", autoload=True, env={"PUONE_SANITIZE": value})
    assert done.returncode != 0
    assert "PUONE_SANITIZE must be 0, 1, warn, raise, collect" in done.stderr


def test_an_unknown_reaction_is_an_error(python: Python) -> None:
    succeeds(
        python,
        """
try:
    torch.puone.sanitizer.enable("shout")
except ValueError as error:
    assert "on_report must be one of warn, raise, collect" in str(error)
else:
    raise AssertionError("did not raise")
""",
    )


def test_columns_in_a_hundred_thousand_ranges_are_no_false_alarm(python: Python) -> None:
    succeeds(
        python,
        """
x = torch.empty(100_000, 2, device="puone")
torch.puone.synchronize()
streams = [torch.puone.Stream() for _ in range(2)]
with torch.puone.sanitizer.watch("collect") as reports:
    for column, stream in enumerate(streams):
        with torch.puone.stream(stream):
            x[:, column].fill_(column)
    torch.puone.synchronize()
    x.sum()
assert reports == []
""",
    )
