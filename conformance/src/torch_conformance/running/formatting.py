# SPDX-License-Identifier: BSD-3-Clause
"""Keeps the formatting of a failed assertion away from the device.

pytest's rewritten assertions print the values of an expression. Printing a device tensor runs
operators of the backend that just failed, and may crash: then the failure would become a crash.
"""

from __future__ import annotations

import reprlib
from typing import Any

MAX_TEXT = 240


class GuardedRepr(reprlib.Repr):
    """Like pytest's own short repr, but tensors and storages show their metadata only."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = MAX_TEXT
        self.maxlist = self.maxtuple = self.maxset = 10

    def repr_Tensor(self, value: Any, level: int) -> str:  # noqa: N802 - reprlib's way
        if value.device.type == "cpu":
            return self._short(repr(value))
        return f"<tensor {value.dtype} {list(value.shape)} on {value.device}>"

    repr_Parameter = repr_Tensor  # noqa: N815 - reprlib's way

    def repr_UntypedStorage(self, value: Any, level: int) -> str:  # noqa: N802 - reprlib's way
        return f"<storage of {value.nbytes()} bytes on {value.device}>"

    def repr_TypedStorage(self, value: Any, level: int) -> str:  # noqa: N802 - reprlib's way
        return f"<storage on {value.device}>"

    def repr_instance(self, x: Any, level: int) -> str:
        try:
            return self._short(repr(x))
        except Exception as error:
            return f"<{type(x).__name__} whose repr raises {type(error).__name__}>"

    def _short(self, text: str) -> str:
        return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."


def guard_assertions() -> None:
    """Make rewritten assertions of this process format values with `GuardedRepr`."""
    from _pytest.assertion import rewrite

    formatter = GuardedRepr()
    # The rewritten code looks the function up in this module; \n would end the explanation.
    rewrite._saferepr = lambda obj: formatter.repr(obj).replace("\n", "\\n")
