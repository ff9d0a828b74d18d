# SPDX-License-Identifier: BSD-3-Clause
"""Whether the kernels that the backend generates compile, with all mutants asleep.

Generated kernels alone include headers such as `kernels/host/module.h`: what compiles the backend
says nothing of a mutant there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from scripts import caches

#: Has functions to compile, which need every layout of a kernel.
CASES = Path(__file__).resolve().parents[1] / "inductor"
# The import of cases takes seconds, so it is left to the process that needs it.
_PROGRAM = "import cases, sys; sys.argv += cases.FEW; import compiled; compiled.main()"
#: Where an error of the driver goes over to what the compiler said.
_COMPILER = "module.compile: "


def compiler_errors(environment: Mapping[str, str]) -> str:
    """What the compiler says of the kernels, in a process with this environment; paths are those
    in `csrc`. Kernels that compile and are wrong are left to the suite."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        path = os.pathsep.join((environment["PYTHONPATH"], str(CASES)))
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(result)],
            env={**os.environ, **environment, **caches(Path(folder)), "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        if not result.is_file():
            raise RuntimeError(f"no kernel can be generated: {done.stderr}")
        found = json.loads(result.read_text())["cases"].values()
    return "\n".join(text.partition(_COMPILER)[2] for text in found if _COMPILER in text)
