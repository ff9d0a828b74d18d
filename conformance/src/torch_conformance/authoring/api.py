# SPDX-License-Identifier: BSD-3-Clause
"""What a chapter imports: the public interface for checks, the suite's own and those of vendors.

A chapter for ``--checks-dir`` imports nothing else of the suite. What is named here keeps its name
and meaning within a minor version; CHANGELOG.md says what changes. "Writing checks" in the README
(``python -m torch_conformance help writing-checks``) has an example.
"""

from __future__ import annotations

from torch_conformance.authoring.check import check
from torch_conformance.authoring.departure import AT_ONCE, Ended, ends, tail, why_ended
from torch_conformance.authoring.device import Device
from torch_conformance.authoring.observe import (
    LATE_MS,
    Footprint,
    apart,
    backend_meta,
    becomes_true,
    footprint,
    heap_bytes,
    in_thread,
    in_threads,
    raised,
    resident_bytes,
    while_held,
    words,
)
from torch_conformance.authoring.programs import (
    Program,
    agree,
    deterministic,
    gradients,
    leaf,
    tensors,
)
from torch_conformance.authoring.ranks import Died, Rank, on_ranks
from torch_conformance.authoring.tensors import (
    DTYPES,
    DTYPES_BY_SIZE,
    far_apart,
    index,
    noise,
    ramp,
    zeros_index,
)
from torch_conformance.authoring.truth import Inputs, agree_with_double
from torch_conformance.spec.ids import FULL, PR, STANDARD

__all__ = [
    "AT_ONCE",
    "DTYPES",
    "DTYPES_BY_SIZE",
    "FULL",
    "LATE_MS",
    "PR",
    "STANDARD",
    "Device",
    "Died",
    "Ended",
    "Footprint",
    "Inputs",
    "Program",
    "Rank",
    "agree",
    "agree_with_double",
    "apart",
    "backend_meta",
    "becomes_true",
    "check",
    "deterministic",
    "ends",
    "far_apart",
    "footprint",
    "gradients",
    "heap_bytes",
    "in_thread",
    "in_threads",
    "index",
    "leaf",
    "noise",
    "on_ranks",
    "raised",
    "ramp",
    "resident_bytes",
    "tail",
    "tensors",
    "while_held",
    "why_ended",
    "words",
    "zeros_index",
]
