# SPDX-License-Identifier: BSD-3-Clause
"""The generated Python around the kernels: allocations and calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._inductor.codegen.common import DeviceOpOverrides
from torch._inductor.codegen.wrapper import (
    PythonWrapperCodegen,
    SubgraphPythonWrapperCodegen,
    get_stream_name,
)
from torch._inductor.virtualized import V

if TYPE_CHECKING:
    from torch._inductor import ir


_EXTERNAL_OBJECT = "from torch._dynamo.graph_bytecode_inputs import get_external_object_by_index"


class DeviceOperations(DeviceOpOverrides):
    """Lines of generated Python that concern the device."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"from torch_puone._inductor.dynamo import raw_stream as {name}"

    def set_device(self, device_idx: int) -> str:
        return f"torch.puone.set_device({device_idx})"

    def synchronize(self) -> str:
        return "torch.puone.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return f"torch.puone.device({device_idx})"

    def current_stream(self) -> str:
        return "torch.puone.current_stream()"


class _OnDevice(PythonWrapperCodegen):
    """What inductor's wrapper does for the devices whose names it knows."""

    def make_allocation(
        self,
        name: str,
        device: torch.device,
        dtype: torch.dtype,
        shape: Any,
        stride: Any,
        *args: Any,
        **kwargs: Any,
    ) -> str:
        """With the device's index: otherwise the tensor would be on the current device."""
        line = super().make_allocation(name, device, dtype, shape, stride, *args, **kwargs)
        return line.replace(f"device='{device.type}'", f"device='{device}'")

    def codegen_cuda_stream_enter(self, stream_idx: int) -> Any:
        """Define the stream first, as inductor does in the guards of devices that it knows."""
        number = V.graph.scheduler.stream_idx_to_user_obj_idx.get(stream_idx)
        if number is None:
            stream = V.graph.device_ops.current_stream()
        else:
            self.add_import_once(_EXTERNAL_OBJECT)
            stream = f"get_external_object_by_index({number})"
        self.writeline(f"{get_stream_name(stream_idx)} = {stream}")
        return super().codegen_cuda_stream_enter(stream_idx)

    def _generate_kernel_call_helper(
        self, kernel_name: str, call_args: list[str], *, triton: bool = True, **kwargs: Any
    ) -> None:
        if triton:
            super()._generate_kernel_call_helper(kernel_name, call_args, triton=triton, **kwargs)
        else:
            self.writeline(self.wrap_kernel_call(kernel_name, call_args))


class PuoneWrapper(_OnDevice):
    @staticmethod
    def create(
        is_subgraph: bool,
        subgraph_name: str | None,
        parent_wrapper: PythonWrapperCodegen | None,
        partition_signatures: ir.GraphPartitionSignature | None = None,
    ) -> PythonWrapperCodegen:
        if is_subgraph:
            assert subgraph_name is not None and parent_wrapper is not None
            return _Subgraph(subgraph_name, parent_wrapper, partition_signatures)
        return PuoneWrapper()

    def write_header(self) -> None:
        super().write_header()
        self.imports.writeline("from torch_puone._inductor.runtime import kernel as puone_kernel")


class _Subgraph(_OnDevice, SubgraphPythonWrapperCodegen):
    pass
