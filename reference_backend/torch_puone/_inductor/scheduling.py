# SPDX-License-Identifier: BSD-3-Clause
"""Which nodes become one kernel: inductor's rules for devices with flat index spaces."""

from __future__ import annotations

from typing import Any

import torch
from torch._inductor import config
from torch._inductor.codegen.common import BackendFeature
from torch._inductor.codegen.simd import SIMDKernel, SIMDScheduling
from torch._inductor.utils import get_fused_kernel_name, get_kernel_metadata
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from .kernel import PuoneKernel
from .runtime import blocks_use_all_cores


class PuoneScheduling(SIMDScheduling):
    kernel_type: type[SIMDKernel[Any]] = PuoneKernel

    @classmethod
    def get_backend_features(cls, device: torch.device) -> OrderedSet[BackendFeature]:
        features = OrderedSet([BackendFeature.INPLACE_BUFFERS, BackendFeature.TUPLE_REDUCTION])
        if blocks_use_all_cores(device):  # else inductor makes two kernels of long reductions
            features.add(BackendFeature.REDUCE_TO_SINGLE_ELEMENT)
        return features

    def define_kernel(self, src_code: str, node_schedule: list[Any], kernel: Any) -> str:
        """Write the definition into the generated Python, once for equal sources."""
        wrapper = V.graph.wrapper_code
        if src_code in wrapper.src_to_kernel:
            return wrapper.src_to_kernel[src_code]
        fused = get_fused_kernel_name(node_schedule, config.triton.descriptive_names)
        name = f"puone_{fused}_{wrapper.next_kernel_suffix()}"
        wrapper.src_to_kernel[src_code] = name
        device = V.graph.get_current_device_or_throw().index
        # Without the number: equal kernels of two graphs are one image.
        definition = src_code.replace(PuoneKernel.NAME, f"puone_{fused}")
        origins, detailed_origins = get_kernel_metadata(node_schedule, wrapper)
        wrapper.define_kernel(
            name,
            f"puone_kernel({definition}, device={device})",
            f"{origins}\n{detailed_origins}",
        )
        return name

    def codegen_sync(self) -> None:
        V.graph.wrapper_code.writeline("torch.puone.synchronize()")
