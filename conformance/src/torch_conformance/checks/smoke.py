# SPDX-License-Identifier: BSD-3-Clause
"""Smoke: what a new backend is asked first.

A failure says which side is wrong, and what to do about it: the *harness* (this suite, the
installed torch, the machine), the *descriptor* (the file that declares the backend), or the
*backend*. None of the checks needs what a later one verifies.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import torch

from torch_conformance.authoring import backend
from torch_conformance.authoring.api import Device, check
from torch_conformance.authoring.assertion import said
from torch_conformance.authoring.check import Body
from torch_conformance.authoring.compare import DifferentError
from torch_conformance.authoring.origin import is_verdict
from torch_conformance.running.capability_probes import OF_THE_DESCRIPTOR, PROBES
from torch_conformance.spec.outcome import CheckError
from torch_conformance.spec.reason import Unsupported

HARNESS, DESCRIPTOR, BACKEND = "harness", "descriptor", "backend"

#: Keys of the descriptor that name an object of the backend.
NAMES = (
    *("module", "delay", "driver", "fallback_counts", "fallback_reset", "fault"),
    "backend_meta",
)


def blames(side: str, advice: str, chapter: str | None = None) -> Callable[[Body], Body]:
    """Let a failure of the check say which side is wrong, what to do, and where more about it is.

    `chapter` is one of the walkthrough.
    """
    if chapter:
        advice += f"\nMore: python -m torch_conformance help walkthrough-{chapter}"

    def decorate(body: Body) -> Body:
        file = inspect.unwrap(body).__code__.co_filename

        @functools.wraps(body)
        def blaming(dev: Device) -> None:
            try:
                body(dev)
            except Unsupported:
                raise
            except Exception as error:
                dev.note(blames=side)
                worded = _blaming(error, side, advice, file)
                raise worded.with_traceback(error.__traceback__) from error

        return blaming

    return decorate


def _blaming(error: Exception, side: str, advice: str, file: str) -> Exception:
    """The same outcome in other words, and what a comparison found with it."""
    if isinstance(error, DifferentError):
        return DifferentError(f"{side} wrong: {error}\n{advice}", error.mismatch)
    if isinstance(error, AssertionError) and is_verdict(error, file):
        return AssertionError(f"{side} wrong: {said(error)}\n{advice}")
    return CheckError(f"{side} wrong: {type(error).__name__}: {error}\n{advice}")


def numbers() -> torch.Tensor:
    """A matrix on the CPU with the values 0 to 5."""
    return torch.arange(6, dtype=torch.float32).reshape(2, 3)


@check("smoke/cpu_reference", "SMOKE-001")
@blames(
    HARNESS,
    "No check can be believed. Either this torch is broken (try --backend=cpu), or the backend "
    "registered a kernel for the CPU: register for 'PrivateUse1' only, not for 'CPU', "
    "'CompositeExplicitAutograd' or all keys.",
)
def the_cpu_still_computes(dev: Device) -> None:
    """The CPU gives right results in a process that has loaded the backend."""
    ramp = numbers()
    assert (ramp + 1).tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert (ramp * 2).sum().item() == 30.0
    assert (ramp @ ramp.t()).tolist() == [[5.0, 14.0], [14.0, 50.0]]
    assert torch.empty(2).fill_(3).tolist() == torch.full((2,), 3.0).clone().tolist() == [3.0, 3.0]
    assert (ramp + 1).device.type == "cpu"


@check("smoke/descriptor_names", "SMOKE-002")
@blames(
    DESCRIPTOR,
    "Correct that key of the descriptor, or delete it: without it the suite does without. If the "
    "name is right, a module that defines it is missing in import.after_torch.",
)
def what_the_descriptor_names_exists(dev: Device) -> None:
    """Module and callables that the descriptor names exist."""
    for key in NAMES:
        path = getattr(dev.descriptor, key)
        if not path:
            continue
        try:
            found = backend.resolve(path)
        except Exception as error:
            raise AssertionError(f"{key}: {path}: {type(error).__name__}: {error}") from error
        if key not in ("module", "fault"):
            assert callable(found), f"{key}: {path} is {type(found).__name__}, not callable"


@check("smoke/descriptor_device_type", ("SMOKE-002", "DEV-015"))
@blames(
    DESCRIPTOR,
    "Write the device type under which tensors appear: what torch.utils.rename_privateuse1_backend "
    "was given.",
)
def tensors_have_the_declared_device_type(dev: Device) -> None:
    """Tensors made on the device have the descriptor's device type."""
    declared = dev.descriptor.device_type
    made = torch.empty(2, device=dev.device()).device
    assert made.type == declared, f"device_type says {declared!r}, tensors are on {str(made)!r}"


