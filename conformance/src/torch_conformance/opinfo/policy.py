# SPDX-License-Identifier: BSD-3-Clause
"""What is known about single operators of the database: data, and how it is looked up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from torch_conformance.spec.operator_families import as_case

# Outputs are whatever the memory held: only their metadata can be compared.
UNINITIALISED = frozenset(
    {
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
    }
)

# Operators that draw random numbers in every sample. Others do so in some samples (dropout_p of
# attention); those are recognised when a comparison fails, see forward.py.
RANDOM = frozenset(
    {
        "bernoulli",
        "cauchy",
        "exponential",
        "geometric",
        "log_normal",
        "multinomial",
        "nn.functional.alpha_dropout",
        "nn.functional.dropout",
        "nn.functional.dropout2d",
        "nn.functional.dropout3d",
        "nn.functional.feature_alpha_dropout",
        "normal",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "uniform",
    }
)

# Functions that, in some samples, write into their arguments (max_norm).
MUTATES_ARGUMENTS = frozenset({"nn.functional.embedding", "nn.functional.embedding_bag"})

# The arguments behind the input are indices that PyTorch wants on the CPU.
HOST_ARGUMENTS = frozenset({"tensor_split"})

# Sparse layouts go in or come out.
SPARSE = frozenset({"sparse.mm", "sparse.sampled_addmm", "to_sparse"})

# Beside the elementwise operators: those for which repeated rows are neither ties, of which any may
# be the result, nor matrices that cannot be inverted.
BEARS_REPETITION = frozenset(
    {
        "addmm",
        "baddbmm",
        "bmm",
        "cat",
        "cumsum",
        "index_select",
        "log_softmax",
        "matmul",
        "mean",
        "mm",
        "nn.functional.conv2d",
        "nn.functional.embedding",
        "nn.functional.linear",
        "softmax",
        "stack",
        "sum",
        "var",
        "where",
    }
)

# Pointwise operators that are sums of products, of functions, or a difference of both: where the
# digits of the sum cancel, the rounding of a step shows, and a device with fused multiply-adds, or
# one kernel instead of several, has none.
SUMS = frozenset(
    {
        "__radd__",
        "__rsub__",
        "add",
        "addcdiv",
        "addcmul",
        "lerp",
        "logaddexp",
        "logaddexp2",
        "mvlgamma",
        "nn.functional.tanhshrink",
        "rsub",
        "sub",
    }
)

# What IEEE 754 has rounded to the nearest number. A device that computes it for 16 bits in float32,
# even with a less precise division, is off by a thousandth more than half a unit.
ROUNDED_ONCE = frozenset(
    {
        "__rdiv__",
        "__rmul__",
        "div_no_rounding_mode",
        "mul",
        "reciprocal",
        "sqrt",
        "square",
        "true_divide",
    }
)

# With a batch of matrices in reverse order as out=, the CPU writes beyond its end (seen in 2.13).
CPU_OVERRUNS_OUT = frozenset({"linalg.lu", "lu_unpack", "tril", "triu"})

# Operators that the CPU takes tens of milliseconds for, and of how many samples one is used but for
# the forward pass in single precision: its neighbours are computed seventeen times.
SLOW = {"grid_sampler_3d": 5}

# In evaluation, PyTorch decomposes it into statistics of each channel on devices other than the
# CPU, where the operator and the CPU have none (native_batch_norm_helper in torch/_decomp).
DECOMPOSED_BY_DEVICE = frozenset({"_native_batch_norm_legit", "native_batch_norm"})

# Interfaces of one vendor, which no other backend is asked to have.
VENDOR_ONLY = ("jiterator_",)


def applies(op: Any) -> bool:
    """Whether the operator belongs to the suite at all."""
    return not op.name.startswith(VENDOR_ONLY)


def has_values(op: Any) -> bool:
    """Whether the results of an operator can be compared."""
    return op.name not in UNINITIALISED | RANDOM


def bears_repetition(op: Any) -> bool:
    """Whether a tensor that repeats its first row is as good an input as any other."""
    # Not at the top: see database.py for what that import brings with it.
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

    return isinstance(op, (UnaryUfuncInfo, BinaryUfuncInfo)) or op.name in BEARS_REPETITION


def is_of_each_element(op: Any) -> bool:
    """Whether the operator is a function of one number, which takes a tensor of any size."""
    from torch.testing._internal.opinfo.core import UnaryUfuncInfo

    return isinstance(op, UnaryUfuncInfo)


def is_pointwise(op: Any) -> bool:
    """Whether an element of the result depends on one element of each operand, without a sum.

    Says the class of upstream's entry, or the tag of the operator; of a list, that of its elements.
    """
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

    name = op.name.removeprefix("_foreach_")
    if name in SUMS:
        return False
    if isinstance(op, (UnaryUfuncInfo, BinaryUfuncInfo)):
        return True
    packet = getattr(torch.ops.aten, name.replace(".", "_").rpartition("nn_functional_")[2], None)
    overloads = packet.overloads() if packet is not None else ()
    return any(torch.Tag.pointwise in getattr(packet, each).tags for each in overloads)


def is_rounded_once(op: Any) -> bool:
    """Whether the result is that of an arithmetic operation, rounded to the nearest number."""
    name = "_".join(part for part in (op.name, op.variant_test_name) if part)
    return name.removeprefix("_foreach_") in ROUNDED_ONCE


def settled(argument: Any) -> Any:
    """An argument of a sample; where it lets PyTorch choose by the type of the device, its choice
    for devices that it does not know.

    Of 16 bits, linear_cross_entropy adds up in float32 on CUDA and on the CPU only.
    """
    if getattr(argument, "acc_policy", None) == "auto":
        return replace(argument, acc_policy="compact")
    return argument


def is_elsewhere(argument: Any) -> bool:
    """Whether an argument of a sample that was made for the CPU is on, or names, another device.

    Where PyTorch has CUDA, factories have samples that give their result to it.
    """
    if isinstance(argument, torch.Tensor):
        argument = argument.device
    if isinstance(argument, str):
        try:
            argument = torch.device(argument)
        except RuntimeError:
            return False
    return isinstance(argument, torch.device) and argument.type != "cpu"


def needs(op: Any) -> tuple[str, ...]:
    """Capabilities that the checks of an operator need."""
    return ("sparse",) if op.name in SPARSE else ()


def case_name(op: Any) -> str:
    """Operator and variant as a word of a check id: ``nn.functional.pad`` + ``circular`` ..."""
    return as_case("_".join(part for part in (op.name, op.variant_test_name) if part))


def tolerance(op: Any, dtype: torch.dtype) -> tuple[float, float]:
    """The widest (rtol, atol) that upstream's own tests grant the operator, or (0, 0)."""
    rtol = atol = 0.0
    for entry in op.decorators:
        for decorator in getattr(entry, "decorators", ()):
            granted = getattr(decorator, "d", {})
            if isinstance(granted, dict) and hasattr(granted.get(dtype), "rtol"):
                rtol, atol = max(rtol, granted[dtype].rtol), max(atol, granted[dtype].atol)
    return rtol, atol
