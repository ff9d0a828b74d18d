# SPDX-License-Identifier: BSD-3-Clause
"""Graphs: work that torch.accelerator.Graph captures from a stream, and replays."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import Device, check, noise, raised, while_held
from torch_conformance.checks._random_state import rng_state

N = 1 << 12
BYTES = 32 << 20


@contextmanager
def _capturing(
    dev: Device, *, pool: tuple[int, int] | None = None, stream: torch.Stream | None = None
) -> Iterator[Any]:
    """Capture what the block queues on its current stream, and give the graph."""
    graph = torch.accelerator.Graph(pool=pool)
    with stream or dev.stream(), graph:
        yield graph


def _x(dev: Device) -> Tensor:
    return noise((N,)).to(dev.device())


# ---- what a replay does ------------------------------------------------------------------------

_WORK: dict[str, Callable[[Tensor], Tensor]] = {
    "elementwise": lambda x: x * 3 + 1,
    "copy": lambda x: x.clone(),
    "transposed": lambda x: x.view(64, -1).t().contiguous(),
    "cast": lambda x: x.int(),
    "fill": lambda x: torch.full_like(x, 7.0),
    "zero": lambda x: torch.zeros_like(x),
    "arange": lambda x: torch.arange(x.numel(), device=x.device),
    "sum": lambda x: x.view(64, -1).sum(1),
    "softmax": lambda x: x.view(64, -1).softmax(1),
    "matmul": lambda x: x.view(64, -1) @ x.view(-1, 64),
    "index": lambda x: x[(x > 0).long()],
    "sort": lambda x: x.sort().values,
    "cat": lambda x: torch.cat([x, -x]),
    "where": lambda x: torch.where(x > 0, x, x.new_zeros(())),
}


@check("graph/work", "GRAPH-001", needs=("graphs",), cases=_WORK)
def work_runs_at_each_replay_and_not_before(dev: Device, case: str) -> None:
    """What is captured does not run; each replay computes what an ordinary call would."""
    x = _x(dev)
    _WORK[case](x)
    out = torch.full_like(_WORK[case](x), -1)
    with _capturing(dev) as graph:
        out.copy_(_WORK[case](x))
    before = dev.cpu(out)
    assert bool((before == -1).all()), "the work ran while it was captured"
    for scale in (1.0, -2.0, 0.5):
        x.mul_(scale)
        expected = dev.cpu(_WORK[case](x))
        out.fill_(-1)
        graph.replay()
        dev.assert_equal(out, expected)


@check("graph/order", "GRAPH-001", needs=("graphs",))
def work_keeps_its_order(dev: Device) -> None:
    """Pieces of work that overwrite each other's results run in the order of their calls."""
    x = _x(dev)
    expected = dev.cpu(x)
    with _capturing(dev) as graph:
        for step in range(20):
            x.mul_(0.5)
            x.add_(step)
    for _ in range(3):
        graph.replay()
        for step in range(20):
            expected.mul_(0.5)
            expected.add_(step)
    dev.assert_equal(x, expected)


@check("graph/arguments", "GRAPH-002", needs=("graphs",))
def arguments_are_those_of_the_capture(dev: Device) -> None:
    """Numbers, sizes and addresses are kept for each piece of work, whatever is called later."""
    outs = [torch.zeros(8, device=dev.device()) for _ in range(64)]
    x = torch.ones(8, device=dev.device())
    with _capturing(dev) as graph:
        for i, out in enumerate(outs):
            torch.add(x[: 1 + i % 8], x[: 1 + i % 8], alpha=i, out=out[: 1 + i % 8])
    other = torch.zeros(8, device=dev.device())
    for i in range(64):
        torch.add(other, other, alpha=1000 + i, out=other)
    graph.replay()
    for i, out in enumerate(outs):
        row = [1.0 + i] * (1 + i % 8)
        assert dev.cpu(out).tolist() == row + [0.0] * (8 - len(row)), f"piece {i} of the work"


