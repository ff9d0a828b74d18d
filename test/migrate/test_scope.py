# SPDX-License-Identifier: BSD-3-Clause
"""In a block of cuda_as, code for CUDA runs on puone; behind it, all is as before."""

from __future__ import annotations

import gc
import io
import sys
import threading
import types
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import torch

import torch_puone
from torch_puone.migrate import CudaUse, NoEquivalent, cuda_as


@contextmanager
def migrated(device: str | None = "puone") -> Iterator[list[str]]:
    """A block, and the messages of its warnings."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with cuda_as(device):
                yield messages
        finally:
            messages += [str(w.message) for w in caught if issubclass(w.category, CudaUse)]


def substituted() -> list[Any]:
    """What a block substitutes, as it is now."""
    return [
        *(sys.modules[name] for name in ("torch.cuda", "torch.cuda.amp", "torch.backends.cudnn")),
        *(torch.cuda, torch.backends.cudnn, torch.Generator, torch.Stream, torch.Event),
        *(torch.load, torch.serialization.load, torch.nn.Module.cuda, threading.Thread.start),
        *(torch.amp.autocast.__init__, torch.amp.GradScaler.__init__),
        *(vars(torch.UntypedStorage).get("cuda"), torch.distributed.init_process_group),
    ]


def test_all_is_as_before_at_the_end_of_a_block() -> None:
    before = substituted()
    with migrated():
        inside = substituted()
    assert all(now is then for now, then in zip(substituted(), before, strict=True))
    assert not any(now is then for now, then in zip(inside, before, strict=True))
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(1, device="cuda")


def test_all_is_as_before_after_an_exception() -> None:
    before = substituted()
    with pytest.raises(ZeroDivisionError), migrated():
        raise ZeroDivisionError
    assert all(now is then for now, then in zip(substituted(), before, strict=True))


def test_an_unknown_device_leaves_nothing_substituted() -> None:
    before = substituted()
    with (
        pytest.raises(RuntimeError, match="there is no device type 'nochip' here"),
        cuda_as("nochip"),
    ):
        pass
    assert all(now is then for now, then in zip(substituted(), before, strict=True))


def test_tensors_factories_and_devices_move_to_the_device() -> None:
    with migrated():
        made = [
            torch.ones(2, device="cuda"),
            torch.ones(2).cuda(),
            torch.ones(2).cuda("cuda:0", non_blocking=True),
            torch.ones(2).cuda(0),
            torch.ones(2).to("cuda"),
            torch.ones(2).to(torch.device("cuda", 0)),
            torch.tensor([1.0, 1.0], device=torch.device("cuda:0")),
            torch.ones(2, pin_memory=True).to(device="cuda", non_blocking=True),
            torch.nn.Linear(1, 1, device="cuda").weight,
            torch.nn.Linear(1, 1).cuda().weight,
            torch.ones(2).type("torch.cuda.FloatTensor"),
            torch.cuda.FloatTensor([1, 1]),  # type: ignore[attr-defined]
            torch.rand(2, generator=torch.Generator("cuda"), device="cuda"),
        ]
        assert all(tensor.device.type == "puone" for tensor in made)
        assert all(tensor.is_cuda for tensor in made)
        assert not torch.ones(2).is_cuda
        assert torch.ones(2).untyped_storage().cuda().device.type == "puone"
        packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2)]).cuda()
        assert packed.is_cuda
        assert packed.data.device.type == "puone"


def test_the_index_of_a_device_stays() -> None:
    with migrated():
        assert torch.device("cuda:1") == torch.device("puone", 1)
        assert torch.ones(1).cuda(1).device.index == 1
        with torch.cuda.device(1):
            assert torch.cuda.current_device() == 1
            assert torch.ones(1, device="cuda").device.index == 1
        with torch.cuda.device("cuda:0"):
            assert torch.cuda.current_device() == 0


def test_functions_of_torch_cuda_are_those_of_the_device() -> None:
    with migrated() as messages:
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == torch.accelerator.device_count()
        assert torch.cuda.get_device_name(0) == torch_puone.get_device_name(0)
        kept = torch.ones(1000, device="cuda")
        torch.cuda.synchronize("cuda:0")
        assert torch.cuda.memory_allocated(device="cuda:0") >= kept.nbytes
        assert torch.cuda.memory.max_memory_allocated() >= kept.nbytes
        assert len(torch.cuda.mem_get_info()) == 2
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.empty_cache()
        state = torch.cuda.get_rng_state("cuda")
        first = torch.rand(3, device="cuda")
        torch.cuda.set_rng_state(state, device="cuda:0")
        assert torch.equal(first, torch.rand(3, device="cuda"))
        torch.cuda.manual_seed_all(5)
        assert torch.cuda.initial_seed() == 5
    assert "torch.cuda.synchronize: write torch.accelerator.synchronize" in messages
    assert "torch.cuda.get_device_name: write torch.get_device_module().get_device_name" in messages


def test_functions_are_the_same_each_time_and_values_are_those_of_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with migrated():
        assert torch.cuda.synchronize is torch.cuda.synchronize
        assert torch.cuda.Stream is torch.cuda.Stream
        pair: list[Any] = [(1,), (1, 2)]
        for generators in pair:
            monkeypatch.setattr(torch_puone, "default_generators", generators)
            assert torch.cuda.default_generators == generators


def test_streams_and_events_order_work() -> None:
    with migrated():
        stream = torch.cuda.Stream()
        assert isinstance(stream, torch.cuda.Stream)
        assert isinstance(stream, torch.Stream)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        value = torch.zeros(1, device="cuda")
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            assert torch.cuda.current_stream() == stream
            start.record()
            value += 1
            end.record()
        torch.cuda.current_stream().wait_event(end)
        end.synchronize()
        assert start.elapsed_time(end) >= 0
        assert value.item() == 1
        with torch.cuda.stream(None):
            pass
        with torch.Stream("cuda"):
            pass


def test_a_graph_is_captured_and_replayed() -> None:
    with migrated():
        value = torch.zeros(1, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            value += 1
        graph.replay()
        graph.replay()
        assert value.item() == 2


def test_the_neutral_graph_is_captured_where_the_backend_has_no_class_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(torch_puone, "PUONEGraph")
    with migrated():
        value = torch.zeros(1, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
            value += 1
        graph.replay()
        torch.cuda.synchronize()
        assert value.item() == 1
        of_a_pool: Any = {"pool": (0, 1)}
        with (
            pytest.raises(NoEquivalent, match="graph with a pool or options has no equivalent"),
            torch.cuda.graph(graph, **of_a_pool),
        ):
            pass


def test_mixed_precision_runs_by_all_its_names() -> None:
    model, x = torch.nn.Linear(2, 1), torch.ones(1, 2)
    with migrated():
        from torch.cuda import amp
        from torch.cuda.amp import GradScaler, autocast

        model, x = model.cuda(), x.cuda()
        for context in (autocast(), amp.autocast(), torch.autocast("cuda", dtype=torch.float16)):
            with context:
                assert model(x).dtype is torch.float16
        with autocast(enabled=False):
            assert model(x).dtype is torch.float32
        for scaler in (GradScaler(), torch.amp.GradScaler(), torch.amp.GradScaler("cuda")):
            assert isinstance(scaler, GradScaler)
            assert scaler.is_enabled()
            scaler.scale(model(x).sum()).backward()
        with torch.autocast("cuda"):
            assert torch.is_autocast_enabled("cuda")

        class Double(torch.autograd.Function):
            @staticmethod
            @amp.custom_fwd(cast_inputs=torch.float32)
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                return x * 2

            @staticmethod
            @amp.custom_bwd
            def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
                return gradient * 2

        with autocast():
            assert Double.apply(x.half()).dtype is torch.float32


def test_hooks_and_functions_of_a_backward_pass_are_in_the_block() -> None:
    class Moved(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * torch.ones(1, device="cuda")

    with migrated():
        x = torch.ones(1, device="cuda", requires_grad=True)
        Moved.apply(x).sum().backward()
        assert x.grad is not None
        assert x.grad.is_cuda
        y = torch.ones(1, device="cuda", requires_grad=True)
        y.register_hook(lambda gradient: gradient + torch.ones(1, device="cuda"))
        y.sum().backward()
        assert y.grad is not None
        assert y.grad.item() == 2


def saved(value: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "location",
    ["cuda", "cuda:0", torch.device("cuda"), {"cpu": "cuda:0"}, lambda storage, _: storage.cuda()],
)
def test_saved_tensors_are_loaded_to_the_device(location: Any) -> None:
    with migrated():
        loaded = torch.load(saved(torch.arange(3)), map_location=location)
        assert loaded.device.type == "puone"
        assert loaded.tolist() == [0, 1, 2]


def test_tensors_that_were_saved_on_a_cuda_device_are_loaded_to_the_device() -> None:
    with migrated(), pytest.MonkeyPatch.context() as patch:
        # A file of a CUDA device differs from one of the CPU in this tag.
        patch.setattr(torch.serialization, "location_tag", lambda storage: "cuda:0")
        loaded = torch.load(saved(torch.arange(3)))
        assert loaded.device.type == "puone"


def test_a_data_loader_pins_for_the_device() -> None:
    with migrated():
        data = torch.utils.data.TensorDataset(torch.ones(2))
        loader = torch.utils.data.DataLoader(data, pin_memory=True, pin_memory_device="cuda")
        assert loader.pin_memory_device == "puone"


def test_settings_of_cuda_libraries_are_accepted_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # PyTorch's own test utilities, which another test may have imported, forbid to set these.
    flags = torch.backends.flags_frozen.__globals__
    monkeypatch.setitem(flags, "__allow_nonbracketed_mutation_flag", True)
    before = torch.backends.cudnn.benchmark
    with migrated() as messages:
        torch.backends.cudnn.benchmark = True
        assert torch.backends.cudnn.benchmark is True
        torch.backends.cudnn.deterministic = True
        torch.backends.cuda.matmul.allow_tf32 = False
    assert "torch.backends.cudnn.benchmark: has no effect on other devices" in messages
    [deterministic] = [text for text in messages if "cudnn.deterministic" in text]
    assert "torch.use_deterministic_algorithms(True)" in deterministic
    assert any("torch.backends.cuda.matmul" in text for text in messages)
    torch.backends.cudnn.benchmark = before
    torch.backends.cudnn.deterministic = False


@pytest.mark.parametrize("name", ["utilization", "cudart", "MemPool", "nccl", "get_arch_list"])
def test_what_has_no_equivalent_raises_an_error_that_names_it(name: str) -> None:
    with migrated():
        with pytest.raises(NoEquivalent, match=f"torch.cuda.{name} has no equivalent on puone: "):
            getattr(torch.cuda, name)
        assert not hasattr(torch.cuda, name)
        assert getattr(torch.cuda, name, None) is None


def test_what_cuda_does_not_have_is_an_ordinary_attribute_error() -> None:
    with migrated() as messages:
        with pytest.raises(AttributeError, match="has no attribute 'no_such_name'") as caught:
            torch.cuda.no_such_name  # type: ignore[attr-defined]  # noqa: B018
        assert not isinstance(caught.value, NoEquivalent)
    assert not messages


def test_exceptions_are_caught_by_their_cuda_names() -> None:
    with migrated():
        try:
            raise torch.OutOfMemoryError
        except torch.cuda.OutOfMemoryError:
            pass


def test_each_line_warns_once_for_each_use() -> None:
    with migrated() as messages:
        for _ in range(3):
            torch.cuda.synchronize()
        torch.cuda.synchronize()
    assert messages == ["torch.cuda.synchronize: write torch.accelerator.synchronize"] * 2


def test_a_warning_has_the_line_of_the_user() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with cuda_as("puone"):
            torch.nn.Sequential(torch.nn.Linear(1, 1)).cuda()
    [warning] = caught
    line = test_a_warning_has_the_line_of_the_user.__code__.co_firstlineno + 4
    assert (warning.filename, warning.lineno) == (__file__, line)
    assert (
        str(warning.message)
        == "Module.cuda(): write .to(device=torch.accelerator.current_accelerator())"
    )


def test_a_warning_of_a_storage_says_the_keyword_that_its_method_needs() -> None:
    with migrated() as messages:
        torch.ones(1).untyped_storage().cuda(1)
    assert "Storage.cuda(): write .to(device=1)" in messages


def test_a_program_may_turn_the_warnings_into_errors() -> None:
    before = substituted()
    with warnings.catch_warnings():
        warnings.simplefilter("error", CudaUse)
        with pytest.raises(CudaUse), cuda_as("puone"):
            torch.cuda.synchronize()
    assert all(now is then for now, then in zip(substituted(), before, strict=True))


def test_pytorch_sees_the_real_torch_cuda() -> None:
    code = compile("def answer():\n    return torch.cuda.is_available()", "inner.py", "exec")
    inner = types.ModuleType("torch._something.inner")
    user = types.ModuleType("some_package.inner")
    for module in (inner, user):
        module.__dict__["torch"] = torch
        exec(code, module.__dict__)
    with migrated() as messages:
        assert inner.answer() is False
        assert user.answer() is True
        # It has its own idea of which accelerator there is.
        assert torch.optim.SGD([torch.ones(1, device="cuda", requires_grad=True)]) is not None
    assert len([text for text in messages if "is_available" in text]) == 1


def test_aliases_and_getattr_lead_to_the_device() -> None:
    with migrated() as messages:
        import torch.backends.cudnn as cudnn
        import torch.cuda as tc
        from torch.cuda import synchronize
        from torch.cuda.amp import autocast

        assert tc.is_available()
        assert getattr(torch.cuda, "device_" + "count")() > 0
        synchronize()
        assert cudnn.__name__ == "torch.backends.cudnn"
        with autocast():
            pass
    assert [text.partition(":")[0] for text in messages] == [
        "torch.cuda.synchronize",
        "torch.cuda.amp.autocast",
        "torch.cuda.is_available",
        "torch.cuda.device_count",
        "torch.cuda.synchronize",
        "torch.cuda.amp.autocast",
    ]


def test_what_a_program_keeps_is_the_real_thing_behind_the_block() -> None:
    with migrated():
        import torch.cuda as tc
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tc.is_available() is torch.cuda.is_available()
        assert tc.device_count is torch.cuda.device_count


def test_what_a_program_replaces_in_torch_cuda_ends_with_the_block() -> None:
    before = torch.cuda.is_available
    with migrated():
        torch.cuda.is_available = lambda: False
        assert not torch.cuda.is_available()
    assert torch.cuda.is_available is before


def test_strings_that_only_look_like_a_device_stay() -> None:
    with migrated() as messages:
        assert {"cuda": 1}["cuda"] == 1
        assert "cuda".upper() == "CUDA"
        assert torch.device("cpu").type == "cpu"
        torch.ones(1, device="cpu")
    assert not messages


def test_blocks_may_be_nested() -> None:
    before = substituted()
    with migrated():
        with cuda_as("puone"), cuda_as():
            assert torch.ones(1, device="cuda").is_cuda
        assert torch.ones(1, device="cuda").is_cuda
        assert torch.cuda.is_available()
    assert all(now is then for now, then in zip(substituted(), before, strict=True))


def test_a_nested_block_for_another_device_is_refused() -> None:
    with migrated():
        taken = "'puone' takes the place of CUDA devices already; 'cpu' cannot"
        with pytest.raises(RuntimeError, match=taken), cuda_as("cpu"):
            pass
        assert torch.ones(1, device="cuda").is_cuda


def test_threads_that_are_started_in_a_block_are_in_it() -> None:
    found: list[str] = []
    with migrated() as messages:
        thread = threading.Thread(target=lambda: found.append(torch.ones(1).cuda().device.type))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            found.append(pool.submit(lambda: torch.ones(1, device="cuda").device.type).result())
    assert found == ["puone", "puone"]
    assert len(messages) == 2


def test_a_thread_that_was_started_before_may_enter_the_block_itself() -> None:
    entered, leave = threading.Event(), threading.Event()
    found: list[bool] = []

    def work() -> None:
        assert entered.wait(60)
        with cuda_as("puone"):
            found.append(torch.ones(1, device="cuda").is_cuda)
            assert leave.wait(60)
            # The block that was open first is closed by now; this one is still open.
            found.append(torch.ones(1, device="cuda").is_cuda and torch.cuda.is_available())

    before = substituted()
    thread = threading.Thread(target=work)
    thread.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CudaUse)
        with cuda_as("puone"):
            entered.set()
            while not found:
                pass
        leave.set()
        thread.join()
    assert found == [True, True]
    assert all(now is then for now, then in zip(substituted(), before, strict=True))


def test_the_process_group_of_the_device_takes_the_place_of_nccl() -> None:
    with migrated() as messages:
        assert torch.distributed.is_nccl_available()
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
        try:
            assert torch.distributed.get_backend() == "pccl"
            value = torch.ones(1, device="cuda")
            torch.distributed.all_reduce(value)
            assert value.item() == 1
            assert torch.distributed.new_group([0], backend="cpu:gloo,cuda:nccl") is not None
        finally:
            torch.distributed.destroy_process_group()
    assert any(text.startswith('the process group backend "nccl": ') for text in messages)


def test_gloo_serves_the_tensors_of_the_device_as_those_of_cuda() -> None:
    with migrated():
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        try:
            for device in ("cpu", "cuda"):
                value = torch.ones(1, device=device)
                torch.distributed.all_reduce(value)
                assert value.item() == 1
        finally:
            torch.distributed.destroy_process_group()


def test_compiled_functions_are_translated_without_breaks_of_the_graph() -> None:
    @torch.compile(backend="eager", fullgraph=True)
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * torch.full((1,), 2.0, device="cuda")

    with migrated():
        assert twice(torch.ones(1, device="cuda")).tolist() == [2]
    torch.compiler.reset()


def test_a_device_without_process_group_backend_says_so() -> None:
    with migrated(), pytest.MonkeyPatch.context() as patch:
        patch.delitem(torch.distributed.Backend.default_device_backend_map, "puone")
        assert not torch.distributed.is_nccl_available()
        with pytest.raises(NoEquivalent, match='backend "nccl" has no equivalent on puone'):
            torch.distributed.init_process_group("nccl", rank=0, world_size=1)


def test_ranges_of_nvtx_are_ranges_of_the_profiler() -> None:
    with (
        migrated(),
        torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen,
    ):
        with torch.cuda.nvtx.range("outer {}", 1):
            torch.cuda.nvtx.range_push("inner")
            torch.cuda.nvtx.mark("here")
            assert torch.cuda.nvtx.range_pop() == 0
        assert torch.cuda.nvtx.range_pop() == -1
    assert {"outer 1", "inner", "here"} <= {event.name for event in seen.events()}


def test_the_profiler_records_the_device_for_cuda() -> None:
    activity = torch.profiler.ProfilerActivity
    with migrated() as messages:
        profiler = torch.profiler.profile(activities=[activity.CPU, activity.CUDA])
        assert activity.PrivateUse1 in profiler.activities
        assert activity.CUDA not in profiler.activities
    assert any("supported_activities" in text for text in messages)


def test_the_older_profiler_records_the_device_for_cuda() -> None:
    with migrated() as messages:
        assert torch.autograd.profiler.profile(use_cuda=True).use_device == "puone"
        assert torch.autograd.profiler.profile().use_device is None
    assert len([text for text in messages if text.startswith("profile(use_cuda=True)")]) == 1


def test_the_default_tensor_type_is_the_device_and_dtype() -> None:
    with migrated():
        try:
            torch.set_default_tensor_type(torch.cuda.DoubleTensor)  # type: ignore[attr-defined]
            assert torch.ones(1).device.type == "puone"
            assert torch.ones(1).dtype is torch.float64
        finally:
            torch.set_default_device(None)
            torch.set_default_dtype(torch.float32)


def test_another_device_type_takes_the_place_of_cuda_too() -> None:
    with migrated("cpu"):
        x = torch.ones(2, device="cuda")
        assert x.device.type == "cpu"
        assert x.is_cuda
        assert torch.cuda.is_available()
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.current_stream()):
            pass
        for name in ("CUDAGraph", "graph", "memory_allocated", "get_device_name"):
            assert not hasattr(torch.cuda, name)
        with torch.cuda.amp.autocast(dtype=torch.bfloat16):
            assert (x.view(1, 2) @ x.view(2, 1)).dtype is torch.bfloat16


def test_a_block_can_be_entered_often() -> None:
    for _ in range(20):
        with migrated():
            torch.cuda.is_available()
    gc.collect()
    assert sum(type(one).__name__ == "CudaMode" for one in gc.get_objects()) <= 1
