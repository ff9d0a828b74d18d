# SPDX-License-Identifier: BSD-3-Clause
"""Tags: words that a program attaches to tensors of the device, such as "calibrated".

They are the example of `c10::BackendMeta`: data of the backend beside each tensor, which PyTorch
carries and serializes. The backend does not interpret them. `detach()`, `.data`, `Parameter()` and
`state_dict()` have the tags of their tensor, `torch.save` and pickle write them, and loading on the
device sets them again. A new tensor has none: a view, a clone, a copy, a result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from . import _C

if TYPE_CHECKING:
    from torch import Tensor


def get_tensor_tags(tensor: Tensor) -> frozenset[str]:
    """The tags of a tensor; none for a tensor of another device."""
    return frozenset(_C.tensor_tags(tensor))


def set_tensor_tags(tensor: Tensor, tags: Iterable[str]) -> None:
    """Replace the tags of this tensor; those that took theirs from it before keep them.

    Raises RuntimeError for a tensor of another device, TypeError for a single string and for tags
    that are not strings. Not thread-safe: it changes the tensor.
    """
    if isinstance(tags, str):
        raise TypeError(f"tags must be several strings, not the one string {tags!r}")
    words = set(tags)
    for word in words:
        if not isinstance(word, str):  # bytes, too, would be taken, and could not be read again
            raise TypeError(f"a tag must be a string, not {word!r}")
    _C.set_tensor_tags(tensor, words)


def _attach_backend_meta(tensor: Tensor) -> None:
    """Give a tensor backend metadata; for the conformance suite, which cannot know its content."""
    set_tensor_tags(tensor, {"conformance"})