@check("graph/inputs", "GRAPH-003", needs=("graphs",))
def inputs_are_updated_in_place(dev: Device) -> None:
    """A replay reads its inputs as they are then, and writes to the same outputs."""
    x, weight = _x(dev), _x(dev)
    with _capturing(dev) as graph:
        out = x * weight
    for step in range(3):
        x.fill_(step)
        weight.copy_(torch.full((N,), 10.0))
        graph.replay()
        dev.assert_equal(out, torch.full((N,), 10.0 * step))


@check("graph/stream_order", "GRAPH-004", needs=("graphs", "streams", "delay"))
def a_replay_is_work_of_its_stream(dev: Device) -> None:
    """A replay runs behind what was queued before, and before what is queued next."""
    x = torch.zeros(N, device=dev.device())
    with _capturing(dev) as graph:
        out = x + 1
    with dev.stream() as stream:
        dev.delay(30.0)
        x.fill_(5)
        graph.replay()
        first = out.clone()
        x.fill_(6)
        graph.replay()
        second = out.clone()
    stream.synchronize()
    dev.assert_equal(first, torch.full((N,), 6.0))
    dev.assert_equal(second, torch.full((N,), 7.0))


@check("graph/replays_on_two_streams", "GRAPH-004", needs=("graphs", "streams", "events", "delay"))
def a_stream_can_wait_for_a_replay_on_another(dev: Device) -> None:
    """An event recorded behind a replay completes with it."""
    x = torch.zeros(N, device=dev.device())
    dev.delay(1.0)
    dev.synchronize()
    with _capturing(dev) as graph:
        dev.delay(30.0)
        out = x + 1
    producer, consumer = dev.stream(), dev.stream()
    with producer:
        graph.replay()
    consumer.wait_stream(producer)
    with consumer:
        seen = out.clone()
    consumer.synchronize()
    dev.assert_equal(seen, torch.ones(N))


@check("graph/asynchronous", "GRAPH-005", needs=("graphs", "delay"))
def a_replay_does_not_wait(dev: Device) -> None:
    """replay() returns while the stream is busy."""
    x = torch.zeros(N, device=dev.device())
    with _capturing(dev) as graph:
        x.add_(1)
    graph.replay()
    dev.synchronize()
    while_held(dev, graph.replay)


# ---- memory ------------------------------------------------------------------------------------


#: What a program may do with the allocator between a capture and a replay.
_MEANWHILE: dict[str, Callable[[], object]] = {
    "cached": lambda: None,
    "emptied": lambda: torch.accelerator.empty_cache(),
}


@check(
    "graph/memory",
    "GRAPH-006",
    needs=("graphs",),
    cases=_MEANWHILE,
    case_needs={"emptied": "empty_cache"},
)
def memory_of_a_graph_is_its_own(dev: Device, case: str) -> None:
    """Tensors made after the capture are not overwritten by a replay, nor disturb it."""
    x = _x(dev)
    stream = dev.stream()
    with _capturing(dev, stream=stream) as graph:
        out = x
        for _ in range(8):
            out = (out * 2 + 1).sin()
    expected = dev.cpu(x)
    _MEANWHILE[case]()
    others = [torch.full_like(x, float(i)) for i in range(32)]
    with stream:  # memory that the capture freed is free there, if it is anywhere
        others += [torch.full_like(x, float(i)) for i in range(32, 64)]
    dev.synchronize()
    graph.replay()
    dev.synchronize()
    changed = [i for i, other in enumerate(others) if not bool((dev.cpu(other) == i).all())]
    assert not changed, f"{len(changed)} of 64 tensors were overwritten by a replay"
    again = x
    for _ in range(8):
        again = (again * 2 + 1).sin()
    dev.assert_equal(out, dev.cpu(again))
    dev.assert_equal(x, expected)


