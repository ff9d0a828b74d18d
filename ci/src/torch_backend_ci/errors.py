# SPDX-License-Identifier: BSD-3-Clause
"""How a verb ends."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit status of every verb."""

    OK = 0
    FINDINGS = 1  # the verb did its work, and what it found is what it was asked to refuse
    UNUSABLE = 2  # bad input or a broken environment: nothing was judged, nothing written
    NOT_COVERED = 3  # of a check: nothing was found, and not all that changed was looked at


class CiError(Exception):
    """The verb cannot do its work; the text says what is wrong and what to do about it.

    Ends the program with `Exit.UNUSABLE` and without a traceback. Raise it before anything is
    written.
    """
