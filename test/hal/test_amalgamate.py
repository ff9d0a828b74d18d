# SPDX-License-Identifier: BSD-3-Clause
"""The dialect of modules as one text, made of headers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from kernels import amalgamate
from suites import ROOT

HEADERS = {
    "kernels/module.h": """\
#pragma once
#include <cstdint>

#include "kernels/first.h"
#ifdef PUONE_SIMT
#include "kernels/simt.h"
#else
#include "kernels/host.h"
#endif
#include "kernels/first.h"
int module;
""",
    "kernels/first.h": "#pragma once\n#ifdef __cplusplus\nint first;\n#endif\n",
    "kernels/simt.h": '#include "kernels/first.h"\nint simt;\n',
    "kernels/host.h": "#ifndef PUONE_SIMT\nint host;\n#else\nint never;\n#endif\n",
    "standard.h": "int standard;\n",
}


def made(
    folder: Path,
    changed: dict[str, str] | None = None,
    *,
    simt: bool = False,
    standard: bool = False,
) -> list[str]:
    """The lines of the text, but for those that say where they are from."""
    for name, text in (HEADERS | (changed or {})).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    amalgamation = amalgamate.Amalgamation(
        [folder], simt, folder / "standard.h" if standard else None
    )
    lines = list(amalgamation.lines(amalgamate.ROOT))
    return [line for line in lines if line and not line.startswith("#line")]


def test_a_header_is_in_it_once_and_before_its_use(tmp_path: Path) -> None:
    first = ["#ifdef __cplusplus", "int first;", "#endif"]
    assert made(tmp_path) == ["#include <cstdint>", *first, "int host;", "int module;"]
    assert made(tmp_path, simt=True) == ["#include <cstdint>", *first, "int simt;", "int module;"]


def test_a_file_takes_the_place_of_the_systems_headers(tmp_path: Path) -> None:
    assert made(tmp_path, standard=True)[0] == "int standard;"


def test_an_include_under_another_condition_fails(tmp_path: Path) -> None:
    changed = {"kernels/first.h": '#ifdef OTHER\n#include "kernels/host.h"\n#endif\n'}
    with pytest.raises(amalgamate.AmalgamationError, match=r"kernels/first\.h:2: "):
        made(tmp_path, changed)


def test_a_missing_header_fails(tmp_path: Path) -> None:
    changed = {"kernels/first.h": '#include "kernels/no_such.h"\n'}
    with pytest.raises(amalgamate.AmalgamationError, match=r"no header kernels/no_such\.h"):
        made(tmp_path, changed)


def test_the_end_of_the_raw_string_in_a_header_fails() -> None:
    with pytest.raises(amalgamate.AmalgamationError, match="delimiter"):
        amalgamate.source(')puone"')


def test_the_build_learns_which_headers_are_in_it(tmp_path: Path) -> None:
    made(tmp_path)
    script, output = str(ROOT / "csrc" / "kernels" / "amalgamate.py"), tmp_path / "text.cpp"
    depfile = tmp_path / "text.d"
    command = [sys.executable, script, "host", str(output), f"--depfile={depfile}"]
    subprocess.run([*command, f"--include={tmp_path}"], check=True)
    headers = [tmp_path / "kernels" / f"{name}.h" for name in ("module", "first", "host")]
    assert depfile.read_text() == f"{output}: {' '.join(map(str, headers))}\n"
    assert "int module;" in output.read_text()