@check("graph/freed_in_capture", "GRAPH-006", needs=("graphs", "streams", "record_stream", "delay"))
def memory_freed_in_a_capture_waits_for_its_streams(dev: Device) -> None:
    """Memory that another captured stream uses is not reused while it does."""
    x = _x(dev)
    dev.delay(1.0)
    dev.synchronize()
    main, side = dev.stream(), dev.stream()
    with _capturing(dev, stream=main) as graph:
        shared = x + 1
        side.wait_stream(main)
        with side:
            dev.delay(20.0)
            out = shared * 2
        shared.record_stream(side)
        del shared
        others = [x + 100 for _ in range(4)]
        main.wait_stream(side)
    del others
    for _ in range(3):
        graph.replay()
        dev.assert_equal(out, (dev.cpu(x) + 1) * 2)


@check("graph/eager_memory_in_capture", "GRAPH-006", needs=("graphs", "streams", "record_stream"))
def eager_memory_may_be_freed_in_a_capture(dev: Device) -> None:
    """A tensor with record_stream from before a capture can die in it; its memory is used again."""
    main = dev.stream()
    x = torch.zeros(N, device=dev.device())
    for _ in range(3):
        early = torch.ones(N, device=dev.device())
        early.record_stream(main)
        with _capturing(dev, stream=main) as graph:
            x.add_(1)
            del early
        graph.replay()
        dev.synchronize()
        fresh = [torch.full((N,), float(i), device=dev.device()) for i in range(4)]
        assert [float(dev.cpu(tensor)[0]) for tensor in fresh] == [0.0, 1.0, 2.0, 3.0]
    dev.assert_equal(x, torch.full((N,), 3.0))


def _reserved(dev: Device) -> int:
    """Bytes that the first device has reserved, without what is only cached."""
    dev.synchronize()
    torch.accelerator.empty_cache()
    return torch.accelerator.memory_reserved(dev.device().index or 0)


