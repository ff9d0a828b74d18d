# SPDX-License-Identifier: BSD-3-Clause
"""Samples made on the CPU, carried over to the device as they are: same strides, same storage.

A copy for the CPU itself is made in the same way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from torch_conformance.opinfo.sample import Sample

CPU = torch.device("cpu")
META = torch.device("meta")


class Transfer:
    """Moves the arguments of one sample; an object that occurs twice is moved once."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._moved: dict[int, Tensor] = {}
        self.used = False
        """Whether anything that has a device was among the arguments."""

    def move(self, value: Any) -> Any:
        """`value` with every tensor, generator and CPU device in it replaced."""
        kind = type(value)
        if isinstance(value, Tensor):
            self.used = True
            if id(value) not in self._moved:
                moved = self._tensor(value.detach())
                self._moved[id(value)] = moved.requires_grad_(value.requires_grad)
            return self._moved[id(value)]
        if kind in (list, tuple):
            return kind(self.move(item) for item in value)
        if kind is dict:
            return {key: self.move(item) for key, item in value.items()}
        if value == "cpu" if kind is str else kind is torch.device and value.type == "cpu":
            self.used = True
            return self._device
        if kind is torch.Generator:
            return torch.Generator(self._device).manual_seed(value.initial_seed())
        return value

    def _tensor(self, tensor: Tensor) -> Tensor:
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested:
            return self._carried(tensor)
        if tensor.is_conj():
            return self._tensor(tensor.conj()).conj()
        if tensor.is_neg():
            return self._tensor(tensor._neg_view())._neg_view()
        storage = tensor.untyped_storage()
        itemsize = tensor.element_size()
        if tensor.is_contiguous() and storage.nbytes() == tensor.numel() * itemsize:
            return self._carried(tensor)
        if storage.nbytes() % itemsize:
            return self._carried(tensor)
        # A view: `to` would drop the memory around it, which as_strided and others reach.
        whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage)
        size, stride = tensor.size(), tensor.stride()
        return self._carried(whole).as_strided(size, stride, tensor.storage_offset())

    def _carried(self, tensor: Tensor) -> Tensor:
        return tensor.to(self._device, copy=True)


def moved(sample: Sample, device: torch.device) -> Sample:
    """The sample with its arguments on another device."""
    parts = Transfer(device).move((sample.input, sample.args, sample.kwargs))
    return replace(sample, input=parts[0], args=parts[1], kwargs=parts[2])
