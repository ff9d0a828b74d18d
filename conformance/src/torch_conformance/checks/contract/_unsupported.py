# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: the error for an operation that is unsupported."""

from __future__ import annotations

_UNSUPPORTED = "unsupported operation"


def is_unsupported(error: Exception, expected: Exception) -> None:
    """Both say that the operation is unsupported."""
    assert _UNSUPPORTED in str(expected), f"the CPU raises something else: {expected}"
    assert isinstance(error, RuntimeError), repr(error)
    assert _UNSUPPORTED in str(error), str(error)
