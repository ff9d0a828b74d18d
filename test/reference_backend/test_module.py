# SPDX-License-Identifier: BSD-3-Clause
"""The functions of torch.puone, where the suite's device-independent checks cannot look."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
import torch

import torch_puone as puone


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    puone.faults.reset()
    puone.set_device(0)
    puone.set_stream(puone.default_stream(0))
    puone.synchronize()


class TestDeviceArguments:
    @pytest.mark.parametrize("device", [1, "puone:1", torch.device("puone", 1)])
    def test_every_spelling_of_a_device_is_understood(
        self, device: int | str | torch.device
    ) -> None:
        with puone.device(device):
            assert puone.current_device() == 1
            assert torch.empty(1, device="puone").device.index == 1
        assert puone.current_device() == 0
        assert puone.current_stream(device).device.index == 1
        puone.set_device(device)
        assert puone.current_device() == 1

    @pytest.mark.parametrize("device", [None, "puone", torch.device("puone"), -1])
    def test_no_index_keeps_the_current_device(
        self, device: int | str | torch.device | None
    ) -> None:
        puone.set_device(1)
        with puone.device(device):
            assert puone.current_device() == 1
            puone.set_device(0)
        # A negative index is a no-op on the way out as well.
        assert puone.current_device() == (0 if device == -1 else 1)

    @pytest.mark.parametrize("device", ["cpu", torch.device("meta")])
    def test_another_device_type_is_refused(self, device: str | torch.device) -> None:
        with pytest.raises(ValueError, match=r"Expected a puone device, but got: (cpu|meta)"):
            puone.device(device)
        with pytest.raises(ValueError, match="Expected a puone device"):
            puone.synchronize(device)

    def test_set_device_wants_an_index(self) -> None:
        for device in (None, "puone"):
            with pytest.raises(ValueError, match="with an index, or an int"):
                puone.set_device(device)

    def test_an_index_that_does_not_exist_is_refused_everywhere(self) -> None:
        for call in (
            puone.set_device,
            puone.synchronize,
            puone.current_stream,
            puone.get_device_name,
            puone.mem_get_info,
            puone.memory_stats,
            puone.get_rng_state,
            puone.Stream,
        ):
            with pytest.raises((RuntimeError, IndexError)):
                call(2)
        assert puone.current_device() == 0

    def test_device_of_follows_tensors_and_ignores_others(self) -> None:
        there = torch.empty(1, device="puone:1")
        with puone.device_of(there):
            assert puone.current_device() == 1
        with puone.device_of(there.untyped_storage()):
            assert puone.current_device() == 1
        with puone.device_of(torch.empty(1)):
            assert puone.current_device() == 0

    def test_an_exception_leaves_the_device_as_it_was(self) -> None:
        with pytest.raises(KeyError), puone.device(1):
            raise KeyError
        assert puone.current_device() == 0


class TestStreams:
    def test_a_stream_is_a_torch_stream_and_equals_it(self) -> None:
        stream = puone.Stream()
        same = torch.Stream(
            stream_id=stream.stream_id,
            device_index=stream.device_index,
            device_type=stream.device_type,
        )
        assert isinstance(stream, torch.Stream)
        assert stream == same
        assert hash(stream) == hash(same)
        assert puone.Stream(0) != puone.Stream(1)

    def test_the_context_restores_device_and_stream(self) -> None:
        elsewhere, here = puone.Stream(1), puone.Stream(0)
        with puone.stream(elsewhere):
            assert puone.current_device() == 1
            assert puone.current_stream() == elsewhere
            with puone.stream(here):
                assert puone.current_device() == 0
                assert puone.current_stream() == here
                assert puone.current_stream(1) == elsewhere
            assert puone.current_device() == 1
        assert puone.current_device() == 0
        assert puone.current_stream(0) == puone.default_stream(0)
        assert puone.current_stream(1) == puone.default_stream(1)

    def test_the_context_may_be_entered_while_it_is_active(self) -> None:
        context = puone.stream(puone.Stream())
        with context, puone.stream(puone.Stream()), context:
            assert puone.current_stream() == context.stream
        assert puone.current_stream() == puone.default_stream()

    def test_torchs_own_stream_works_in_our_functions(self) -> None:
        stream = torch.Stream(device="puone:1")
        with puone.stream(stream):
            assert puone.current_stream() == stream
        with stream:
            assert puone.current_stream() == stream
        event = puone.Event(enable_timing=True)
        event.record(stream)
        event.wait(puone.current_stream(1))
        event.synchronize()
        assert event.query()

    def test_priorities_are_clamped_to_the_range(self) -> None:
        least, greatest = puone.Stream.priority_range()
        assert greatest <= 0 <= least
        assert puone.Stream(priority=greatest - 100).priority == greatest
        assert puone.Stream(priority=least + 100).priority == least

    def test_events_time_what_lies_between_them(self) -> None:
        start, end = puone.Event(enable_timing=True), puone.Event(enable_timing=True)
        start.record()
        puone._sleep_ms(20)
        end.record()
        assert not end.query()
        end.synchronize()
        assert 20 <= start.elapsed_time(end) < 2000

    def test_what_torch_makes_is_an_instance_of_ours(self) -> None:
        assert isinstance(torch.Stream(device="puone"), puone.Stream)
        assert isinstance(torch.accelerator.current_stream(), puone.Stream)
        assert isinstance(torch.Event(device="puone"), puone.Event)
        assert isinstance(puone.Stream().record_event(), puone.Event)
        assert not isinstance(torch.Event(device="cpu"), puone.Event)
        assert not isinstance(puone.Event(), puone.Stream)

    def test_our_events_and_torchs_are_taken_by_each_other(self) -> None:
        ours, theirs = puone.Event(enable_timing=True), torch.Event("puone", enable_timing=True)
        stream = torch.Stream(device="puone")
        stream.record_event(ours)
        stream.record_event(theirs)
        stream.synchronize()
        assert ours.elapsed_time(theirs) >= 0 >= theirs.elapsed_time(ours)

    def test_events_between_processes_are_refused(self) -> None:
        with pytest.raises(NotImplementedError, match="between processes"):
            puone.Event(interprocess=True)

    def test_they_print_what_they_are(self) -> None:
        assert repr(puone.Stream(1)).startswith("<torch.puone.Stream device=puone:1 id=0x")
        assert "device_type=puone" in repr(puone.Event())


@pytest.mark.usefixtures("uncollected")
class TestMemory:
    def test_statistics_move_with_tensors(self) -> None:
        before = puone.memory_allocated()
        tensor = torch.empty(1 << 20, dtype=torch.uint8, device="puone")
        assert puone.memory_allocated() == before + (1 << 20)
        assert puone.memory_reserved() >= puone.memory_allocated()
        assert puone.max_memory_allocated() >= before + (1 << 20)
        del tensor
        assert puone.memory_allocated() == before
        puone.reset_peak_memory_stats()
        assert puone.max_memory_allocated() == before

    def test_flat_and_nested_statistics_agree(self) -> None:
        torch.empty(10, device="puone")
        nested, flat = puone.memory_stats_as_nested_dict(), puone.memory_stats()
        assert flat["allocated_bytes.all.peak"] == nested["allocated_bytes"]["all"]["peak"]
        assert list(flat) == sorted(flat)
        assert not any(isinstance(value, dict) for value in flat.values())
        assert set(flat) >= set(torch.accelerator.memory.memory_stats())

    def test_the_summary_has_a_row_for_everything_it_knows(self) -> None:
        tensor = torch.empty(3 << 20, dtype=torch.uint8, device="puone:1")
        summary = puone.memory_summary(1)
        assert "device 1" in summary
        assert "3.0 MiB" in summary
        assert len(summary.splitlines()) == 3 + 9 * 3
        assert len(puone.memory_summary(1, abbreviated=True).splitlines()) == 3 + 9
        del tensor

    def test_the_snapshot_contains_a_live_tensor(self) -> None:
        tensor = torch.empty(5000, dtype=torch.uint8, device="puone")
        blocks = [block for segment in puone.memory_snapshot() for block in segment["blocks"]]
        mine = [block for block in blocks if block["address"] == tensor.data_ptr()]
        assert [block["state"] for block in mine] == ["active_allocated"]

    def test_a_fraction_limits_the_process(self) -> None:
        total = puone.mem_get_info(1)[1]
        puone.empty_cache()
        puone.set_per_process_memory_fraction(0.01, 1)
        try:
            with pytest.raises(puone.OutOfMemoryError, match="Tried to allocate"):
                torch.empty(total // 50, dtype=torch.uint8, device="puone:1")
        finally:
            puone.set_per_process_memory_fraction(1.0, 1)
        torch.empty(total // 50, dtype=torch.uint8, device="puone:1")

    def test_a_fraction_outside_its_range_is_refused(self) -> None:
        for fraction in (0.0, 1.5, -0.1, float("nan")):
            with pytest.raises(ValueError, match=r"in \(0, 1\]"):
                puone.set_per_process_memory_fraction(fraction)
        with pytest.raises(TypeError):
            puone.set_per_process_memory_fraction("half")  # type: ignore[arg-type]  # on purpose


class TestRandom:
    def test_default_generators_behave_like_a_tuple(self) -> None:
        generators = puone.default_generators
        assert len(generators) == puone.device_count() == len(list(generators))
        assert generators[0] is generators[0]
        assert generators[-1] is generators[1]
        assert generators[:1] == (generators[0],)
        assert [g.device.index for g in generators] == [0, 1]
        with pytest.raises(IndexError, match="2 is not one of them"):
            generators[2]

    def test_states_are_kept_per_device(self) -> None:
        states = puone.get_rng_state_all()
        puone.manual_seed_all(3)
        third = puone.get_rng_state("puone:1")
        puone.manual_seed(4)
        assert torch.equal(puone.get_rng_state(1), third)
        assert not torch.equal(puone.get_rng_state(0), third)
        puone.set_rng_state_all(states)
        assert all(map(torch.equal, puone.get_rng_state_all(), states))

    def test_seed_all_gives_every_device_the_same_seed(self) -> None:
        puone.seed_all()
        assert len({generator.initial_seed() for generator in puone.default_generators}) == 1

    def test_get_generator_is_what_compiled_code_asks_for(self) -> None:
        assert puone._get_generator(torch.device("puone", 1)) is puone.default_generators[1]

    def test_checkpointing_replays_the_devices_random_numbers(self) -> None:
        x = torch.ones(64, device="puone", requires_grad=True)

        def dropped(tensor: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.dropout(tensor, 0.5)

        out = torch.utils.checkpoint.checkpoint(dropped, x, use_reentrant=False)
        out.sum().backward()
        assert x.grad is not None
        assert torch.equal(x.grad.cpu(), out.detach().cpu())


class TestDiagnostics:
    def test_tf32_is_not_supported(self) -> None:
        assert puone.is_tf32_supported() is False

    def test_sleep_returns_before_the_work_is_done(self) -> None:
        stream = puone.current_stream()
        puone._sleep_ms(50)
        assert not stream.query()
        stream.synchronize()
        assert stream.query()

    def test_operators_without_a_kernel_are_counted_until_reset(self) -> None:
        x = torch.rand(4, 4, device="puone")
        puone._reset_fallback_counts()
        torch.linalg.svd(x)
        assert max(puone._fallback_counts().values()) > 0
        puone._reset_fallback_counts()
        assert not any(puone._fallback_counts().values())

    def test_a_planted_shortage_of_memory_is_survived(self) -> None:
        puone.faults.out_of_memory_at(1)
        # Planted once: the allocator empties its cache and asks the driver again.
        tensor = torch.ones(1 << 24, device="puone")
        assert tensor.sum().item() == 1 << 24

    def test_a_planted_kernel_error_surfaces_when_synchronising(self) -> None:
        x = torch.ones(10, device="puone")
        puone.synchronize()
        puone.faults.kernel_error_at(1)
        x.fill_(2)
        with pytest.raises(puone.AcceleratorError, match="fill"):
            puone.synchronize()
        puone.synchronize()

    def test_a_lost_device_stays_lost_until_reset(self) -> None:
        x = torch.ones(10, device="puone:1")
        puone.synchronize(1)
        puone.faults.device_lost(1)
        for _ in range(2):
            with pytest.raises(puone.AcceleratorError):
                puone.synchronize(1)
        puone.synchronize(0)
        puone.faults.reset()
        puone.synchronize(1)
        del x

    def test_a_device_is_lost_inside_a_block_only(self) -> None:
        x = torch.ones(10, device="puone:1")
        with puone.faults.inject(device_lost=1):
            with pytest.raises(puone.AcceleratorError):
                x.sum().item()
            assert torch.ones(2, device="puone:0").sum().item() == 2
        assert x.sum().item() == 10


class TestAmp:
    def test_autocast_accepts_the_dtypes_we_name(self) -> None:
        for dtype in puone.get_amp_supported_dtype():
            with torch.autocast("puone", dtype=dtype):
                assert torch.is_autocast_enabled("puone")
                assert torch.get_autocast_dtype("puone") == dtype

    def test_custom_fwd_and_bwd_are_bound_to_the_device(self) -> None:
        class Double(torch.autograd.Function):
            @staticmethod
            @puone.amp.custom_fwd(cast_inputs=torch.float32)
            def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
                assert x.dtype == torch.float32
                assert not torch.is_autocast_enabled("puone")
                return x * 2

            @staticmethod
            @puone.amp.custom_bwd
            def backward(
                ctx: torch.autograd.function.FunctionCtx, *grads: torch.Tensor
            ) -> torch.Tensor:
                return grads[0] * 2

        x = torch.ones(3, device="puone", dtype=torch.float16, requires_grad=True)
        with torch.autocast("puone"):
            y = Double.apply(x)
        y.sum().backward()
        assert x.grad is not None
        assert x.grad.cpu().tolist() == [2.0] * 3


def test_everything_public_is_listed_and_documented() -> None:
    public = {
        name
        for name, value in vars(puone).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public <= set(puone.__all__)
    for name in puone.__all__:
        value = getattr(puone, name)
        if not inspect.ismodule(value) and name != "default_generators":
            assert inspect.getdoc(value), name


class TestNames:
    def test_dir_shows_the_interface_and_not_what_it_is_made_with(self) -> None:
        public = [name for name in dir(puone) if not name.startswith("_")]
        assert public == sorted(puone.__all__)
        assert {"__version__", "_lazy_init"} <= set(dir(puone))

    def test_an_attribute_error_names_the_module_that_is_installed(self) -> None:
        with pytest.raises(AttributeError, match="module 'torch_puone' has no attribute 'no_such'"):
            torch.puone.no_such  # type: ignore[attr-defined]  # noqa: B018 - it must raise


@pytest.mark.usefixtures("uncollected")
class TestTheDevicesMemory:
    def test_the_memory_fraction_is_that_which_was_set(self) -> None:
        assert puone.get_per_process_memory_fraction(1) == 1.0
        try:
            puone.set_per_process_memory_fraction(0.5, 1)
            assert puone.get_per_process_memory_fraction("puone:1") == 0.5
            assert puone.get_per_process_memory_fraction(0) == 1.0
        finally:
            puone.set_per_process_memory_fraction(1.0, 1)
        with pytest.raises((RuntimeError, IndexError)):
            puone.get_per_process_memory_fraction(2)

    def test_used_memory_is_what_is_not_free(self) -> None:
        puone.empty_cache()
        before = puone.device_memory_used(1)
        held = torch.empty(1 << 22, dtype=torch.uint8, device="puone:1")
        free, total = puone.mem_get_info(1)
        assert puone.device_memory_used(1) == total - free >= before + held.nbytes


def _dtypes() -> list[torch.dtype]:
    found = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    return sorted(found, key=str)


@pytest.mark.parametrize("dtype", _dtypes(), ids=str)
@pytest.mark.filterwarnings("ignore:ComplexHalf", "ignore:Casting complex")
def test_a_type_is_listed_if_it_can_be_filled_and_converted(dtype: torch.dtype) -> None:
    listed = dtype in torch.accelerator.get_device_capability(0)["supported_dtypes"]

    def use() -> None:
        ones = torch.ones(4, dtype=dtype, device="puone")
        assert ones.to(torch.float32).cpu().tolist() == [1.0] * 4
        assert torch.equal(torch.ones(4, device="puone").to(dtype), ones)

    if listed:
        use()
    else:
        with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
            use()
