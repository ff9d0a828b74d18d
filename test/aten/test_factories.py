# SPDX-License-Identifier: BSD-3-Clause
"""Every operator that makes a tensor makes it on the device, without the CPU.

Which operators these are, the dispatcher says: the factories of aten are those that take a dtype, a
layout, a device and pin_memory, and return a tensor. One that a later torch adds and this list does
not know fails the first test.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import torch_puone as puone

# How to call each factory; L stands for a tensor on the device to be like, S for a
# scalar tensor there, H for one on the host.
CALLS: dict[str, tuple[Any, ...]] = {
    "_efficientzerotensor": ([2, 3],),
    "_to_copy": ("L",),
    "arange": (7,),
    "arange.start": (2, 9),
    "arange.start_step": (9, -2.5, -1.5),
    "bartlett_window": (9,),
    "bartlett_window.periodic": (9, False),
    "blackman_window": (9,),
    "blackman_window.periodic": (9, False),
    "empty.memory_format": ([2, 3],),
    "empty_like": ("L",),
    "empty_permuted": ([2, 3, 4], [2, 0, 1]),
    "empty_strided": ([2, 3], [1, 4]),
    "eye": (5,),
    "eye.m": (3, 6),
    "fft_fftfreq": (7, 0.5),
    "fft_rfftfreq": (7, 0.5),
    "full": ([2, 3], 4.5),
    "full_like": ("L", -1),
    "hamming_window": (9,),
    "hamming_window.periodic": (9, False),
    "hamming_window.periodic_alpha": (9, False, 0.6),
    "hamming_window.periodic_alpha_beta": (9, True, 0.6, 0.3),
    "hann_window": (9,),
    "hann_window.periodic": (9, False),
    "kaiser_window": (9,),
    "kaiser_window.beta": (9, True, 3.5),
    "kaiser_window.periodic": (9, False),
    "linspace": (-2, 5, 12),
    "linspace.Scalar_Tensor": (-2, "S", 12),
    "linspace.Tensor_Scalar": ("S", 5, 12),
    "linspace.Tensor_Tensor": ("S", "S", 12),
    "logspace": (-2, 3, 12, 2.0),
    "logspace.Scalar_Tensor": (-2, "S", 12),
    "logspace.Tensor_Scalar": ("S", 3, 12),
    "logspace.Tensor_Tensor": ("S", "S", 12),
    "new_empty": ("L", [2, 3]),
    "new_empty_strided": ("L", [2, 3], [1, 4]),
    "new_full": ("L", [2, 3], 4.5),
    "new_ones": ("L", [2, 3]),
    "new_zeros": ("L", [2, 3]),
    "normal.float_float": (1.0, 2.0, [2, 3]),
    "ones": ([2, 3],),
    "ones_like": ("L",),
    "rand": ([2, 3],),
    "rand.generator": ([2, 3],),
    "rand_like": ("L",),
    "rand_like.generator": ("L",),
    "randint": (9, [2, 3]),
    "randint.generator": (9, [2, 3]),
    "randint.low": (-9, 9, [2, 3]),
    "randint.low_generator": (-9, 9, [2, 3]),
    "randint_like": ("L", 9),
    "randint_like.Tensor": ("L", "H"),
    "randint_like.Tensor_generator": ("L", "H"),
    "randint_like.generator": ("L", 9),
    "randint_like.low_dtype": ("L", -9, 9),
    "randint_like.low_generator_dtype": ("L", -9, 9),
    "randn": ([2, 3],),
    "randn.generator": ([2, 3],),
    "randn_like": ("L",),
    "randn_like.generator": ("L",),
    "randperm": (9,),
    "randperm.generator": (9,),
    "range": (1, 5),
    "range.step": (5, -1, -1.5),
    "scalar_tensor": (4.5,),
    "tril_indices": (4, 5, 1),
    "triu_indices": (4, 5, -1),
    "zeros": ([2, 3],),
    "zeros_like": ("L",),
}

UNINITIALISED = "empty", "new_empty"
RANDOM = "rand", "normal"

# Factories of what a strided tensor on this device never is.
OTHER_TENSORS = {
    "_cudnn_init_dropout_state": "the state of another vendor's library",
    "_empty_affine_quantized": "quantized",
    "_empty_per_channel_affine_quantized": "quantized",
    "_make_dep_token": "a token of the compiler, not of a device",
    "_nested_tensor_from_tensor_list": "nested",
    "_sparse_bsc_tensor_unsafe": "sparse",
    "_sparse_bsr_tensor_unsafe": "sparse",
    "_sparse_compressed_tensor_unsafe": "sparse",
    "_sparse_compressed_tensor_with_dims": "sparse",
    "_sparse_coo_tensor_unsafe": "sparse",
    "_sparse_coo_tensor_with_dims": "sparse",
    "_sparse_coo_tensor_with_dims_and_tensors": "sparse",
    "_sparse_csc_tensor_unsafe": "sparse",
    "_sparse_csr_tensor_unsafe": "sparse",
    "empty_quantized": "quantized",
    "from_file": "memory that is mapped from a file, and so the host's",
    "sparse_bsc_tensor.ccol_row_value": "sparse",
    "sparse_bsc_tensor.ccol_row_value_size": "sparse",
    "sparse_bsr_tensor.crow_col_value": "sparse",
    "sparse_bsr_tensor.crow_col_value_size": "sparse",
    "sparse_compressed_tensor.comp_plain_value": "sparse",
    "sparse_compressed_tensor.comp_plain_value_size": "sparse",
    "sparse_coo_tensor.indices": "sparse",
    "sparse_coo_tensor.indices_size": "sparse",
    "sparse_coo_tensor.size": "sparse",
    "sparse_csc_tensor.ccol_row_value": "sparse",
    "sparse_csc_tensor.ccol_row_value_size": "sparse",
    "sparse_csr_tensor.crow_col_value": "sparse",
    "sparse_csr_tensor.crow_col_value_size": "sparse",
    "to.dtype_layout": "its argument, if that has these options already",
}


def overload(name: str) -> torch._ops.OpOverload:
    base, _, variant = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), variant or "default")


def factories() -> set[str]:
    """The dispatcher's operators of aten that take tensor options and return a tensor."""
    found = set()
    for full_name in torch._C._dispatch_get_all_op_names():
        namespace, _, name = full_name.partition("::")
        if namespace != "aten":
            continue
        schema = overload(name)._schema
        arguments = {argument.name for argument in schema.arguments}
        makes_tensor = [str(result.type) for result in schema.returns] == ["Tensor"]
        given = any(argument.is_out for argument in schema.arguments)
        if makes_tensor and not given and arguments >= {"dtype", "layout", "device", "pin_memory"}:
            found.add(name)
    return found


