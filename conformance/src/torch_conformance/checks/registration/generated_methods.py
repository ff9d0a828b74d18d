# SPDX-License-Identifier: BSD-3-Clause
"""`<type>()` and `is_<type>` of tensors, modules, packed sequences and storages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.authoring.api import Device, check


@check("registration/tensor_methods:flag_on_device", "REG-020", needs=("privateuse1",))
def tensor_flag_is_true_on_the_device(dev: Device) -> None:
    """Tensor.is_<type> is true of a tensor of the device."""
    assert getattr(torch.empty(1, device=dev.device()), f"is_{dev.type}") is True


@check("registration/tensor_methods:flag_on_cpu", "REG-020", needs=("privateuse1",))
def tensor_flag_is_false_on_the_cpu(dev: Device) -> None:
    """Tensor.is_<type> is false of a tensor of the CPU."""
    assert getattr(torch.arange(6.0), f"is_{dev.type}") is False


def _verify_move(dev: Device, index: int | None, **options: Any) -> None:
    cpu = torch.arange(6.0)
    moved = getattr(cpu, dev.type)(index, **options)
    wanted = dev.bare_module.current_device() if index is None else index
    assert moved.device == dev.device(wanted)
    dev.assert_equal(moved, cpu)


@check("registration/tensor_methods:move", "REG-020", needs=("privateuse1",))
def tensor_method_moves_to_the_current_device(dev: Device) -> None:
    """Tensor.<type>() copies a tensor of the CPU to the current device."""
    _verify_move(dev, None)


@check("registration/tensor_methods:move_to_index", "REG-020", needs=("privateuse1",))
def tensor_method_moves_to_the_device_asked_for(dev: Device) -> None:
    """Tensor.<type>(index) copies a tensor of the CPU to the device of that index."""
    _verify_move(dev, dev.count - 1)


@check("registration/tensor_methods:already_there", "REG-020", needs=("privateuse1",))
def tensor_method_returns_what_is_already_there(dev: Device) -> None:
    """Tensor.<type>() returns a tensor of the current device itself."""
    x = torch.arange(6.0).to(dev.device(dev.bare_module.current_device()))
    assert getattr(x, dev.type)() is x


@check("registration/tensor_methods:non_blocking", "REG-020", needs=("privateuse1",))
def tensor_method_takes_non_blocking(dev: Device) -> None:
    """Tensor.<type>(non_blocking=True) copies a tensor of the CPU to the current device."""
    _verify_move(dev, None, non_blocking=True)


@check("registration/tensor_methods:gradient", "REG-020", needs=("privateuse1",))
def tensor_method_keeps_history(dev: Device) -> None:
    """Gradients pass through Tensor.<type>()."""
    leaf = torch.arange(6.0).requires_grad_()
    getattr(leaf, dev.type)().mul(2).sum().backward()
    assert leaf.grad is not None, "the tensor arrived without its history"
    assert torch.equal(leaf.grad, torch.full((6,), 2.0))


def _model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).eval()


def _moved(dev: Device, model: torch.nn.Module, *index: int) -> torch.nn.Module:
    moved: torch.nn.Module = getattr(model, dev.type)(*index)
    assert moved is model
    return moved


@check("registration/module_methods:parameters", "REG-021", needs=("privateuse1",))
def module_method_moves_parameters(dev: Device) -> None:
    """nn.Module.<type>() moves parameters, which remain leaves that require grad."""
    model = _moved(dev, _model())
    assert {p.device.type for p in model.parameters()} == {dev.type}
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())


@check("registration/module_methods:same_parameters", "REG-021", needs=("privateuse1",))
def module_method_keeps_the_parameter_objects(dev: Device) -> None:
    """After nn.Module.<type>() the parameters are the objects that an optimizer was given."""
    model = _model()
    before = list(model.parameters())
    _moved(dev, model)
    assert all(a is b for a, b in zip(before, model.parameters(), strict=True))


@check("registration/module_methods:buffers", "REG-021", needs=("privateuse1",))
def module_method_moves_buffers(dev: Device) -> None:
    """nn.Module.<type>() moves buffers."""
    assert {b.device.type for b in _moved(dev, _model()).buffers()} == {dev.type}


@check("registration/module_methods:forward", "REG-021", needs=("privateuse1",))
def module_method_makes_a_module_that_computes(dev: Device) -> None:
    """A module that nn.Module.<type>() has moved computes what it computed on the CPU."""
    model, x = _model(), torch.arange(6.0).reshape(2, 3)
    expected = model(x).detach()
    dev.assert_close(_moved(dev, model)(x.to(dev.device())).detach(), expected)


@check("registration/module_methods:to_index", "REG-021", needs=("privateuse1",))
def module_method_moves_to_the_device_asked_for(dev: Device) -> None:
    """nn.Module.<type>(index) moves parameters and buffers to the device of that index."""
    model = _moved(dev, _model(), dev.count - 1)
    assert {t.device for t in model.state_dict().values()} == {dev.device(dev.count - 1)}


def _packed() -> Any:
    return torch.nn.utils.rnn.pack_sequence([torch.arange(3.0), torch.arange(2.0)])


@check("registration/packed_sequence_methods:flag", "REG-022", needs=("privateuse1",))
def packed_sequence_flag_is_generated(dev: Device) -> None:
    """PackedSequence.is_<type> says whether the sequence is on the device."""
    packed = _packed()
    assert getattr(packed, f"is_{dev.type}") is False
    assert getattr(getattr(packed, dev.type)(), f"is_{dev.type}") is True


@check("registration/packed_sequence_methods:move", "REG-022", needs=("privateuse1",))
def packed_sequence_method_is_generated(dev: Device) -> None:
    """PackedSequence.<type>() copies the data to the device and keeps the batch sizes."""
    packed = _packed()
    moved = getattr(packed, dev.type)()
    assert moved.data.device.type == dev.type
    dev.assert_equal(moved.data, packed.data)
    assert torch.equal(moved.batch_sizes, packed.batch_sizes)


@check("registration/storage_methods:flag", "REG-023", needs=("privateuse1",))
def storage_flag_is_generated(dev: Device) -> None:
    """UntypedStorage.is_<type> says whether the storage is on the device."""
    assert getattr(torch.empty(1).untyped_storage(), f"is_{dev.type}") is False
    on_device = torch.empty(1, device=dev.device()).untyped_storage()
    assert getattr(on_device, f"is_{dev.type}") is True


#: What gives the storage of a tensor, and what gives the untyped storage of that.
_STORAGES: dict[str, tuple[Callable[[torch.Tensor], Any], Callable[[Any], Any]]] = {
    "untyped": (lambda x: x.untyped_storage(), lambda storage: storage),
    "typed": (lambda x: x._typed_storage(), lambda storage: storage._untyped_storage),
}


@check("registration/storage_methods", "REG-023", cases=_STORAGES, needs=("privateuse1",))
def storage_methods_are_generated(dev: Device, case: str) -> None:
    """UntypedStorage.<type>() and TypedStorage.<type>() copy the bytes to the device."""
    dev.require("storage_allocation")
    storage_of, untyped = _STORAGES[case]
    cpu = torch.arange(8, dtype=torch.uint8)
    moved = getattr(storage_of(cpu), dev.type)()
    assert moved.device.type == dev.type
    view = torch.empty(0, dtype=torch.uint8, device=moved.device).set_(untyped(moved))
    dev.assert_equal(view, cpu)