@check("smoke/descriptor_capabilities", ("SMOKE-002", "CLAIM-001", "CLAIM-002"))
@blames(
    DESCRIPTOR,
    "Leave a capability out and it is probed. Declare it false only if the backend is not to have "
    "it; if it should be there, the backend is wrong, and the words above say where.",
)
def declared_capabilities_are_what_is_found(dev: Device) -> None:
    """Every capability that the descriptor declares and that can be probed is as declared."""
    wrong = []
    for name, declared in dev.descriptor.capabilities.items():
        if name in PROBES and name not in OF_THE_DESCRIPTOR:
            found, why = _look_for(dev, name)
            if found != declared:
                wrong.append(f"{name} is declared {str(declared).lower()}, but {why}")
    assert not wrong, "; ".join(wrong)


def _look_for(dev: Device, name: str) -> tuple[bool, str]:
    """Whether a capability is there, and what tells so."""
    try:
        found = PROBES[name](dev)
    except Exception as error:
        return False, f"probing raises {type(error).__name__}: {backend.first_line(error)}"
    return found, "probing finds it" if found else "probing does not find it"


@check("smoke/module", ("SMOKE-003", "REG-010"))
@blames(
    BACKEND,
    "Call torch._register_device_module(type, module) with a module that has is_available, "
    "device_count and current_device.",
    "register",
)
def the_device_module_is_registered(dev: Device) -> None:
    """torch.<type> exists and says that there are devices."""
    module = torch.get_device_module(dev.type)
    if not dev.is_accelerator:
        return
    assert getattr(torch, dev.type, None) is not None, f"there is no torch.{dev.type}"
    assert module.is_available() is True, f"torch.{dev.type}.is_available() is not True"
    count, current = module.device_count(), module.current_device()
    assert count >= 1, f"torch.{dev.type}.device_count() is {count}"
    assert 0 <= current < count, f"torch.{dev.type}.current_device() is {current} of {count}"


@check("smoke/accelerator", ("SMOKE-003", "REG-005"), needs=("accelerator",))
@blames(
    BACKEND,
    "Register hooks (at::PrivateUse1HooksInterface: isAvailable, hasPrimaryContext) and a guard "
    "(c10::impl::DeviceGuardImplInterface: deviceCount, getDevice).",
    "register",
)
def torch_accelerator_finds_the_device(dev: Device) -> None:
    """torch.accelerator reports the backend."""
    current = torch.accelerator.current_accelerator()
    assert current is not None, "torch.accelerator.current_accelerator() is None"
    assert current.type == dev.type, f"torch.accelerator has {current.type!r}, not {dev.type!r}"
    assert torch.accelerator.is_available(), "torch.accelerator.is_available() is False"
    count = torch.accelerator.device_count()
    assert count == dev.count >= 1, f"torch.accelerator counts {count} devices, not {dev.count}"


@check("smoke/allocate", ("SMOKE-003", "MEM-003"))
@blames(
    BACKEND,
    "Implement aten::empty.memory_format and aten::empty_strided for PrivateUse1 with memory that "
    "lives as long as its storage.",
    "memory",
)
def tensors_get_memory_of_their_own(dev: Device) -> None:
    """Two tensors can be allocated, on the device asked for, and do not overlap."""
    first, second = (torch.empty(64, device=dev.device()) for _ in range(2))
    strided = torch.empty_strided((2, 3), (1, 2), device=dev.device())
    assert first.device.type == dev.type, f"the tensor is on {first.device}"
    assert (first.shape, first.dtype) == ((64,), torch.float32)
    assert strided.stride() == (1, 2), f"strides {strided.stride()} in the place of (1, 2)"
    if dev.has("addresses"):
        distance = abs(first.data_ptr() - second.data_ptr())
        assert distance >= 256, f"blocks of 256 bytes are {distance} bytes apart"
    assert torch.empty(0, device=dev.device()).numel() == 0


@check("smoke/roundtrip", ("SMOKE-003", "COPY-001"))
@blames(
    BACKEND,
    "Implement aten::copy_ (or aten::_copy_from) for PrivateUse1, both ways.",
    "memory",
)
def values_survive_the_round_trip(dev: Device) -> None:
    """A contiguous tensor comes back from the device as it went."""
    there = numbers().to(dev.device())
    assert there.device.type == dev.type, f".to({dev.device()!s}) gives a tensor on {there.device}"
    dev.assert_equal(there, numbers())


