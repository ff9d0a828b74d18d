# SPDX-License-Identifier: BSD-3-Clause
"""The device type: parsed, and known to PrivateUse1, to dispatch and to torch.accelerator."""

from __future__ import annotations

import pickle

import torch

from torch_conformance.authoring.api import Device, check, raised


@check("registration/device_parsing:type_only", "REG-001")
def device_type_parses(dev: Device) -> None:
    """torch.device understands the device type without an index."""
    parsed = torch.device(dev.type)
    assert parsed.type == dev.type and parsed.index is None


@check("registration/device_parsing:with_index", "REG-001")
def device_type_with_index_parses(dev: Device) -> None:
    """torch.device understands the device type with an index in one string."""
    parsed = torch.device(f"{dev.type}:0")
    assert (parsed.type, parsed.index) == (dev.type, 0)


@check("registration/device_parsing:index_argument", "REG-001")
def device_index_may_be_an_argument(dev: Device) -> None:
    """torch.device takes the index as an argument, by position and by name."""
    assert torch.device(dev.type, 0) == torch.device(f"{dev.type}:0")
    assert torch.device(type=dev.type, index=0) == torch.device(f"{dev.type}:0")


@check("registration/device_parsing:text", "REG-001")
def device_shows_its_type(dev: Device) -> None:
    """str() and repr() of a torch.device show the device type."""
    assert str(torch.device(dev.type)) == dev.type
    assert str(torch.device(dev.type, 0)) == f"{dev.type}:0"
    assert dev.type in repr(torch.device(dev.type, 0))


@check("registration/device_parsing:equality", "REG-001")
def devices_are_equal_by_type_and_index(dev: Device) -> None:
    """Devices of one type and index are equal and hash alike; those of other indices are not."""
    assert torch.device(dev.type, 0) != torch.device(dev.type)
    assert torch.device(dev.type, 0) != torch.device(dev.type, 1)
    assert len({torch.device(dev.type, 0), torch.device(f"{dev.type}:0")}) == 1


@check("registration/device_parsing:pickle", "REG-001")
def devices_can_be_pickled(dev: Device) -> None:
    """A pickled torch.device is equal to the one that was pickled."""
    device = torch.device(dev.type, 0)
    assert pickle.loads(pickle.dumps(device)) == device


_MALFORMED = {
    "negative": "{}:-1",
    "empty_index": "{}:",
    "letters": "{}:zero",
    "two_indices": "{}:0:1",
    "leading_zero": "{}:00",
    "spaces": " {} ",
}


@check("registration/device_malformed", "REG-002", cases=tuple(_MALFORMED))
def malformed_device_string_is_refused(dev: Device, case: str) -> None:
    """A malformed device string raises RuntimeError and is never read as some other device."""
    text = _MALFORMED[case].format(dev.type)
    error = raised(lambda: torch.device(text))
    assert isinstance(error, RuntimeError), f"torch.device({text!r}) raised {error!r}"


@check("registration/renamed:name", "REG-003", needs=("privateuse1",))
def privateuse1_has_the_backend_name(dev: Device) -> None:
    """PrivateUse1 was renamed to the device type."""
    assert torch._C._get_privateuse1_backend_name() == dev.type


@check("registration/renamed:device_type_alias", "REG-003", needs=("privateuse1",))
def device_type_has_an_alias(dev: Device) -> None:
    """PrivateUse1 was renamed through the Python function, which gives DeviceType an alias."""
    assert torch._C._get_privateuse1_backend_name() == dev.type
    if torch.__version__ < "2.13":
        dev.unsupported("torch before 2.13 does not rename DeviceType")
    device_type = torch._C._autograd.DeviceType
    assert hasattr(device_type, dev.type.upper()), (
        "DeviceType has no alias: the rename bypassed torch.utils.rename_privateuse1_backend"
    )
    assert dev.type.upper() in str(device_type.PrivateUse1)


def _made(dev: Device) -> dict[str, torch.Tensor]:
    """Tensors that come into being in different ways."""
    x = torch.zeros(2, 3, device=dev.device())
    return {
        "empty": torch.empty(2, 3, device=dev.device()),
        "empty_strided": torch.empty_strided((2, 3), (1, 2), device=dev.device()),
        "zeros": torch.zeros(3, device=dev.device()),
        "tensor": torch.tensor([1.0], device=dev.device()),
        "to": torch.ones(3).to(dev.device()),
        "view": x.t()[1:],
        "result": x + x,
        "cast": x.to(torch.int32),
        "detached": x.requires_grad_().detach(),
    }


@check(
    "registration/dispatch_keys",
    "REG-004",
    cases=("backend", "autograd", "not_cpu"),
    needs=("privateuse1",),
)
def tensor_carries_the_dispatch_keys(dev: Device, case: str) -> None:
    """A device tensor dispatches to PrivateUse1 and its autograd key, never to the CPU."""
    key, wanted = {
        "backend": (torch._C.DispatchKey.PrivateUse1, True),
        "autograd": (torch._C.DispatchKey.AutogradPrivateUse1, True),
        "not_cpu": (torch._C.DispatchKey.CPU, False),
    }[case]
    for made, x in _made(dev).items():
        assert torch._C._dispatch_keys(x).has(key) is wanted, f"{made}: {key}"


@check("registration/current_accelerator:type", "REG-005", needs=("accelerator",))
def backend_is_the_current_accelerator(dev: Device) -> None:
    """torch.accelerator names this backend."""
    current = torch.accelerator.current_accelerator()
    assert current is not None and current.type == dev.type
    assert current.index is None


@check("registration/current_accelerator:available", "REG-005", needs=("accelerator",))
def current_accelerator_is_available(dev: Device) -> None:
    """torch.accelerator says that this backend is available."""
    assert torch.accelerator.is_available() is True
    assert torch.accelerator.current_accelerator(check_available=True) is not None


@check("registration/current_accelerator:device_index_only", "REG-005", needs=("accelerator",))
def an_index_alone_means_the_backends_device(dev: Device) -> None:
    """A device given as an index alone is the device of this backend."""
    assert torch.device(0) == dev.device(0)
    assert torch.empty(1, device=0).device == dev.device(0)
