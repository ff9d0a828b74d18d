# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's dispatcher called while a function ran, as a tree, with the devices of inputs.

PyTorch's own profiler records it, on the CPU only: nothing of the backend's profiler is used.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from torch._C._autograd import _disable_profiler, _enable_profiler, _prepare_profiler
from torch._C._profiler import _ExperimentalConfig, _TensorMetadata
from torch.autograd import ProfilerActivity, ProfilerConfig, ProfilerState

T = TypeVar("T")

_ACTIVITIES = {ProfilerActivity.CPU}
#: Operators that copy, and which inputs are the destination and the source.
_COPIES = {"copy_": (0, 1), "_copy_from": (1, 0), "_copy_from_and_resize": (1, 0)}


class Operand(NamedTuple):
    """A tensor that a call was given."""

    device: str
    numel: int


Operands = tuple[Operand, ...]


@dataclass
class Call:
    """One call through the dispatcher."""

    name: str
    """With the namespace: ``aten::add``."""
    overload: str
    """The whole name of the overload: ``aten::add.Tensor``."""
    inputs: list[Operands]
    """For each input the tensors that it is: none, one, or those of a list."""
    children: list[Call] = field(default_factory=list)

    @property
    def base(self) -> str:
        """The name without namespace and without the underscore of in-place variants."""
        return self.name.rpartition("::")[2].rstrip("_")

    @property
    def devices(self) -> set[str]:
        """Where the tensors among its inputs are."""
        return {operand.device for operands in self.inputs for operand in operands}

    def moves(self, source: str, destination: str) -> bool:
        """Whether it copies more than a number from one type of device to another."""
        places = _COPIES.get(self.name.rpartition("::")[2])
        if places is None or len(self.inputs) <= max(places):
            return False
        ends = [self.inputs[place] for place in places]
        if any(len(end) != 1 for end in ends):
            return False
        to, origin = ends[0][0], ends[1][0]
        return (to.device, origin.device) == (destination, source) and origin.numel > 1


def recorded(function: Callable[[], T]) -> tuple[T, list[Call]]:
    """Call `function`; return its value and the calls that nothing else made."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it writes a line at each start and stop
    options = _ExperimentalConfig(capture_overload_names=True)
    config = ProfilerConfig(ProfilerState.KINETO, True, False, False, False, False, options, "")
    _prepare_profiler(config, _ACTIVITIES)
    _enable_profiler(config, _ACTIVITIES)
    try:
        value = function()
    finally:
        result = _disable_profiler()
    overloads = ((event.name(), event.overload_name()) for event in result.events())
    return value, _calls(result.experimental_event_tree(), overloads)


def _calls(events: list[Any], overloads: Iterator[tuple[str, str]]) -> list[Call]:
    """Both come in the order in which the calls began."""
    made = []
    for event in events:
        name, overload = next(overloads, (event.name, ""))
        whole = f"{name}.{overload}" if overload and name == event.name else event.name
        inputs = [_operands(value) for value in getattr(event.extra_fields, "inputs", [])]
        made.append(Call(event.name, whole, inputs, _calls(event.children, overloads)))
    return made


def _operands(value: Any) -> Operands:
    values = value if isinstance(value, list) else [value]
    tensors = [one for one in values if isinstance(one, _TensorMetadata)]
    return tuple(Operand(one.device.type, math.prod(one.sizes)) for one in tensors)