@check(
    "graph/eager_memory_returns",
    "GRAPH-023",
    needs=("graphs", "streams", "record_stream", "memory_stats", "empty_cache"),
)
def eager_memory_that_died_in_a_capture_returns(dev: Device) -> None:
    """Its memory goes back to the device once the capture and the work on it have ended."""
    main, x = dev.stream(), torch.zeros(N, device=dev.device())

    before = _reserved(dev)
    early = torch.ones(BYTES // 4, device=dev.device())
    early.record_stream(main)
    with _capturing(dev, stream=main) as graph:
        x.add_(1)
        del early
    graph.replay()
    graph.reset()
    kept = _reserved(dev) - before
    assert kept < BYTES, f"{kept} bytes are still reserved"


@check("graph/reset", "GRAPH-007", needs=("graphs", "memory_stats", "empty_cache"))
def reset_gives_the_memory_back(dev: Device) -> None:
    """What a capture reserved stays reserved until the graph is reset, and not longer."""
    x = torch.ones(BYTES // 4, device=dev.device())

    before = _reserved(dev)
    with _capturing(dev) as graph:
        out = (x + 1) * 2
    del out
    held = _reserved(dev) - before
    assert held >= BYTES, f"{held} bytes are reserved for a graph that needs {BYTES}"
    graph.replay()
    graph.reset()
    after = _reserved(dev) - before
    assert after < BYTES, f"{after} bytes are still reserved for a graph that was reset"


@check("graph/deleted", "GRAPH-007", needs=("graphs", "memory_stats", "empty_cache"))
def a_graph_that_dies_gives_its_memory_back(dev: Device) -> None:
    """Capturing again and again does not need more and more memory."""
    x = torch.ones(BYTES // 4, device=dev.device())
    sizes = []
    for _ in range(4):
        with _capturing(dev) as graph:
            (x + 1).mul_(2)
        graph.replay()
        del graph
        dev.synchronize()
        torch.accelerator.empty_cache()
        sizes.append(torch.accelerator.memory_reserved(dev.device().index or 0))
    assert sizes[-1] <= sizes[0], f"bytes reserved after each of four graphs: {sizes}"


def _raise(_: Tensor) -> None:
    raise ValueError


#: What ends a capture early: the program's own exception, and a call that cannot be captured.
_ENDINGS: dict[str, Callable[[Tensor], object]] = {
    "exception": _raise,
    "refused": lambda x: x.sum().item(),
}


@check(
    "graph/given_up",
    "GRAPH-007",
    cases=_ENDINGS,
    needs=("graphs", "streams", "memory_stats", "empty_cache"),
)
def a_capture_that_failed_gives_its_memory_back(dev: Device, case: str) -> None:
    """What was allocated until an exception ended the capture is free when the graph has died.

    https://github.com/pytorch/pytorch/pull/190308 is about such memory.
    """
    x, stream = torch.ones(BYTES // 4, device=dev.device()), dev.stream()

    def capture() -> None:
        with _capturing(dev, stream=stream):
            _ENDINGS[case](x * 2 + 1)

    before = _reserved(dev)
    for _ in range(2):
        raised(capture)
        gc.collect()  # the exception refers to the frames that have the graph
    kept = _reserved(dev) - before
    assert kept < BYTES, f"{kept} bytes are still reserved for captures that failed"


@check(
    "graph/deleted:before_its_result", "GRAPH-007", needs=("graphs", "memory_stats", "empty_cache")
)
def a_result_that_outlives_its_graph_gives_its_memory_back(dev: Device) -> None:
    """A result keeps its values when its graph dies, and its memory is free when it dies itself."""
    x = torch.ones(BYTES // 4, device=dev.device())

    before = _reserved(dev)
    with _capturing(dev) as graph:
        out = x * 2
    graph.replay()
    graph.reset()
    del graph
    assert _reserved(dev) - before >= BYTES, "the memory of a result was taken away"
    assert out[::N].cpu().eq(2).all(), "the result has other values since its graph died"
    del out
    after = _reserved(dev) - before
    assert after < BYTES, f"{after} bytes are still reserved"


@check(
    "graph/pool",
    "GRAPH-008",
    needs=("graphs",),
    cases=_MEANWHILE,
    case_needs={"emptied": "empty_cache"},
)
def graphs_may_share_a_pool(dev: Device, case: str) -> None:
    """Graphs of one pool that are replayed in order are right, also without the first."""
    x = _x(dev)
    large = torch.ones(BYTES // 4, device=dev.device())
    with _capturing(dev) as first:
        y = x * 2
    with _capturing(dev, pool=first.pool()) as second:
        (large + 5).mul_(3)
        z = y + 1
    assert second.pool() == first.pool()
    for scale in (1.0, 3.0):
        x.mul_(scale)
        first.replay()
        second.replay()
        dev.assert_equal(y, dev.cpu(x) * 2)
        dev.assert_equal(z, dev.cpu(x) * 2 + 1)
    first.reset()
    dev.synchronize()
    _MEANWHILE[case]()
    others = [torch.full_like(x, float(i)) for i in range(32)] + [torch.full_like(large, 32.0)]
    y.fill_(7)
    second.replay()
    dev.assert_equal(z, torch.full((N,), 8.0))
    assert all(bool((dev.cpu(other) == i).all()) for i, other in enumerate(others))


# ---- random numbers ----------------------------------------------------------------------------

_DRAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "rand": torch.rand_like,
    "randn": torch.randn_like,
    "randint": lambda x: torch.randint(0, 1 << 20, x.shape, device=x.device),
    "dropout": lambda x: functional.dropout(torch.ones_like(x), 0.5),
    "bernoulli": lambda x: torch.bernoulli(torch.full_like(x, 0.5)),
    "exponential": lambda x: torch.empty_like(x).exponential_(),
    "randperm": lambda x: torch.randperm(x.numel(), device=x.device),
    "multinomial": lambda x: torch.multinomial(torch.ones_like(x), 64, True),
    "poisson": lambda x: torch.poisson(torch.full_like(x, 4.0)),
    "several": lambda x: torch.rand_like(x) + torch.randn_like(x) * torch.rand_like(x),
}


def _captured_draw(dev: Device, case: str) -> tuple[Any, Tensor]:
    x = torch.zeros(N, device=dev.device())
    out = _DRAWS[case](x)
    with _capturing(dev) as graph:
        out.copy_(_DRAWS[case](x))
    return graph, out


@check("graph/random", "GRAPH-009", needs=("graphs", "generator"), cases=_DRAWS)
def each_replay_draws_the_next_numbers(dev: Device, case: str) -> None:
    """Replays draw what ordinary calls would draw, from the state that the generator has then."""
    x = torch.zeros(N, device=dev.device())
    torch.manual_seed(5)
    expected = [_DRAWS[case](x).cpu() for _ in range(4)]
    assert not torch.equal(expected[0], expected[1])
    graph, out = _captured_draw(dev, case)
    for seed in (5, 6, 5):
        torch.manual_seed(seed)
        drawn = []
        for _ in range(3):
            graph.replay()
            drawn.append(dev.cpu(out))
        assert not torch.equal(drawn[0], drawn[1]), "two replays drew the same numbers"
        if seed == 5:
            for actual, wanted in zip(drawn, expected, strict=False):
                dev.assert_equal(actual, wanted)


@check("graph/random_afterwards", "GRAPH-010", needs=("graphs", "generator"), cases=_DRAWS)
def the_sequence_goes_on_behind_a_replay(dev: Device, case: str) -> None:
    """Captures draw nothing; a replay advances the generator as an ordinary call does."""
    x = torch.zeros(N, device=dev.device())
    torch.manual_seed(8)
    start = rng_state(dev)
    expected = [_DRAWS[case](x).cpu() for _ in range(3)]
    graph, out = _captured_draw(dev, case)
    torch.manual_seed(8)
    with _capturing(dev):
        _DRAWS[case](x)
    assert torch.equal(rng_state(dev), start), "a capture advanced the generator"
    first = _DRAWS[case](x)
    graph.replay()
    second = out.clone()
    third = _DRAWS[case](x)
    for actual, wanted in zip((first, second, third), expected, strict=True):
        dev.assert_equal(actual, wanted)


@check("graph/random_queued", "GRAPH-009", needs=("graphs", "generator", "delay"))
def queued_replays_draw_their_own_numbers(dev: Device) -> None:
    """Replays that wait in a stream, and draws between them, keep the order of the calls."""
    x = torch.zeros(N, device=dev.device())
    torch.manual_seed(9)
    expected = [torch.rand_like(x).cpu() for _ in range(6)]
    graph, out = _captured_draw(dev, "rand")
    torch.manual_seed(9)
    dev.delay(30.0)
    drawn = []
    for _ in range(3):
        graph.replay()
        drawn.append(out.clone())
        drawn.append(torch.rand_like(x))
    torch.manual_seed(10)
    for actual, wanted in zip(drawn, expected, strict=True):
        dev.assert_equal(actual, wanted)


@check("graph/random_generator", "GRAPH-011", needs=("graphs", "generator"))
def a_generator_of_the_callers_is_advanced(dev: Device) -> None:
    """Draws from a generator that was passed as an argument are replayed from its state."""
    generator = torch.Generator(device=dev.device()).manual_seed(3)
    expected = [torch.rand(N, device=dev.device(), generator=generator).cpu() for _ in range(3)]
    out = torch.zeros(N, device=dev.device())
    with _capturing(dev) as graph:
        out.uniform_(generator=generator)
    generator.manual_seed(3)
    for wanted in expected:
        graph.replay()
        dev.assert_equal(out, wanted)


# ---- streams -----------------------------------------------------------------------------------


#: Milliseconds by which the captured stream is late before the fork, and the other one before the
#: join.
_LATE = {"fork": (20.0, 0.0), "join": (0.0, 20.0)}


@check("graph/fork", "GRAPH-012", needs=("graphs", "streams", "delay"), cases=_LATE)
def streams_fork_and_join_in_a_capture(dev: Device, case: str) -> None:
    """A stream that waits for the captured one takes part; the order of the waits is kept."""
    x = torch.zeros(N, device=dev.device())
    before_fork, before_join = _LATE[case]
    dev.delay(1.0)
    dev.synchronize()
    main, side = dev.stream(), dev.stream()
    with _capturing(dev, stream=main) as graph:
        dev.delay(before_fork)
        a = x + 1
        side.wait_stream(main)
        with side:
            dev.delay(before_join)
            b = a * 2
        c = a * 3
        main.wait_stream(side)
        out = b + c
    for value in (1.0, 4.0):
        x.fill_(value)
        graph.replay()
        dev.assert_equal(out, torch.full((N,), 5 * (value + 1)))


@check("graph/other_streams", "GRAPH-013", needs=("graphs", "streams"))
def other_streams_go_on(dev: Device) -> None:
    """Work of streams that take no part runs once, and is in no graph."""
    x = torch.zeros(N, device=dev.device())
    y = torch.zeros(N, device=dev.device())
    other = dev.stream()
    dev.synchronize()
    with _capturing(dev) as graph:
        x.add_(1)
        with other:
            y.add_(1)
        x.add_(1)
    other.synchronize()
    dev.assert_equal(y, torch.ones(N))
    for _ in range(2):
        graph.replay()
    dev.assert_equal(x, torch.full((N,), 4.0))
    dev.assert_equal(y, torch.ones(N))


@check("graph/is_capturing", "GRAPH-014", needs=("graphs", "streams"))
def a_stream_knows_that_it_is_captured(dev: Device) -> None:
    """torch.Stream.is_capturing is true of the streams that take part, during the capture."""
    main, side, other = dev.stream(), dev.stream(), dev.stream()
    seen = [main.is_capturing()]
    with _capturing(dev, stream=main):
        seen += [main.is_capturing(), side.is_capturing()]
        side.wait_stream(main)
        seen += [side.is_capturing(), other.is_capturing()]
        main.wait_stream(side)
    seen += [main.is_capturing(), side.is_capturing()]
    assert seen == [False, True, False, True, False, False, False], seen


# ---- what cannot be captured -------------------------------------------------------------------

_REFUSED: dict[str, Callable[[Device, Tensor], Any]] = {
    "item": lambda dev, x: x.sum().item(),
    "cpu": lambda dev, x: x.cpu(),
    "nonzero": lambda dev, x: x.nonzero(),
    "condition": lambda dev, x: bool((x > 0).all()),
    "from_host": lambda dev, x: torch.ones(8).to(x.device),
    "synchronize_stream": lambda dev, x: dev.current_stream().synchronize(),
    "synchronize_device": lambda dev, x: torch.accelerator.synchronize(),
    "event": lambda dev, x: dev.current_stream().record_event().synchronize(),
    "seed": lambda dev, x: torch.manual_seed(1),
    "offset": lambda dev, x: torch.Generator(device=x.device).set_offset(8),
    "state": lambda dev, x: (own := torch.Generator(device=x.device)).set_state(own.get_state()),
}


@check("graph/refused", "GRAPH-015", needs=("graphs",), cases=_REFUSED)
def what_needs_the_host_is_refused(dev: Device, case: str) -> None:
    """Waiting for captured work raises at once, and ends neither the device nor later captures."""
    x = _x(dev)
    expected = dev.cpu(x)

    def capture() -> None:
        with _capturing(dev):
            x.mul_(2)
            _REFUSED[case](dev, x)

    error = raised(capture)
    assert isinstance(error, RuntimeError), f"{type(error).__name__} was raised"
    dev.assert_equal(x, expected)
    dev.assert_equal(x + 1, expected + 1)
    with _capturing(dev) as graph:
        out = x * 4
    graph.replay()
    dev.assert_equal(out, expected * 4)


_COUNTING: dict[str, Callable[[list[Tensor]], torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "nadam": torch.optim.NAdam,
    "rmsprop": torch.optim.RMSprop,
}


@check("graph/optimizer", "GRAPH-022", needs=("graphs", "streams"), cases=_COUNTING)
def a_step_that_counts_on_the_host_is_refused(dev: Device, case: str) -> None:
    """A captured step raises, unless the optimizer was made with capturable=True."""
    weight = _x(dev).requires_grad_()
    weight.grad = torch.ones_like(weight)
    optimizer = _COUNTING[case]([weight])
    stream = dev.stream()
    stream.wait_stream(dev.current_stream())
    with stream:
        optimizer.step()

    def capture() -> None:
        with _capturing(dev, stream=stream):
            optimizer.step()

    error = raised(capture)
    assert isinstance(error, RuntimeError), f"{type(error).__name__} was raised"


@check("graph/exception", "GRAPH-015", needs=("graphs", "streams"))
def an_exception_ends_the_capture(dev: Device) -> None:
    """An exception of the program leaves the capture, and comes out as it was raised."""
    x, stream = _x(dev), dev.stream()
    expected = dev.cpu(x)

    def capture() -> None:
        with _capturing(dev, stream=stream):
            x.mul_(2)
            raise KeyError

    assert isinstance(raised(capture), KeyError)
    assert not stream.is_capturing()
    with stream:
        y = x + 1
    stream.synchronize()
    dev.assert_equal(y, expected + 1)


@check("graph/late_error", "GRAPH-016", needs=("graphs", "deferred_errors", "error_recovery"))
def errors_of_a_replay_are_raised(dev: Device) -> None:
    """A bad index in a replay is an error of a later synchronisation, and the graph goes on."""
    x, index = _x(dev), torch.zeros(4, dtype=torch.int64, device=dev.device())
    with _capturing(dev) as graph:
        out = x.index_select(0, index)
    index.fill_(N)
    dev.synchronize()

    def replay() -> None:
        graph.replay()
        dev.synchronize()

    assert isinstance(raised(replay), (RuntimeError, IndexError))
    index.fill_(2)
    graph.replay()
    dev.assert_equal(out, dev.cpu(x)[2].expand(4))


@check(
    "graph/late_error:side_stream",
    "GRAPH-016",
    needs=("graphs", "streams", "deferred_errors", "error_recovery"),
)
def errors_of_side_streams_are_those_of_the_replay(dev: Device) -> None:
    """A bad index on a captured side stream is an error of the stream of the replay, once."""
    x, index = _x(dev), torch.zeros(4, dtype=torch.int64, device=dev.device())
    main, side = dev.stream(), dev.stream()
    with _capturing(dev, stream=main) as graph:
        side.wait_stream(main)
        with side:
            out = x.index_select(0, index)
        main.wait_stream(side)
    index.fill_(N)
    dev.synchronize()
    stream = dev.stream()

    def replay() -> None:
        with stream:
            graph.replay()
        stream.synchronize()

    assert isinstance(raised(replay), (RuntimeError, IndexError))
    index.fill_(2)
    dev.synchronize()
    replay()
    dev.assert_equal(out, dev.cpu(x)[2].expand(4))


# ---- the life of a graph -----------------------------------------------------------------------


def _begin_twice(dev: Device, graph: Any) -> None:
    with dev.stream():
        graph.capture_begin()
        try:
            graph.capture_begin()
        finally:
            graph.capture_end()


def _begin_captured(dev: Device, graph: Any) -> None:
    with dev.stream(), graph:
        torch.ones(1, device=dev.device())
    with dev.stream():
        graph.capture_begin()


_MISUSES: dict[str, Callable[[Device, Any], Any]] = {
    "replay_nothing": lambda dev, graph: graph.replay(),
    "end_nothing": lambda dev, graph: graph.capture_end(),
    "begin_twice": _begin_twice,
    "begin_captured": _begin_captured,
}


@check("graph/misuse", "GRAPH-017", needs=("graphs",), cases=_MISUSES)
def misuse_is_refused(dev: Device, case: str) -> None:
    """A call that the state of the graph does not allow raises, and harms no other graph."""
    graph = torch.accelerator.Graph()
    assert isinstance(raised(lambda: _MISUSES[case](dev, graph)), RuntimeError)
    x = _x(dev)
    with _capturing(dev) as other:
        out = x + 1
    other.replay()
    dev.assert_equal(out, dev.cpu(x) + 1)


@check("graph/unjoined", "GRAPH-017", needs=("graphs", "streams"))
def an_unjoined_stream_is_an_error(dev: Device) -> None:
    """A capture that ends with a stream left alone raises; both streams are usable again."""
    x = _x(dev)
    main, side = dev.stream(), dev.stream()

    def capture() -> None:
        with _capturing(dev, stream=main):
            side.wait_stream(main)
            with side:
                x.mul_(2)

    expected = dev.cpu(x)
    assert isinstance(raised(capture), RuntimeError)
    for stream in (main, side):
        with stream:
            y = x + 1
        stream.synchronize()
        dev.assert_equal(y, expected + 1)


@check("graph/again", "GRAPH-018", needs=("graphs",))
def a_graph_can_be_captured_again(dev: Device) -> None:
    """After reset() the same object captures other work."""
    x, graph = _x(dev), torch.accelerator.Graph()
    for scale in (2.0, 3.0):
        with dev.stream(), graph:
            out = x * scale
        graph.replay()
        dev.assert_equal(out, dev.cpu(x) * scale)
        graph.reset()


_READIED: dict[str, Callable[[Any], object]] = {
    "instantiate": lambda graph: graph.instantiate(),
    "replay": lambda graph: None,
}


@check("graph/keep_graph", "GRAPH-021", needs=("graphs",), cases=_READIED)
def a_graph_may_be_instantiated_later(dev: Device, case: str) -> None:
    """With keep_graph, instantiate() or the first replay() makes the graph ready."""
    x, graph = _x(dev), torch.accelerator.Graph(keep_graph=True)
    with dev.stream(), graph:
        out = x * 2
    _READIED[case](graph)
    for _ in range(2):
        out.zero_()
        graph.replay()
        dev.assert_equal(out, dev.cpu(x) * 2)


# ---- copies ------------------------------------------------------------------------------------


@check("graph/pinned", "GRAPH-019", needs=("graphs", "pinned_memory", "async_copy"))
def copies_of_pinned_memory_are_replayed(dev: Device) -> None:
    """Copies from and to pinned memory read and write it at each replay."""
    source = torch.zeros(N).pin_memory()
    target = torch.zeros(N).pin_memory()
    x = torch.zeros(N, device=dev.device())
    with _capturing(dev) as graph:
        x.copy_(source, non_blocking=True)
        y = x * 2
        target.copy_(y, non_blocking=True)
    for value in (1.0, 5.0):
        source.fill_(value)
        graph.replay()
        dev.synchronize()
        assert torch.equal(target, torch.full((N,), 2 * value))


# ---- training ----------------------------------------------------------------------------------


def _network(dev: Device) -> torch.nn.Module:
    torch.manual_seed(1)
    layers = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Dropout(0.2), torch.nn.Linear(64, 4)
    )
    return layers.to(dev.device())


def _trainer(dev: Device) -> tuple[torch.nn.Module, Callable[[], None], Tensor]:
    """A network, a step of its training on one batch, and the batch."""
    module = _network(dev)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2, capturable=True)
    batch = torch.zeros(16, 32, device=dev.device())

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        module(batch).square().mean().backward()
        optimizer.step()

    return module, step, batch


def _batches() -> list[Tensor]:
    return [noise((16, 32), seed=i) for i in range(5)]


@check("graph/train", "GRAPH-020", needs=("graphs", "generator", "streams"))
def a_captured_step_trains_like_an_ordinary_one(dev: Device) -> None:
    """Forward, backward with dropout and Adam in one graph leave the weights of the same steps."""
    results = []
    for captured in (False, True):
        module, step, batch = _trainer(dev)
        torch.manual_seed(2)
        side = dev.stream()
        side.wait_stream(dev.current_stream())
        with side:  # the first step allocates the optimizer's state
            step()
        side.synchronize()
        run: Callable[[], None] = step
        if captured:
            state = rng_state(dev)
            with _capturing(dev) as graph:
                step()
            assert torch.equal(rng_state(dev), state)
            run = graph.replay
        for values in _batches():
            batch.copy_(values)
            run()
        results.append({name: dev.cpu(value) for name, value in module.state_dict().items()})
    for name, expected in results[0].items():
        dev.assert_close(results[1][name], expected)
