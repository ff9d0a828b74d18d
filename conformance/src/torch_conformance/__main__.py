# SPDX-License-Identifier: BSD-3-Clause
"""``python -m torch_conformance VERB``: what is done before and after a run, which is pytest's."""

from __future__ import annotations

import sys

from torch_conformance.cli import main

for stream in (sys.stdout, sys.stderr):
    # Names of checks and files are shown even where the terminal has no letters for them. The stubs
    # know streams in general; these two are text files.
    stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
sys.exit(main())
