# SPDX-License-Identifier: BSD-3-Clause
"""What a build of PyTorch puts around each installed header.

    #if !defined(TORCH_STABLE_ONLY) && !defined(TORCH_TARGET_VERSION)
    ... the header of the repository ...
    #else
    #error "..."
    #endif  // ...

A patch is against what is in between.
"""

from __future__ import annotations

import re

_HEAD = re.compile(rb"#if !defined\(TORCH_STABLE_ONLY\)[^\n]*\n")
_FOOT = re.compile(rb"\n#else\n#error \"This file should not be included[^\n]*\n#endif[^\n]*\n?\Z")


def unwrapped(content: bytes) -> bytes:
    """The header as it is in the repository."""
    head, foot = _HEAD.match(content), _FOOT.search(content, max(0, len(content) - 400))
    return content[head.end() : foot.start()] if head and foot else content


def lines_before(content: bytes) -> int:
    """How many lines are in front of the header proper."""
    return 1 if unwrapped(content) != content else 0


def wrapped_as(model: bytes, content: bytes) -> bytes:
    """`content` wrapped in the way `model` is; lines keep their numbers relative to it."""
    head, foot = _HEAD.match(model), _FOOT.search(model, max(0, len(model) - 400))
    return model[: head.end()] + content + model[foot.start() :] if head and foot else content
