# SPDX-License-Identifier: BSD-3-Clause
"""The reference backend with the one stream of each device, and with torch.Event taken away."""

from typing import Any

import odd
import torch

odd.choose("one_stream")

import torch_puone  # noqa: E402, F401 - registers the device, on that driver

_Event = torch.Event


class _IsEvent(type):
    """Events of other devices are still made, and are instances of what took the place."""

    def __call__(cls, device: Any = None, **kwargs: Any) -> torch.Event:
        if device is None or torch.device(device).type == "puone":
            raise NotImplementedError("puone does not support events")
        return _Event(device, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Event)


class Event(metaclass=_IsEvent):
    """In the place of torch.Event, as some backends replace it."""


torch.Event = Event  # type: ignore[assignment, misc]  # replaced on purpose
