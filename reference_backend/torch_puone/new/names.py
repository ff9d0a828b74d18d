# SPDX-License-Identifier: BSD-3-Clause
"""What a backend may be called, and the names that follow from it."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

#: What all names in this project are made from.
OURS = "puone"
LONGEST = 32

# c10/core/DeviceType.h, and the names that PyTorch gives to devices without a type of their own.
DEVICES = frozenset(
    "cpu cuda mkldnn opengl opencl ideep hip ve fpga maia ort xla lazy vulkan mps meta hpu mtia xpu "
    "ipu privateuseone accelerator auto all".split()
)
CPP_KEYWORDS = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class co_await "
    "co_return co_yield compl concept const const_cast consteval constexpr constinit continue "
    "decltype default delete do double dynamic_cast else enum explicit export extern false float for "
    "friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or "
    "or_eq private protected public register reinterpret_cast requires return short signed sizeof "
    "static static_assert static_cast struct switch template this thread_local throw true try "
    "typedef typeid typename union unsigned using virtual void volatile wchar_t while xor "
    "xor_eq".split()
)
# Namespaces and packages that the sources name, or that the name of a package is built from.
TAKEN = frozenset("torch at c10 caffe std aten pybind test tests torchgen linux unix".split())


class BadName(ValueError):
    """A name that cannot be used, with the reason."""


def check_name(name: str, identifiers: Iterable[str]) -> None:
    """Raise BadName unless `name` can be the device, the namespace and the prefix of a backend.

    `identifiers`: those that the sources have already.
    """
    reason = _reason_against(name) or _clash(name, identifiers)
    if reason:
        raise BadName(f"{name!r} cannot be the name of a backend: {reason}")


def _reason_against(name: str) -> str | None:
    if re.search(r"[0-9]", name):
        return "PyTorch reads no digits in the name of a device; spell them"
    if re.fullmatch(r"[a-z]+(_[a-z]+)*", name) is None:
        return (
            "it is also an identifier and part of file names; use lower-case letters, and single "
            "underscores between them"
        )
    if not 2 <= len(name) <= LONGEST:
        return f"it must have 2 to {LONGEST} letters"
    if name in DEVICES:
        return "PyTorch has a device of this name"
    if name in CPP_KEYWORDS or keyword.iskeyword(name) or keyword.issoftkeyword(name):
        return "it is a keyword of C++ or Python"
    if name in TAKEN:
        return "it is the name of a library or namespace that the sources use"
    if OURS in name:
        return f"{OURS} is the backend that yours is made from"
    return None


def _clash(name: str, identifiers: Iterable[str]) -> str | None:
    """An identifier of the sources that one made from `name` might be taken for."""
    prefixes = (f"{name}_", f"{name.upper()}_")
    for identifier in identifiers:
        if identifier == name or identifier.startswith(prefixes):
            return f"the sources use {identifier} for something else"
    return None


def renamed(text: str, name: str) -> str:
    """`text` with the names of this project replaced by those of the backend `name`."""
    for ours, theirs in _replacements(name):
        text = text.replace(ours, theirs)
    return text


def _replacements(name: str) -> Iterable[tuple[str, str]]:
    camel = "".join(part.capitalize() for part in name.split("_"))
    # The process group. Not by a letter: such names are other vendors'.
    yield "PCCL", "CCL"
    yield "pccl", f"{name}_ccl"
    yield "reference_backend", "python"
    yield OURS.upper(), name.upper()
    yield OURS.capitalize(), camel
    yield OURS, name
