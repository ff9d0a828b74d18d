# SPDX-License-Identifier: BSD-3-Clause
"""Whether an exception says that something is not implemented, or that it does not work.

What is not implemented says so with a type (NotImplementedError, a missing attribute) or with the
words of the default implementations of PyTorch's interfaces: guard, hooks, allocator.
"""

from __future__ import annotations

import re

from torch_conformance.authoring.backend import text_of
from torch_conformance.authoring.origin import left_backend

WORDS = r"(\bnot|n't|n`t) (yet )?(support|implement)|\bunsupported\b|is not a DeviceAllocator"
#: What PyTorch's optimizers say of `fused=True` on a device that has no fused kernels.
NOT_FUSED = r"fused.* supported devices"
# Python looks up what a module or an object does not have in these.
_LOOKUPS = ("__getattr__", "__getattribute__")


def refuses(error: Exception, chapter: str = "", words: str = "") -> bool:
    """Whether it says that something is not implemented; `words`: a pattern that says so, too.

    `chapter` is the file of the code that asked.
    """
    if isinstance(error, AttributeError) and misses_attribute(error, chapter):
        return True
    pattern = f"{WORDS}|{words}" if words else WORDS
    return (
        isinstance(error, NotImplementedError)
        or re.search(pattern, text_of(error), re.IGNORECASE) is not None
    )


def misses_attribute(error: AttributeError, chapter: str = "") -> bool:
    """Whether the backend does not have an attribute that it was asked for.

    One that its own code does not find is a mistake there.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    asked = trace is not None and trace.tb_frame.f_code.co_name in _LOOKUPS
    return asked or not left_backend(error, chapter)
