# SPDX-License-Identifier: BSD-3-Clause
"""A mutant in a header that only generated kernels include is found out by compiling some."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from mutants.generated import compiler_errors
from mutants.tree import ROOT
from suites import SIM

FAILS = """#!/bin/sh
case "$*" in *--version*) exec c++ "$@";; esac
echo "kernels/host/module.h:7:3: error: no such name" >&2
exit 1
"""


def _environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join((str(ROOT / "reference_backend"), str(ROOT)))
    return {"PYTHONPATH": path, "PUONE_DRIVER": str(SIM), **more}


@pytest.mark.nightly
def test_what_the_compiler_says_has_lines_of_its_own(tmp_path: Path) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text(FAILS)
    compiler.chmod(0o755)
    said = compiler_errors(_environment(CXX=str(compiler)))
    assert re.search(r"^kernels/host/module\.h:7:3: error: no such name$", said, re.M), said


@pytest.mark.nightly
def test_nothing_is_said_of_kernels_that_compile() -> None:
    assert compiler_errors(_environment()) == ""
