# SPDX-License-Identifier: BSD-3-Clause
"""Python reads device tensors as numbers, lists and arrays, and compares them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import DTYPES, Device, check, raised, ramp


@check("copy/item", "COPY-025", dtypes=DTYPES)
def item_returns_the_python_value(dev: Device, dtype: torch.dtype) -> None:
    """item() of a 0-dim, a one-element and an element of a view gives the exact value and type."""
    source = ramp((3, 4), dtype)
    there = source.to(dev.device())
    for index in ((0, 0), (1, 2), (2, 3)):
        expected = source[index].item()
        actual = there[index].item()
        assert type(actual) is type(expected)
        assert actual == expected
    assert there[2:3, 1:2].item() == source[2, 1].item()


@check("copy/tolist", "COPY-025", dtypes=DTYPES)
def tolist_returns_nested_python_values(dev: Device, dtype: torch.dtype) -> None:
    """tolist() gives nested lists of the exact values, also of a transposed view."""
    source = ramp((3, 4), dtype)
    there = source.to(dev.device())
    assert there.tolist() == source.tolist()
    assert there.t().tolist() == source.t().tolist()
    assert there[1, 1].tolist() == source[1, 1].tolist()


@check("copy/item_lazy", "COPY-025", needs=("complex64",))
def item_resolves_conjugate_and_negative_views(dev: Device) -> None:
    """item() and tolist() of lazy views give the resolved value."""
    x = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64, device=dev.device())
    assert x.conj()[0].item() == 1 - 2j
    assert x.conj().imag[1].item() == 4.0
    assert x.conj().tolist() == [1 - 2j, 3 + 4j]


#: A protocol, and pairs of what a tensor holds and what is read from it.
_PROTOCOLS: dict[str, tuple[Callable[[Any], object], list[tuple[Any, object]]]] = {
    "bool": (bool, [(7, True), ([0.0], False)]),
    "int": (int, [(7, 7), (-2.75, -2)]),
    "float": (float, [(7, 7.0)]),
    "index": (range(10).__getitem__, [(7, 7)]),
    "complex": (complex, [(7, 7 + 0j)]),
}


@check("copy/scalar_protocols", "COPY-025", cases=_PROTOCOLS)
def python_scalar_protocols_work(dev: Device, case: str) -> None:
    """bool(), int(), float(), complex() and indexing with a tensor read the device value."""
    read, pairs = _PROTOCOLS[case]
    for held, expected in pairs:
        value = read(torch.tensor(held, device=dev.device()))
        assert type(value) is type(expected)
        assert value == expected


@check("copy/item_needs_one_element", "COPY-025")
def item_of_several_elements_raises(dev: Device) -> None:
    """item() and bool() of a tensor with several or no elements raise RuntimeError."""
    for count in (0, 2):
        x = torch.zeros(count, device=dev.device())
        for read in (x.item, x.__bool__):
            assert isinstance(raised(read), RuntimeError)


def _changed(x: torch.Tensor, row: int, column: int, by: float) -> torch.Tensor:
    y = x.clone()
    y[row, column] += by
    return y


_Pairs = Callable[[torch.Tensor], list[tuple[torch.Tensor, torch.Tensor]]]

#: Pairs of tensors made of a (3, 4) tensor, and whether they are equal.
_PAIRS: dict[str, tuple[_Pairs, bool]] = {
    "same": (lambda x: [(x, x.clone())], True),
    "different": (lambda x: [(x, _changed(x, 2, 3, 1))], False),
    "shape": (lambda x: [(x, x.reshape(4, 3)), (x[:1], x[:1].expand(3, 4))], False),
    "nan": (lambda x: [(_changed(x, 0, 0, math.nan), _changed(x, 0, 0, math.nan))], False),
    "empty": (lambda x: [(x[:0], x.clone()[:0])], True),
    "strided": (lambda x: [(x.t(), x.t().contiguous())], True),
}


@check("copy/equal", "COPY-026", cases=_PAIRS)
def torch_equal_compares_on_the_device(dev: Device, case: str) -> None:
    """torch.equal tells equal from different tensors, by shape and by value."""
    pairs, expected = _PAIRS[case]
    for x, y in pairs(ramp((3, 4)).to(dev.device())):
        assert torch.equal(x, y) is expected


@check("copy/equal_across", "COPY-026", needs=("accelerator",))
def torch_equal_refuses_mixed_devices(dev: Device) -> None:
    """torch.equal of a host and a device tensor raises; it never guesses."""
    x = ramp((3,))
    there = x.to(dev.device())
    assert isinstance(raised(lambda: torch.equal(there, x)), RuntimeError)


@check("copy/numpy", "COPY-001", dtypes=("bool", "uint8", "int64", "float16", "float32", "float64"))
def numpy_interchange_through_the_host(dev: Device, dtype: torch.dtype) -> None:
    """cpu().numpy() and from_numpy().to(device) carry the values both ways."""
    source = ramp((3, 4), dtype)
    array = source.to(dev.device()).cpu().numpy()
    assert array.tolist() == source.tolist()
    dev.assert_equal(torch.from_numpy(array).to(dev.device()), source)


@check("copy/numpy_refused:numpy", "COPY-027", needs=("accelerator", "plain_tensors"))
def numpy_of_a_device_tensor_raises(dev: Device) -> None:
    """numpy() of a device tensor raises TypeError and does not copy behind the user's back."""
    assert isinstance(raised(ramp((3,)).to(dev.device()).numpy), TypeError)


@check("copy/numpy_refused:array", "COPY-027", needs=("accelerator", "plain_tensors"))
def an_array_of_a_device_tensor_raises(dev: Device) -> None:
    """numpy.asarray() of a device tensor raises TypeError, too."""
    import numpy

    x = ramp((3,)).to(dev.device())
    assert isinstance(raised(lambda: numpy.asarray(x)), TypeError)
