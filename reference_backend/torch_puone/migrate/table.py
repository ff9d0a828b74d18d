# SPDX-License-Identifier: BSD-3-Clause
"""What takes the place of each name of `torch.cuda` and its neighbours: data for all commands.

A row names what to write instead, best first. `torch.accelerator.X` counts where the installed
torch has it; `torch.get_device_module().X` is the module of the current accelerator, as
`torch.cuda` is that of CUDA devices. A row without a replacement says why there is none.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import torch

#: What a program writes for the string "cuda", and for a device.
TYPE = "torch.accelerator.current_accelerator().type"
DEVICE = "torch.accelerator.current_accelerator()"
MODULE = "torch.get_device_module()"
#: What a program writes for `.cuda()`. The `to` of a storage takes the device by keyword only.
MOVE = f".to(device={DEVICE})"


@dataclass(frozen=True)
class Row:
    """One name and what replaces it."""

    name: str
    #: Expressions, best first; none if nothing does the same on another device.
    instead: tuple[str, ...] = ()
    #: Why there is no replacement, or what differs.
    note: str = ""
    #: Whether writing the replacement for the name is all there is to do, also for machines
    #: without an accelerator, where parts of torch.cuda do nothing and torch.accelerator raises.
    drop_in: bool = True
    #: Attributes of what the name gives that the replacement's lacks: a file that reads one of them
    #: needs a person.
    lacks: tuple[str, ...] = ()
    #: How many of the arguments by position mean the same to the replacement.
    takes: int = 100
    #: Whether the name is a setting of CUDA's libraries: accepted elsewhere, without effect.
    setting: bool = False

    @property
    def replacement(self) -> str:
        """The best of the expressions that this torch has; "" if there is none."""
        return next(filter(available, self.instead), "")

    @property
    def advice(self) -> str:
        """What a person reads behind the name."""
        if self.setting:
            return f"has no effect on other devices{self._note('; ')}"
        if not self.replacement:
            return f"has no equivalent{self._note(': ')}"
        return f"write {self.replacement}{self._note(' (')}{')' if self.note else ''}"

    def _note(self, before: str) -> str:
        return f"{before}{self.note}" if self.note else ""


def available(expression: str) -> bool:
    """Whether the installed torch has what an expression of a row names."""
    if not expression.startswith("torch.accelerator."):
        return True
    return hasattr(torch.accelerator, expression.split(".")[2].partition("(")[0])


def moved(index: object = None) -> str:
    """What a program writes for `.cuda(index)`."""
    is_index = isinstance(index, int) and index >= 0
    return f".to(device={index})" if is_index else MOVE


def _module(name: str) -> str:
    return f"{MODULE}.{name}"


def _accelerated(names: str, drop_in: bool = True, lacks: tuple[str, ...] = ()) -> Iterable[Row]:
    """Names that `torch.accelerator` has, or will have."""
    for name in names.split():
        instead = (f"torch.accelerator.{name}", _module(name))
        yield Row(f"torch.cuda.{name}", instead, drop_in=drop_in, lacks=lacks)


def _renamed(drop_in: bool = True, **names: str) -> Iterable[Row]:
    """Names that `torch.accelerator` has under another one."""
    for name, other in names.items():
        instead = (f"torch.accelerator.{other}", _module(name))
        yield Row(f"torch.cuda.{name}", instead, drop_in=drop_in)


def _of_the_module(names: str) -> Iterable[Row]:
    """Names that device modules have by convention."""
    for name in names.split():
        yield Row(f"torch.cuda.{name}", (_module(name),))


def _absent(note: str, names: str) -> Iterable[Row]:
    for name in names.split():
        yield Row(f"torch.{name}", note=note)


def _settings(prefix: str, names: str, note: str = "") -> Iterable[Row]:
    for name in names.split():
        yield Row(f"{prefix}.{name}".rstrip("."), note=note, setting=True)


_STREAM_LACKS = ("cuda_stream", "priority")
_TENSORS = "BFloat16 Bool Byte Char Double Float Half Int Long Short"

ROWS = (
    Row("torch.cuda", (MODULE,), "the module itself; its functions are listed by name"),
    *_accelerated(
        "is_available device_count synchronize set_stream"
        " reset_accumulated_memory_stats reset_peak_memory_stats"
    ),
    *_accelerated("current_stream", lacks=_STREAM_LACKS),
    *_accelerated(
        "empty_cache memory_allocated max_memory_allocated memory_reserved max_memory_reserved"
        " memory_stats manual_seed manual_seed_all seed seed_all initial_seed"
        " get_rng_state get_rng_state_all set_rng_state set_rng_state_all",
        drop_in=False,
    ),
    *_renamed(
        current_device="current_device_index",
        set_device="set_device_index",
        mem_get_info="get_memory_info",
        reset_max_memory_allocated="reset_peak_memory_stats",
        reset_max_memory_cached="reset_peak_memory_stats",
    ),
    *_renamed(
        drop_in=False,
        memory_cached="memory_reserved",
        max_memory_cached="max_memory_reserved",
    ),
    Row(
        "torch.cuda.device",
        ("torch.accelerator.device_index", _module("device")),
        "it takes an index, not a device",
        drop_in=False,
    ),
    *_of_the_module(
        "device_of get_device_name get_device_properties can_device_access_peer default_stream"
        " StreamContext ExternalStream get_stream_from_external memory_summary memory_snapshot"
        " memory_stats_as_nested_dict host_memory_stats host_memory_stats_as_nested_dict"
        " set_per_process_memory_fraction get_per_process_memory_fraction ipc_collect init"
        " is_initialized is_bf16_supported is_tf32_supported default_generators"
        " make_graphed_callables graph_pool_handle is_current_stream_capturing"
        " device_memory_used"
    ),
    Row(
        "torch.cuda.get_device_capability",
        (_module("get_device_capability"),),
        "what the numbers mean is the vendor's affair; to ask for a dtype, use"
        " torch.accelerator.get_device_capability()['supported_dtypes']",
        drop_in=False,
    ),
    Row("torch.cuda.Stream", ("torch.Stream",), lacks=_STREAM_LACKS, takes=1),
    Row("torch.cuda.Event", ("torch.Event",), lacks=("cuda_event",), takes=0),
    Row(
        "torch.cuda.stream",
        ("with stream:", _module("stream")),
        "a torch.Stream is a context manager itself",
        drop_in=False,
    ),
    Row(
        "torch.cuda.CUDAGraph",
        ("torch.accelerator.Graph",),
        "`with graph:` captures; torch.cuda.graph() and capture_begin(pool=...) do not take it",
        drop_in=False,
    ),
    Row(
        "torch.cuda.graph",
        ("with torch.accelerator.Graph():", _module("graph")),
        "a torch.accelerator.Graph is a context manager itself",
        drop_in=False,
    ),
    Row("torch.cuda.OutOfMemoryError", ("torch.OutOfMemoryError",)),
    Row("torch.cuda.AcceleratorError", ("torch.AcceleratorError",)),
    Row("torch.cuda.CudaError", ("torch.AcceleratorError",), drop_in=False),
    Row("torch.cuda.amp", ("torch.amp",), "its functions take a device type", drop_in=False),
    Row("torch.cuda.amp.autocast", (f"torch.amp.autocast({TYPE})",), drop_in=False),
    Row("torch.cuda.amp.GradScaler", (f"torch.amp.GradScaler({TYPE})",), drop_in=False),
    Row("torch.cuda.amp.custom_fwd", (f"torch.amp.custom_fwd(device_type={TYPE})",), drop_in=False),
    Row("torch.cuda.amp.custom_bwd", (f"torch.amp.custom_bwd(device_type={TYPE})",), drop_in=False),
    *(
        Row(
            f"torch.cuda.{name}Tensor",
            (f"torch.tensor(..., dtype=..., device={TYPE})",),
            drop_in=False,
        )
        for name in _TENSORS.split()
    ),
    Row("torch.cuda.memory", (_module("memory"),), drop_in=False),
    Row("torch.cuda.random", (_module("random"),), drop_in=False),
    Row("torch.cuda.streams", (_module("streams"),), drop_in=False),
    Row("torch.cuda.graphs", (_module("graphs"),), drop_in=False),
    Row("torch.cuda.nvtx", ("torch.profiler.record_function",), drop_in=False),
    Row("torch.cuda.nvtx.range", ("torch.profiler.record_function",), drop_in=False),
    Row("torch.cuda.nvtx.range_push", ("torch.profiler.record_function",), drop_in=False),
    Row("torch.cuda.nvtx.range_pop", ("torch.profiler.record_function",), drop_in=False),
    Row("torch.cuda.nvtx.mark", ("torch.profiler.record_function",), drop_in=False),
    Row("torch.cuda.has_half", note="CUDA's own; ask for dtypes", drop_in=False),
    *_absent(
        "it belongs to CUDA's runtime library",
        "cuda.cudart cuda.cudaStatus cuda.check_error cuda.current_blas_handle"
        " cuda.current_solver_handle cuda.get_arch_list cuda.get_gencode_flags cuda.profiler"
        " cuda.set_sync_debug_mode cuda.get_sync_debug_mode cuda.GreenContext"
        " cuda.green_contexts cuda.gds cuda.tunable cuda.jiterator cuda.has_magma cuda.sparse"
        " cuda.export_dot cuda.export_graph_data cuda.graph_annotations"
        " cuda.DeferredCudaCallError",
    ),
    *_absent(
        "the allocator of a device is its backend's affair",
        "cuda.CUDAPluggableAllocator cuda.change_current_allocator cuda.get_allocator_backend"
        " cuda.MemPool cuda.use_mem_pool cuda.caching_allocator_alloc"
        " cuda.caching_allocator_delete cuda.caching_allocator_enable"
        " cuda.caching_allocator_disabled"
        " cuda.list_gpu_processes cuda.reset_peak_host_memory_stats"
        " cuda.reset_accumulated_host_memory_stats",
    ),
    *_absent(
        "PyTorch has no interface to sensors that all devices share",
        "cuda.utilization cuda.memory_usage cuda.temperature cuda.power_draw cuda.clock_rate",
    ),
    *_absent("use torch.distributed", "cuda.nccl cuda.comm"),
    *_absent("a build of torch for another device has no CUDA version", "version.cuda"),
    *_settings(
        "torch.backends.cudnn",
        " benchmark benchmark_limit allow_tf32 enabled fp32_precision",
    ),
    *_settings(
        "torch.backends.cudnn",
        "deterministic",
        "torch.use_deterministic_algorithms(True) asks all devices",
    ),
    Row("torch.backends.cudnn", note="it has the settings of cuDNN", setting=True),
    Row(
        "torch.backends.cuda",
        note="it has the settings of cuBLAS and of CUDA's kernels",
        setting=True,
    ),
    *_settings(
        "torch.backends.cuda",
        "matmul matmul.allow_tf32",
        "torch.set_float32_matmul_precision('high') asks all devices",
    ),
    *_settings(
        "torch.backends.cuda",
        "sdp_kernel enable_flash_sdp enable_math_sdp enable_mem_efficient_sdp",
        "torch.nn.attention.sdpa_kernel chooses for all devices",
    ),
    Row("torch.distributed.is_nccl_available", ("torch.distributed.is_available",), drop_in=False),
    Row(
        "torch.utils.cpp_extension.CUDAExtension",
        note="each backend has an extension builder of its own",
    ),
    Row(
        "torch.utils.cpp_extension.CUDA_HOME",
        note="each backend has an extension builder of its own",
    ),
    Row(
        "torch.profiler.ProfilerActivity.CUDA",
        ("torch.profiler.supported_activities()",),
        drop_in=False,
    ),
)

#: Attributes of CUDA's objects that the neutral ones lack, and what to write.
ATTRIBUTES = {
    "is_cuda": f"write .device.type == {TYPE}",
    "cuda_stream": "write .native_handle, which is a stream of the device's own kind"
    if hasattr(torch.Stream, "native_handle")
    else "has no equivalent: a torch.Stream of this torch does not give its handle",
    "cuda_event": "has no equivalent: a torch.Event does not give its handle",
}

#: Environment variables that only CUDA reads, and what is read in their place.
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "has no equivalent: each backend has a variable of its own",
    "CUDA_DEVICE_ORDER": "has no equivalent: each backend has a variable of its own",
    "CUDA_LAUNCH_BLOCKING": "has no equivalent: each backend has a variable of its own",
    "CUBLAS_WORKSPACE_CONFIG": "has no effect on other devices",
    "PYTORCH_CUDA_ALLOC_CONF": "write PYTORCH_ALLOC_CONF",
    "NCCL_DEBUG": "has no effect on other devices",
    "TORCH_CUDNN_V8_API_ENABLED": "has no effect on other devices",
}

#: Parts of torch.cuda whose names are those of torch.cuda itself: `torch.cuda.memory.X`.
_PARTS = ("memory", "random", "streams", "graphs", "amp.autocast_mode", "amp.grad_scaler")


@functools.cache
def _rows() -> dict[str, Row]:
    return {row.name: row for row in ROWS}


def canonical(name: str) -> str:
    """The shortest name of the same thing: `torch.cuda.memory.memory_allocated` is also in
    `torch.cuda`.
    """
    for part in _PARTS:
        prefix = f"torch.cuda.{part}."
        if name.startswith(prefix):
            parent = "torch.cuda.amp." if part.startswith("amp.") else "torch.cuda."
            short = parent + name.removeprefix(prefix)
            return short if short in _rows() else name
    return name


def find(name: str) -> Row | None:
    """The row of a full name such as "torch.cuda.memory.memory_allocated", if there is one."""
    return _rows().get(canonical(name))


def advice(name: str) -> str:
    """What a person reads behind any name of CUDA, also one without a row."""
    row = find(name)
    while row is None and name.startswith("torch.backends."):
        name = name.rpartition(".")[0]
        row = find(name)
    return row.advice if row else f"look whether {MODULE} has it"


def concerns(name: str) -> bool:
    """Whether a full name of torch belongs to CUDA."""
    return name in _rows() or any(
        name == root or name.startswith(f"{root}.")
        for root in ("torch.cuda", "torch.backends.cuda", "torch.backends.cudnn")
    )