def call(name: str, device: str, **options: Any) -> torch.Tensor:
    like = torch.arange(6.0).reshape(2, 3).t()
    stand_ins = {"L": like.to(device), "S": torch.tensor(4).to(device), "H": torch.tensor(4)}
    given = [stand_ins[x] if isinstance(x, str) else x for x in CALLS[name]]
    operator = overload(name)
    if any(argument.name == "generator" for argument in operator._schema.arguments):
        options["generator"] = torch.Generator(device)
    return operator(*given, device=device, **options)


def test_every_factory_of_the_dispatcher_is_listed() -> None:
    known = set(CALLS) | set(OTHER_TENSORS)
    assert not factories() - known, "new factories: make them native, then list them"
    # An older torch may lack some.
    assert len(known - factories()) < 10


@pytest.mark.parametrize("name", sorted(set(CALLS) & factories()))
def test_a_factory_makes_its_tensor_on_the_device(name: str) -> None:
    expected = call(name, "cpu")
    puone._reset_fallback_counts()
    result = call(name, "puone")
    assert not puone._fallback_counts()
    assert result.device == torch.device("puone:0")
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    assert result.stride() == expected.stride()
    if not name.startswith((*UNINITIALISED, *RANDOM)):
        torch.testing.assert_close(result.cpu(), expected)


@pytest.mark.parametrize("name", ["zeros", "arange", "linspace", "eye", "kaiser_window", "full"])
def test_a_factory_honours_device_and_dtype(name: str) -> None:
    result = call(name, "puone:1", dtype=torch.float64)
    assert result.device == torch.device("puone:1")
    torch.testing.assert_close(result.cpu(), call(name, "cpu", dtype=torch.float64))


@pytest.mark.parametrize(
    "dtype",
    [torch.uint8, torch.int8, torch.int16, torch.int64, torch.float16, torch.bfloat16],
    ids=str,
)
def test_progressions_in_every_dtype(dtype: torch.dtype) -> None:
    for make in (
        lambda device: torch.arange(3, 100, 7, dtype=dtype, device=device),
        lambda device: torch.linspace(3, 100, 19, dtype=dtype, device=device),
        lambda device: torch.logspace(0, 2, 5, dtype=dtype, device=device),
        lambda device: torch.arange(5, dtype=dtype, device=device)[:0],
    ):
        torch.testing.assert_close(make("puone").cpu(), make("cpu"))


def test_large_integers_stay_exact() -> None:
    start = 2**60 + 1
    assert torch.arange(start, start + 3, device="puone").tolist() == [start, start + 1, start + 2]


def test_long_progressions_are_spread_over_cores() -> None:
    n = 1_000_001
    assert torch.equal(torch.arange(n, device="puone").cpu(), torch.arange(n))
    torch.testing.assert_close(
        torch.linspace(-1, 1, n, device="puone").cpu(), torch.linspace(-1, 1, n)
    )


def test_progressions_into_a_given_tensor() -> None:
    out = torch.zeros(10, dtype=torch.int32, device="puone")[::2]
    torch.arange(5, out=out)
    assert out.tolist() == [0, 1, 2, 3, 4]
    torch.linspace(0, 1, 6, out=(wide := torch.empty(2, 3, device="puone")))
    assert wide.flatten().tolist() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])


def test_impossible_progressions_are_refused() -> None:
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        torch.arange(0, 5, 0, device="puone")
    with pytest.raises(RuntimeError, match="inconsistent with step sign"):
        torch.arange(0, 5, -1, device="puone")
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.linspace(0, 1, -1, device="puone")


def test_complex_numbers_of_two_real_ones() -> None:
    a, b = torch.randn(5), torch.randn(5)
    x, y = a.to("puone"), b.to("puone")
    puone._reset_fallback_counts()
    assert torch.equal(torch.complex(x, y).cpu(), torch.complex(a, b))
    torch.testing.assert_close(torch.polar(x, y).cpu(), torch.polar(a, b))
    assert torch.complex(x.half(), y.half()).dtype == torch.complex32
    assert not puone._fallback_counts()


def test_a_kaiser_window_has_its_closed_form() -> None:
    window = torch.kaiser_window(5, False, 2.0, device="puone", dtype=torch.float64)
    centre, edge = window[2].item(), window[0].item()
    assert centre == pytest.approx(1.0)
    assert edge == pytest.approx(1 / torch.special.i0(torch.tensor(2.0, dtype=torch.float64)))
    assert math.isfinite(torch.kaiser_window(9, True, 600.0, device="puone")[3].item())
