# SPDX-License-Identifier: BSD-3-Clause
"""The steps in their order: what tells most in least time first. A step gets its seconds, or what
is left of the run's."""

from __future__ import annotations

from bench.gpu.run import Step
from bench.gpu.steps import (
    benchmark,
    build,
    compiled,
    conformance,
    exchange,
    hal,
    parity,
    sanitizer,
)

MINUTES = 7.8  # all together

STEPS = (
    Step("build", "cmake against this Python's torch, all cores", 240, build.build),
    Step("hal", "the HAL suite on the driver", 120, hal.hal, hal.MODULES),
    Step("parity", "sim and the driver compute the same", 60, parity.parity, parity.MODULES),
    Step("exchange", "memory shared with torch.cuda in one process", 40, exchange.exchange),
    Step("compiled", "compiled functions compute what eager ones do", 120, compiled.compiled),
    Step("benchmark", "against torch.cuda in the same process", 150, benchmark.benchmark),
    Step(
        "conformance-core",
        "the suite's core tier on puone",
        60,
        conformance.core,
        conformance.MODULES,
    ),
    Step("sanitizer", "compute-sanitizer on few elements", 75, sanitizer.sanitizer),
    Step(
        "conformance",
        "the whole suite on puone, in the time that is left",
        400,
        conformance.everything,
        conformance.MODULES,
    ),
)
