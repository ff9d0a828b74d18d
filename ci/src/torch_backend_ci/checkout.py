# SPDX-License-Identifier: BSD-3-Clause
"""The repository that the verbs work for: it has the pins (ci/pins) and the policies (ci/gate)."""

from __future__ import annotations

from pathlib import Path

_ABOVE = Path(__file__).resolve().parents[3]
#: The checkout that these tools are in; of installed ones, the directory that they start in.
ROOT = _ABOVE if (_ABOVE / "ci" / "pyproject.toml").is_file() else Path.cwd()
