# SPDX-License-Identifier: BSD-3-Clause
"""The CI tools for PyTorch and its backends: `python -m ci <verb>`.

Every verb is a pure function from files to findings, and a thin shell around it. Nothing here
imports torch at start-up, and nothing ever imports the reference backend: the tools work on any
torch, installed or not.
"""

import sys
from pathlib import Path

# The suite of this checkout, whether or not another one is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance" / "src"))
