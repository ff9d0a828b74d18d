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


def succeeds(python: Python, code: str, *, fresh: bool = False, **env: str) -> str:
    done = python(RACE + code, autoload=True, fresh=fresh, env={"PUONE_DRIVER": "sim", **env})
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
        fresh=True,  # it has the whole stack
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


def test_a_place_raises_each_time(python: Python) -> None:
    """The tests of one process are judged the same in any order."""
    succeeds(
        python,
        """
side = torch.puone.Stream()
raised = 0
for _ in range(3):
    x = torch.zeros(1024, device="puone")
    try:
        with torch.puone.stream(side):
            x.sum()
    except RuntimeError as error:
        raised += "puone sanitizer: a race" in str(error)
    torch.puone.synchronize()
assert raised == 3, raised
assert len(torch.puone.sanitizer.reports()) == 1
""",
        PUONE_SANITIZE="raise",
    )


def test_memory_of_the_host_is_in_use_no_more_when_a_copy_raises(python: Python) -> None:
    """The exception frees it."""
    succeeds(
        python,
        """
x = torch.empty(1 << 20, device="puone")
for copy in (lambda: x.cpu(), lambda: x[0].item()):
    torch.puone._sleep_ms(200)
    try:
        copy()
    except RuntimeError as error:
        assert "never written" in str(error), error
        assert torch.puone.current_stream().query()
    else:
        raise AssertionError("did not raise")
    x = torch.empty(1 << 20, device="puone")
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


def test_synchronize_raises_what_the_host_did(python: Python) -> None:
    """Without it, the mistake would be raised by whatever the program does with a device next."""
    succeeds(
        python,
        """
host = torch.ones(1024).pin_memory()
x = torch.zeros(1024, device="puone")
x.copy_(host, non_blocking=True)
host.zero_()
try:
    torch.accelerator.synchronize()
except RuntimeError as error:
    assert "the host uses pinned memory too early" in str(error)
else:
    raise AssertionError("did not raise")
torch.accelerator.synchronize()
""",
        PUONE_SANITIZE="raise",
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


PROFILED = """
from torch.profiler import ProfilerActivity, profile
BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
def ordered():
    side, main = torch.puone.Stream(), torch.puone.current_stream()
    a = torch.ones(1024, device="puone")
    side.wait_stream(main)
    with torch.puone.stream(side): b = a.sum()
    main.wait_stream(side)
    assert b.item() == 1024
"""


def test_a_profile_before_the_sanitizer_hides_no_order_from_it(python: Python) -> None:
    succeeds(
        python,
        PROFILED
        + """
with profile(activities=BOTH): torch.ones(4, device="puone")
with torch.puone.sanitizer.watch("collect") as reports:
    with profile(activities=BOTH): ordered()
assert reports == [], str(reports[0])
""",
    )


def test_a_sanitizer_that_ends_inside_of_a_profile_sees_nothing_more(python: Python) -> None:
    succeeds(
        python,
        PROFILED
        + """
for _ in range(2):
    torch.puone.sanitizer.enable("collect")
    with profile(activities=BOTH) as found:
        ordered()
        torch.puone.sanitizer.disable()
        torch.ones(1024, device="puone").sum()
        torch.puone.sanitizer.enable("collect")
        ordered()
        race()
        torch.puone.synchronize()
    torch.puone.sanitizer.disable()
    assert [event.name for event in found.events()].count("sum") == 4
assert {report.kind for report in torch.puone.sanitizer.reports()} == {"race"}
""",
    )


BLOCKS = """
sanitizer = torch.puone.sanitizer
side = torch.puone.Stream()
def again():
    x = torch.zeros(1024, device="puone")
    torch.puone.synchronize()
    x.fill_(2)
    with torch.puone.stream(side): x.sum()
    torch.puone.synchronize()
"""


def test_blocks_can_be_nested(python: Python) -> None:
    succeeds(
        python,
        BLOCKS
        + """
def block():
    with sanitizer.watch("collect") as reports:
        again()
    return reports
with sanitizer.watch("collect") as outer:
    again()
    for _ in range(2):
        assert len(block()) == 1 and sanitizer.is_enabled()
    again()
assert len(outer) == 3, [str(report) for report in outer]
assert sanitizer.reports() == outer and not sanitizer.is_enabled()
assert len(block()) == 1
""",
    )


def test_behind_an_inner_block_reports_go_where_they_went_before(python: Python) -> None:
    succeeds(
        python,
        BLOCKS
        + """
with sanitizer.watch("raise"): pass
assert sanitizer.is_enabled()
again()  # raises nothing
[first] = sanitizer.reports()
with sanitizer.watch("raise") as reports: pass
assert reports == [] and sanitizer.reports() == [first]
""",
        PUONE_SANITIZE="collect",
    )


def test_the_sanitizer_cannot_be_turned_on_inside_of_a_capture(python: Python) -> None:
    succeeds(
        python,
        """
x = torch.ones(1024, device="puone")
graph = torch.puone.PUONEGraph()
with torch.puone.graph(graph):
    y = x + 1
    try:
        torch.puone.sanitizer.enable("collect")
    except RuntimeError as error:
        assert "cannot begin to watch while a graph is being captured" in str(error)
    else:
        raise AssertionError("did not raise")
    assert not torch.puone.sanitizer.is_enabled()
graph.replay()
assert y[0].item() == 2
torch.puone.sanitizer.enable("collect")
""",
    )


def test_a_graph_that_was_captured_before_warns_once(python: Python) -> None:
    code = """
x = torch.ones(1024, device="puone")
graph = torch.puone.PUONEGraph()
with torch.puone.graph(graph):
    y = x + 1
with torch.puone.sanitizer.watch("collect") as reports:
    graph.replay()
    graph.replay()
    y.sum()
    followed = torch.puone.PUONEGraph()
    with torch.puone.graph(followed):
        z = x + 1
    followed.replay()
assert reports == [], str(reports[0])
"""
    done = python(RACE + code, autoload=True, env={"PUONE_DRIVER": "sim"})
    assert done.returncode == 0, done.stderr
    said = "captured before watching began: its work is not followed; capture it while watching"
    assert done.stderr.count(said) == 1, done.stderr


def test_watching_may_begin_beside_threads_that_work(python: Python) -> None:
    succeeds(
        python,
        """
import threading, time
done = False
def work():
    while not done: torch.ones(256, device="puone").mul(2)
thread = threading.Thread(target=work)
thread.start()
for _ in range(1000):
    torch.puone.sanitizer.enable("collect")
    time.sleep(0.001)
    torch.puone.sanitizer.disable()
done = True
thread.join()
assert torch.puone.sanitizer.reports() == [], str(torch.puone.sanitizer.reports()[0])
""",
    )


def test_the_native_handle_of_a_stream_is_that_stream(python: Python) -> None:
    succeeds(
        python,
        """
side = torch.puone.Stream()
with torch.puone.sanitizer.watch("collect") as reports:
    with torch.puone.stream(side): x = torch.ones(1000, device="puone")
    with torch.puone.stream(torch.puone.ExternalStream(side.native_handle)): x.add_(1)
    with torch.puone.stream(side): assert x.sum().item() == 2000
assert reports == [], str(reports[0])
assert torch.puone.ExternalStream(side.native_handle) == side
""",
    )
