# SPDX-License-Identifier: BSD-3-Clause
"""torch.puone's graphs, where the suite's device-independent checks cannot look."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch
from torch import Tensor, nn

import torch_puone as puone

DEVICE = torch.device("puone")


@pytest.fixture(autouse=True)
def _restored(uncollected: None) -> Iterator[None]:
    puone.empty_cache()
    yield
    puone.faults.reset()
    puone.synchronize()
    assert not puone.is_current_stream_capturing()


def captured(
    body: Callable[[], Tensor], pool: tuple[int, int] | None = None
) -> tuple[puone.PUONEGraph, Tensor]:
    """A graph of what `body` queues, and its result."""
    graph = puone.PUONEGraph()
    with puone.graph(graph, pool):
        out = body()
    return graph, out


class TestCapture:
    def test_a_graph_is_replayed_on_the_current_stream(self) -> None:
        x = torch.ones(64, device=DEVICE)
        graph, out = captured(lambda: x * 3)
        side = puone.Stream()
        with puone.stream(side):
            x.fill_(5)
            graph.replay()
            seen = out.clone()
        side.synchronize()
        assert seen.tolist() == [15.0] * 64

    def test_streams_that_another_thread_makes_are_not_captured(self) -> None:
        x = torch.zeros(4, device=DEVICE)
        made: list[Tensor] = []

        def work() -> None:
            for _ in range(70):  # more than the pool has
                with puone.stream(puone.Stream()):
                    made.append(torch.zeros(4, device=DEVICE).add_(1))

        def with_a_thread() -> Tensor:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            return x + 1

        captured(with_a_thread)
        with puone.stream(puone.Stream()):
            graph = puone.PUONEGraph()
            graph.capture_begin(capture_error_mode="thread_local")
            with_a_thread()
            graph.capture_end()
        puone.synchronize()
        assert [y.tolist() for y in made] == [[1.0] * 4] * 140

    def test_an_unknown_error_mode_is_refused(self) -> None:
        with pytest.raises(ValueError, match="not one of global, thread_local, relaxed"):
            puone.PUONEGraph().capture_begin(capture_error_mode="strict")

    def test_the_module_knows_that_a_stream_is_captured(self) -> None:
        graph = puone.PUONEGraph()
        with puone.graph(graph):
            inside = puone.is_current_stream_capturing()
            with puone.stream(puone.default_stream()):
                beside = puone.is_current_stream_capturing()
        assert (inside, beside, puone.is_current_stream_capturing()) == (True, False, False)

    def test_nothing_is_captured_before_the_first_use_of_a_device(self, python: object) -> None:
        code = "import torch_puone as p; print(p.is_current_stream_capturing(), p.is_initialized())"
        assert python(code).stdout.split() == ["False", "False"]  # type: ignore[operator]

    def test_the_default_stream_is_refused(self) -> None:
        with pytest.raises(RuntimeError, match="other than the default stream"):
            puone.PUONEGraph().capture_begin()

    def test_one_graph_is_captured_at_a_time(self) -> None:
        x = torch.ones(4, device=DEVICE)
        graph = puone.PUONEGraph()
        with puone.graph(graph):
            out = x + 1
            with (
                puone.stream(puone.Stream()),
                pytest.raises(RuntimeError, match="one is captured at a time"),
            ):
                puone.PUONEGraph().capture_begin()
            out += 1
        graph.replay()
        assert out.tolist() == [3.0] * 4

    def test_a_replay_in_a_capture_is_refused(self) -> None:
        x = torch.ones(4, device=DEVICE)
        inner, _ = captured(lambda: x + 1)
        with (
            pytest.raises(RuntimeError, match="cannot be replayed while a graph is being"),
            puone.graph(puone.PUONEGraph()),
        ):
            inner.replay()

    def test_an_exception_resets_the_graph(self) -> None:
        x = torch.ones(1 << 22, device=DEVICE)
        before = puone.memory_reserved()
        graph = puone.PUONEGraph()
        with contextlib.suppress(KeyError), puone.graph(graph):
            torch.add(x, 1)
            raise KeyError
        assert puone.memory_reserved() == before
        with pytest.raises(RuntimeError, match="has not been captured"):
            graph.replay()
        with puone.graph(graph):
            out = x + 1
        graph.replay()
        assert out[0].item() == 2

    def test_other_threads_are_not_captured(self) -> None:
        x, y = torch.zeros(64, device=DEVICE), torch.zeros(64, device=DEVICE)
        seen: list[float] = []

        def work() -> None:
            seen.append((y + 1).sum().item())
            y.add_(torch.rand(64, device=DEVICE).sign())

        graph = puone.PUONEGraph()
        with puone.graph(graph):
            x.add_(1)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            x.add_(1)
        assert seen == [64.0]
        graph.replay()
        graph.replay()
        assert x.tolist() == [4.0] * 64
        assert y.tolist() == [1.0] * 64

    def test_what_cannot_be_written_to_a_file_says_so(self) -> None:
        if not hasattr(torch.accelerator, "Graph"):
            pytest.skip("torch.accelerator.Graph came with torch 2.13")
        graph = torch.accelerator.Graph()
        with pytest.raises(NotImplementedError, match="cannot write a graph"):
            graph.debug_dump("graph.dot")


class TestRefusals:
    CASES: tuple[tuple[str, Callable[[Tensor], object], str], ...] = (
        ("fallback", lambda x: torch.linalg.svdvals(x.view(8, 8)), "runs on the CPU"),
        ("item", lambda x: x.sum().item(), "ordinary host memory cannot be captured"),
        ("from_host", lambda x: x.copy_(torch.ones(64)), "ordinary host memory"),
        ("from_host_later", lambda x: x.copy_(torch.ones(64), non_blocking=True), "ordinary host"),
        ("pin", lambda x: torch.ones(4).pin_memory(), "pinned memory cannot be allocated"),
        ("synchronize", lambda x: puone.synchronize(), "the device cannot be synchronised"),
        ("stream", lambda x: puone.current_stream().synchronize(), "stream is being captured"),
        ("query", lambda x: puone.current_stream().query(), "stream is being captured"),
        ("event", lambda x: puone.current_stream().record_event().query(), "recorded into a graph"),
        ("seed", lambda x: puone.manual_seed(1), "state of a generator cannot be set"),
        ("state", lambda x: puone.get_rng_state(), "state of a generator cannot be set or read"),
        (
            "other_device",
            lambda x: x.to("puone:1"),
            "wait for an event that was recorded outside of the capture",
        ),
    )

    @pytest.mark.parametrize(("name", "body", "text"), CASES, ids=[case[0] for case in CASES])
    def test_what_cannot_be_captured_is_refused_and_the_capture_goes_on(
        self, name: str, body: Callable[[Tensor], object], text: str
    ) -> None:
        x = torch.ones(64, device=DEVICE)
        y = torch.ones(64, device=DEVICE)
        graph = puone.PUONEGraph()
        with puone.graph(graph):
            y.mul_(2)
            with pytest.raises(RuntimeError, match=text):
                body(x)
            y.mul_(2)
        graph.replay()
        assert y.tolist() == [4.0] * 64
        assert x.tolist() == [1.0] * 64

    def test_an_optimizer_that_is_not_capturable_is_refused(self) -> None:
        weight = torch.ones(4, device=DEVICE, requires_grad=True)
        weight.grad = torch.ones_like(weight)
        optimizer = torch.optim.Adam([weight], fused=True)
        optimizer.step()
        graph = puone.PUONEGraph()
        refused = pytest.raises(RuntimeError, match="Adam cannot be captured with capturable=False")
        with refused, puone.graph(graph):
            optimizer.step()
        optimizer.step()  # not captured, it steps as before

    def test_a_number_is_captured_as_it_is(self) -> None:
        x = torch.ones(4, device=DEVICE)
        number = torch.tensor(3.0)
        graph, out = captured(lambda: x * torch.tensor(2.0, device=DEVICE) + number.to(DEVICE))
        number.fill_(100)
        graph.replay()
        assert out.tolist() == [5.0] * 4

    def test_a_fault_of_a_kernel_surfaces_after_the_replay(self) -> None:
        x = torch.ones(64, device=DEVICE)
        graph, out = captured(lambda: x + 1)
        puone.synchronize()
        puone.faults.kernel_error_at(1)
        graph.replay()
        with pytest.raises(RuntimeError, match="injected"):
            puone.synchronize()
        graph.replay()
        assert out.tolist() == [2.0] * 64

    def test_running_out_of_memory_ends_the_capture(self) -> None:
        x = torch.ones(1 << 20, device=DEVICE)
        graph = puone.PUONEGraph()
        with pytest.raises(torch.OutOfMemoryError), puone.graph(graph):
            torch.empty(1 << 40, dtype=torch.uint8, device=DEVICE)
        with puone.graph(graph):
            out = x + 1
        graph.replay()
        assert out[0].item() == 2


class TestMemory:
    def test_a_pool_is_kept_until_its_last_graph_is_reset(self) -> None:
        x = torch.ones(1 << 22, device=DEVICE)
        puone.empty_cache()
        before = puone.memory_reserved()
        pool = puone.graph_pool_handle()
        first, y = captured(lambda: x + 1, pool)
        second, z = captured(partial(torch.add, y, 1), pool)
        assert first.pool() == second.pool() == pool
        del y, z
        held = puone.memory_reserved()
        assert held > before
        first.reset()
        puone.empty_cache()
        assert puone.memory_reserved() == held
        second.reset()
        assert puone.memory_reserved() == before

    def test_a_result_outlives_its_graph(self) -> None:
        x = torch.ones(1 << 22, device=DEVICE)
        puone.empty_cache()
        before = puone.memory_reserved()
        graph, out = captured(lambda: x + 1)
        graph.replay()
        del graph
        assert out[-1].item() == 2
        assert puone.memory_reserved() > before
        del out
        puone.empty_cache()
        assert puone.memory_reserved() == before

    def test_memory_of_a_capture_is_reused_in_it(self) -> None:
        x = torch.ones(1 << 20, device=DEVICE)

        def chain() -> Tensor:
            y = x
            for _ in range(20):
                y = y * 2
            return y

        puone.empty_cache()
        before = puone.memory_reserved()
        graph, out = captured(chain)
        assert puone.memory_reserved() - before <= 5 * x.nbytes + (20 << 20)
        graph.replay()
        assert out[0].item() == 2.0**20

    def test_statistics_count_what_is_in_a_pool(self) -> None:
        x = torch.ones(1 << 20, device=DEVICE)
        before = puone.memory_allocated()
        graph, out = captured(lambda: x + 1)
        states = 512  # of random numbers
        assert puone.memory_allocated() - before == out.nbytes + states
        del out
        assert puone.memory_allocated() == before + states
        del graph
        assert puone.memory_allocated() == before

    def test_pinned_memory_of_a_graph_is_kept(self) -> None:
        x = torch.zeros(64, device=DEVICE)
        source = torch.full((64,), 3.0).pin_memory()
        graph = puone.PUONEGraph()
        with puone.graph(graph):
            x.copy_(source, non_blocking=True)
            del source
        others = [torch.full((64,), float(i)).pin_memory() for i in range(8)]
        graph.replay()
        assert x.tolist() == [3.0] * 64
        del others

    def test_pinned_memory_may_be_freed_in_a_capture(self) -> None:
        stream = puone.Stream()
        x = torch.zeros(64, device=DEVICE)
        for value in (1.0, 2.0):
            source = torch.full((64,), value).pin_memory()
            with puone.stream(stream):
                x.copy_(source, non_blocking=True)
            graph = puone.PUONEGraph()
            with puone.graph(graph, stream=stream):
                x.add_(1)
                del source
            with puone.stream(stream):
                graph.replay()
            fresh = [torch.full((64,), 9.0).pin_memory() for _ in range(8)]
            stream.synchronize()
            assert x.tolist() == [value + 1] * 64
            del fresh


class TestRandomNumbers:
    def test_replays_on_two_streams_draw_in_the_order_of_the_calls(self) -> None:
        x = torch.zeros(256, device=DEVICE)
        puone.manual_seed(4)
        expected = [torch.rand_like(x).cpu() for _ in range(4)]
        graph, out = captured(lambda: torch.rand_like(x))
        streams = [puone.Stream(), puone.Stream()]
        puone.manual_seed(4)
        drawn = []
        for turn in range(4):
            with puone.stream(streams[turn % 2]):
                puone._sleep_ms(5)
                streams[turn % 2].wait_stream(streams[(turn + 1) % 2])
                graph.replay()
                drawn.append(out.clone())
        puone.synchronize()
        for actual, wanted in zip(drawn, expected, strict=True):
            assert torch.equal(actual.cpu(), wanted)

    def test_a_generator_lives_as_long_as_the_graph(self) -> None:
        x = torch.zeros(64, device=DEVICE)
        generator = torch.Generator(DEVICE).manual_seed(1)
        graph, out = captured(partial(x.uniform_, generator=generator))
        del generator
        graph.replay()
        first = out.cpu()
        graph.replay()
        assert not torch.equal(first, out.cpu())

    def test_two_graphs_take_turns(self) -> None:
        x = torch.zeros(64, device=DEVICE)
        puone.manual_seed(2)
        expected = [f(x).cpu() for f in (torch.rand_like, torch.randn_like) * 2]
        rand, out_rand = captured(lambda: torch.rand_like(x))
        randn, out_randn = captured(lambda: torch.randn_like(x))
        puone.manual_seed(2)
        drawn = []
        for _ in range(2):
            rand.replay()
            drawn.append(out_rand.clone())
            randn.replay()
            drawn.append(out_randn.clone())
        assert [torch.equal(a.cpu(), b) for a, b in zip(drawn, expected, strict=True)] == [True] * 4


class Tower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.second(torch.relu(self.first(x)))
        return result


def tower() -> Tower:
    torch.manual_seed(0)
    return Tower().to(DEVICE)


def gradients(module: nn.Module, x: Tensor) -> list[Tensor]:
    module.zero_grad(set_to_none=True)
    module(x).square().sum().backward()
    return [p.grad.cpu() for p in module.parameters() if p.grad is not None]


class TestGraphedCallables:
    def test_a_module_computes_what_it_computed(self) -> None:
        plain, module = tower(), tower()
        sample = torch.zeros(4, 8, device=DEVICE)
        graphed = puone.make_graphed_callables(module, (sample,))
        assert graphed is module
        for seed in range(3):
            x = torch.randn(4, 8, generator=torch.Generator().manual_seed(seed)).to(DEVICE)
            assert torch.equal(module(x).detach().cpu(), plain(x).detach().cpu())
            for actual, wanted in zip(gradients(module, x), gradients(plain, x), strict=True):
                assert torch.equal(actual, wanted)

    def test_gradients_reach_what_is_in_front(self) -> None:
        plain, module = tower(), tower()
        sample = torch.zeros(4, 8, device=DEVICE, requires_grad=True)
        puone.make_graphed_callables(module, (sample,))
        results = []
        for one in (plain, module):
            x = torch.ones(4, 8, device=DEVICE, requires_grad=True)
            one(x * 2).sum().backward()
            assert x.grad is not None
            results.append(x.grad.cpu())
        assert torch.equal(*results)

    def test_gradients_accumulate(self) -> None:
        layer = nn.Linear(1, 1, bias=False).to(DEVICE)
        layer.weight.data.fill_(1)
        first = torch.full((1, 1), 1.0, device=DEVICE, requires_grad=True)
        graphed = puone.make_graphed_callables(
            layer, (torch.zeros_like(first, requires_grad=True),)
        )
        graphed(first).sum().backward()
        assert first.grad is not None
        kept = first.grad
        layer.weight.data.fill_(3)
        graphed(torch.full((1, 1), 10.0, device=DEVICE, requires_grad=True)).sum().backward()
        assert layer.weight.grad is not None
        assert (layer.weight.grad.item(), kept.item()) == (11.0, 1.0)

    def test_a_view_of_the_sample_is_an_input_like_any_other(self) -> None:
        sample = torch.arange(9.0, device=DEVICE).view(3, 3)
        expected = sample.cpu().t()
        graphed = puone.make_graphed_callables(lambda a: a * 1, (sample,))
        assert torch.equal(graphed(sample.t()).cpu(), expected)

    def test_nothing_is_read_before_it_is_written(self) -> None:
        sample = torch.zeros(4, 8, device=DEVICE, requires_grad=True)
        with puone.sanitizer.watch("raise"):
            graphed = puone.make_graphed_callables(tower(), (sample,))
            graphed(torch.ones_like(sample)).sum().backward()

    def test_the_other_mode_runs_without_a_graph(self) -> None:
        module = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.9)).to(DEVICE)
        x = torch.ones(4, 8, device=DEVICE)
        puone.make_graphed_callables(module, (torch.zeros(4, 8, device=DEVICE),))
        assert (module(x) == 0).any().item()
        module.eval()
        other_shape = torch.ones(2, 8, device=DEVICE)
        assert torch.equal(module(other_shape).cpu(), module[0](other_shape).cpu())

    def test_several_functions_share_a_pool(self) -> None:
        x = torch.ones(4, device=DEVICE, requires_grad=True)
        double, square = puone.make_graphed_callables(
            (lambda a: a * 2, lambda a: a * a),
            (
                (torch.zeros(4, device=DEVICE, requires_grad=True),),
                (torch.zeros(4, device=DEVICE, requires_grad=True),),
            ),
        )
        square(double(x)).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [8.0] * 4

    def test_what_cannot_be_graphed_is_refused(self) -> None:
        x = torch.zeros(4, 8, device=DEVICE)
        hooked = tower()
        hooked.register_forward_hook(lambda module, args, out: None)
        with pytest.raises(RuntimeError, match="hooks"):
            puone.make_graphed_callables(hooked, (x,))
        with pytest.raises(TypeError, match="only tensors"):
            puone.make_graphed_callables(tower(), (x, 1))  # type: ignore[arg-type]
        with (
            torch.autocast("puone"),
            pytest.raises(RuntimeError, match="cache_enabled=False"),
        ):
            puone.make_graphed_callables(tower(), (x,))