@check("smoke/roundtrip_strided", ("SMOKE-003", "COPY-001"))
@blames(
    BACKEND,
    "Heed the strides of both tensors in aten::copy_; a plain copy of bytes is right only for "
    "contiguous tensors of one dtype.",
    "memory",
)
def strides_survive_the_round_trip(dev: Device) -> None:
    """A transposed tensor comes back from the device as it went."""
    dev.assert_equal(numbers().t().to(dev.device()), numbers().t())
    dev.assert_equal(numbers()[:, 1:].to(dev.device()), numbers()[:, 1:])


@check("smoke/fill", ("SMOKE-003", "FACT-001"))
@blames(BACKEND, "Implement aten::fill_.Scalar and aten::zero_ for PrivateUse1.", "operators")
def factories_fill(dev: Device) -> None:
    """zeros, ones and full write their value."""
    dev.assert_equal(torch.zeros(3, device=dev.device()), [0.0] * 3)
    dev.assert_equal(torch.ones(3, device=dev.device()), [1.0] * 3)
    dev.assert_equal(torch.full((2,), 7, device=dev.device()), [7, 7])


@check("smoke/view", ("SMOKE-003", "VIEW-001", "VIEW-002"))
@blames(
    BACKEND,
    "Implement aten::view and aten::as_strided for PrivateUse1 as views: the same storage, other "
    "sizes, strides and offset.",
    "memory",
)
def views_share_memory(dev: Device) -> None:
    """Reshaping, indexing and transposing see the memory of their base."""
    base = numbers().to(dev.device())
    views = {"view(6)": base.view(6), "t()": base.t(), "[1, 1:]": base[1, 1:]}
    for name, seen in views.items():
        storages = (seen.untyped_storage().data_ptr(), base.untyped_storage().data_ptr())
        assert storages[0] == storages[1], f"{name} has a storage of its own"
    dev.assert_equal(views["view(6)"], numbers().view(6))
    dev.assert_equal(views["t()"], numbers().t())
    dev.assert_equal(views["[1, 1:]"], [4.0, 5.0])


@check("smoke/item", ("SMOKE-003", "COPY-025"))
@blames(BACKEND, "Implement aten::_local_scalar_dense for PrivateUse1.", "operators")
def an_element_is_read(dev: Device) -> None:
    """item() gives the value of one element."""
    value = torch.tensor(2.5).to(dev.device()).item()
    assert value == 2.5, f"item() gives {value!r}, not 2.5"


@check("smoke/add", ("SMOKE-003", "ERR-005"))
@blames(
    BACKEND,
    "Implement aten::add.out for PrivateUse1; a Python number arrives as a CPU tensor of no "
    "dimensions, in Python as a number.",
    "operators",
)
def tensors_are_added(dev: Device) -> None:
    """Adding tensors, and numbers to tensors, gives the CPU's result."""
    there = numbers().to(dev.device())
    dev.assert_equal(there + there, numbers() + numbers())
    dev.assert_equal(there + 1, numbers() + 1)
    dev.assert_equal(torch.add(there, there, alpha=2), numbers() * 3)


@check("smoke/backward", ("SMOKE-003", "GRAD-001"))
@blames(
    BACKEND,
    "PyTorch differentiates add by itself; the backend needs the guard, and aten::fill_.Scalar for "
    "the first gradient. Register kernels for 'PrivateUse1', not for 'AutogradPrivateUse1'.",
    "training",
)
def gradients_flow(dev: Device) -> None:
    """backward() gives the gradient of a sum of two uses of a tensor."""
    leaf = torch.tensor(3.0).to(dev.device()).requires_grad_()
    (leaf + leaf).backward()
    assert leaf.grad is not None, "there is no gradient"
    dev.assert_equal(leaf.grad, torch.tensor(2.0))


@check("smoke/synchronize", ("SMOKE-003", "DEV-002"), needs=("accelerator",))
@blames(
    BACKEND,
    "Implement synchronizeDevice in the guard, or torch.<type>.synchronize; to do nothing is right "
    "for a device whose operators wait for their results.",
    "streams",
)
def the_device_can_be_waited_for(dev: Device) -> None:
    """torch.accelerator.synchronize, or the module's synchronize, returns."""
    module = dev.bare_module
    if hasattr(module, "synchronize"):
        module.synchronize()
    else:
        dev.require("synchronize")
        torch.accelerator.synchronize()
