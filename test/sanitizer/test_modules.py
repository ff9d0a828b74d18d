# SPDX-License-Identifier: BSD-3-Clause
"""The sanitizer follows kernels of modules by what was declared of them."""

from __future__ import annotations

from interpreter import Python

#: Streams and memory of the runtime's own table, which the sanitizer watches.
SETUP = """
import ctypes, torch, torch_puone
from hal_conformance import abi, modules
from hal_conformance.driver import Driver

table = ctypes.CDLL("libtorch_puone.so")._ZN5puone3halEv  # puone::hal()
table.restype = ctypes.c_void_p

class Watched(Driver):
    def __init__(self):
        self.api, self._kept, self._runs_at_once = abi.HalApi.from_address(table()), [], False

COUNT = 64

def programs(code):
    torch.empty(1, device="puone")
    hal = Watched()
    kernel = {name: modules.kernel_of(hal, name) for name in modules.KERNELS}
    with torch_puone.sanitizer.watch("collect") as reports:
        hal = Watched()
        s, t, event = hal.stream(), hal.stream(), hal.event()
        x, y, z = (hal.malloc(4 * COUNT) for _ in range(3))
        for block in (x, y, z):
            hal.memset(block, 0, 4 * COUNT, s)
        hal.synchronize(s)
        def scale(stream, a, out, count=COUNT):
            modules.launch(hal, kernel["scale"], modules.args(count, a, out), stream)
        exec(code, globals() | locals())
        for stream in (s, t):
            hal.synchronize(stream)
    return reports
"""
#: What a program does, and the races that are in it: argument and mode of both accesses.
PROGRAMS = {
    "a read that nothing orders": (
        "scale(s, x, y); hal.memset(x, 1, 4 * COUNT, t)",
        [(("a", "read"), ("dst", "write"))],
    ),
    "two writes that nothing orders": (
        "scale(s, x, y); scale(t, x, y)",
        [(("out", "write"), ("out", "write"))],
    ),
    "an event orders them": (
        "scale(s, x, y); hal.record(event, s); hal.wait(t, event); hal.memset(y, 1, 4, t)",
        [],
    ),
    "both only read": ("scale(s, x, y); scale(t, x, z)", []),
    "halves that do not meet": (
        "scale(s, x, y, COUNT // 2); scale(t, x, y + 2 * COUNT, COUNT // 2)",
        [],
    ),
    "nothing is launched": ("scale(s, x, y, 0); scale(t, y, x, 0)", []),
}


def test_races_of_generated_kernels_are_found(python: Python) -> None:
    code = f"""
for name, (program, expected) in {PROGRAMS!r}.items():
    found = [
        tuple((access.argument, access.mode) for access in report.accesses)
        for report in programs(program) if report.kind == "race"
    ]
    assert found == expected, (name, found)
"""
    done = python(SETUP + code, autoload=True, env={"PUONE_DRIVER": "sim"})
    assert done.returncode == 0, done.stderr
