# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong with a workflow itself."""

from __future__ import annotations


class Mistake(AssertionError):
    """The workflow is wrong: whatever its steps say, the test that plays it fails.

    Nothing in a workflow can catch it: neither `continue-on-error` nor `if: failure()`.
    """
