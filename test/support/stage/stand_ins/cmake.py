# SPDX-License-Identifier: BSD-3-Clause
"""Stands in for cmake on a machine where workflows are played.

To configure is to leave a build.ninja, and to build is to put the extension in place that the tests
have: nothing is compiled, whatever a PR changes in C++.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    words = sys.argv[1:]
    if words[0] == "--build":
        _build(Path(words[1]))
    else:
        source, build = (Path(words[words.index(flag) + 1]) for flag in ("-S", "-B"))
        if not (source / "CMakeLists.txt").is_file():
            sys.exit(f"CMake Error: {source} does not appear to contain CMakeLists.txt")
        build.mkdir(parents=True, exist_ok=True)
        (build / "build.ninja").write_text("")


def _build(build: Path) -> None:
    if not (build / "build.ninja").is_file():
        sys.exit(f"Error: {build} is not configured")
    package = Path("reference_backend", "torch_puone")
    built = Path(os.environ["STAGE_BUILT"]) / package
    for file in (*built.glob("_C*.so"), built / "_build.py"):
        link = build.resolve().parent / package / file.name
        if not link.is_symlink():
            link.symlink_to(file)


if __name__ == "__main__":
    main()
