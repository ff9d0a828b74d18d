# SPDX-License-Identifier: BSD-3-Clause
"""Which element types an operator is defined for: those that the CPU computes it in."""

from __future__ import annotations

import torch

from .operators import Operator

_KINDS = {
    "bool": torch.bool,
    "integral": torch.int32,
    "reals": torch.float32,
    "complexes": torch.complex64,
}
#: Sets of csrc/aten/operators.yaml, by what is in them.
_SETS = {
    "bool": {"bool"},
    "integral": {"integral"},
    "reals": {"reals"},
    "complexes": {"complexes"},
    "integers": {"bool", "integral"},
    "ordered": {"bool", "integral", "reals"},
    "inexact": {"reals", "complexes"},
    "numbers": {"bool", "integral", "reals", "complexes"},
}
#: Sets of csrc/hal/kernels.yaml, and what csrc/kernels/elementwise.h calls them.
_KERNEL_SETS = {
    "integers": "Integers",
    "reals": "Reals",
    "complexes": "Complexes",
    "ordered": "Ordered",
    "inexact": "Inexact",
    "numbers": "Numbers",
}


def measured(operator: Operator) -> list[str]:
    """The words of the row's `types`. Types that are promoted to others are not among them."""
    kinds = {kind for kind, dtype in _KINDS.items() if _computes_in(operator, dtype)}
    return words(kinds)


def words(kinds: set[str]) -> list[str]:
    """The fewest words for a set of kinds."""
    for name, members in _SETS.items():
        if members == kinds:
            return [name]
    return sorted(kinds)


def of_kernel(types: list[str]) -> str:
    """The smallest set of the kernel contract that has all of these."""
    kinds: set[str] = set().union(*(_SETS[word] for word in types))
    return min(
        (name for name in _KERNEL_SETS if kinds <= _SETS[name]), key=lambda name: len(_SETS[name])
    )


def in_cpp(kernel_types: str) -> str:
    """The group of compute types for elementwiseKernel."""
    return _KERNEL_SETS[kernel_types]


def dtypes(types: list[str]) -> list[str]:
    """Names of dtypes for the test, without the prefix torch."""
    of_kind = {
        "bool": ["bool"],
        "integral": ["uint8", "int32", "int64"],
        "reals": ["float16", "bfloat16", "float32", "float64"],
        "complexes": ["complex64"],
    }
    kinds: set[str] = set().union(*(_SETS[word] for word in types))
    return [name for kind, names in of_kind.items() if kind in kinds for name in names]


def is_known(word: str) -> bool:
    """Whether it is a word of `types`."""
    return word in _SETS


def _computes_in(operator: Operator, dtype: torch.dtype) -> bool:
    values = {
        each: torch.ones(2, dtype=dtype) if each.type == "Tensor" else 1
        for each in operator.parameters
    }
    arguments = [value for each, value in values.items() if not each.by_name]
    named = {each.name: value for each, value in values.items() if each.by_name}
    name, _, overload = operator.functional.partition(".")
    function = getattr(getattr(torch.ops.aten, name), overload or "default")
    try:
        result = function(*arguments, **named)
    except (RuntimeError, NotImplementedError):
        return False
    return result.dtype in (dtype, torch.bool)
