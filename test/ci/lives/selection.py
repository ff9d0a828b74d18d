# SPDX-License-Identifier: BSD-3-Clause
"""What is left of our workflows where a life of them is played: enough to see each step work."""

from __future__ import annotations

from stage.acts import Changes

# Of the suite, a few dozen checks.
SUITE = {"PYTEST_ADDOPTS": "--check=memory/a* --check=memory/p*"}

# One torch is there, and one driver: the others would do the same again.
ONE_LANE: Changes = {
    ".github/workflows/pr.yml": [("pin: [development, oldest, newest]", "pin: [development]")],
    "ci/gate/policy.yaml": [
        (
            "  oldest-sim: {required: true, pin: oldest, backend: puone, driver: sim}\n"
            "  newest-sim: {required: true, pin: newest, backend: puone, driver: sim}\n",
            "",
        )
    ],
}
