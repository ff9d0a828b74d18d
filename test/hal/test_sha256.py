# SPDX-License-Identifier: BSD-3-Clause
"""The digest that names images is SHA-256, as Python's own library computes it."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from suites import ROOT

#: The padding changes at 56 and 64 bytes.
LONGEST = 300
PROGRAM = f"""
#include <cstdio>
#include "drivers/common/sha256.h"
int main() {{
  std::string text;
  for (int bytes = 0; bytes <= {LONGEST}; ++bytes) {{
    puone::Sha256 whole, pieces;
    for (const char& byte : text) pieces.add({{&byte, 1}});
    const std::string hex = whole.add(text).hex();
    std::puts(hex == pieces.hex() ? hex.c_str() : "the pieces give another one");
    text += static_cast<char>(bytes * 7);
  }}
}}
"""


def test_digests_of_every_short_length_are_those_of_another_implementation(tmp_path: Path) -> None:
    source, program = tmp_path / "digests.cpp", tmp_path / "digests"
    source.write_text(PROGRAM)
    common = ROOT / "csrc" / "drivers" / "common" / "sha256.cpp"
    command = [
        "c++",
        "-std=c++20",
        f"-I{ROOT / 'csrc'}",
        str(source),
        str(common),
        "-o",
        str(program),
    ]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    text = bytes(number * 7 % 256 for number in range(LONGEST))
    expected = [hashlib.sha256(text[:bytes_]).hexdigest() for bytes_ in range(LONGEST + 1)]
    assert done.stdout.splitlines() == expected
