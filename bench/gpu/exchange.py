# SPDX-License-Identifier: BSD-3-Clause
"""Two backends on one card, in one process: memory is shared by DLPack, in order, and let go.

    python -m bench.gpu.exchange [--peer cuda|puone] [--delay MS]

The peer is `torch.cuda`. With `puone` the backend exchanges with itself, on another stream: that
takes the same way through a driver which shares its memory, and needs no torch built for a GPU.
The last line of the output is a JSON object of what was found.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

import torch_puone
from bench.gpu.steps.exchange import ABSENT
from torch_puone.interop import export, from_dlpack

DELAY_MS = 80
CYCLES_PER_MS = 2_000_000  # of a GPU, more than that rather than less


@dataclass(frozen=True)
class Peer:
    """The other backend: where its tensors live, how it gives and takes them, on which stream it
    works, and on which puone does meanwhile."""

    device: str
    give: Callable[[torch.Tensor], Any]
    take: Callable[[Any], torch.Tensor]
    stream: Callable[[], AbstractContextManager[Any]]
    ours: Callable[[], AbstractContextManager[Any]]
    delay: Callable[[float], None]
    delay_ms: float


def _cuda(delay_ms: float) -> Peer:
    return Peer(
        "cuda:0",
        lambda tensor: tensor,
        torch.from_dlpack,
        lambda: torch.cuda.stream(torch.cuda.Stream()),
        nullcontext,
        lambda ms: torch.cuda._sleep(int(ms * CYCLES_PER_MS)),
        delay_ms,
    )


@dataclass(frozen=True)
class _Queued:
    """What is given by a side whose current stream is another one than the taker's."""

    stream: torch.Stream
    given: Any

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self.given.__dlpack_device__()
        return device

    def __dlpack__(self, **options: Any) -> object:
        with torch_puone.stream(self.stream):
            return self.given.__dlpack__(**options)


def _puone(delay_ms: float) -> Peer:
    ours = torch_puone.current_stream(0)
    return Peer(
        "puone:0",
        lambda tensor: _Queued(torch_puone.current_stream(0), export(tensor)),
        lambda given: from_dlpack(_Queued(ours, given)),
        lambda: torch_puone.stream(torch_puone.Stream(0)),
        lambda: torch_puone.stream(ours),
        torch_puone._sleep_ms,
        delay_ms,
    )


PEERS = {"cuda": _cuda, "puone": _puone}


def ours_is_theirs(peer: Peer) -> None:
    """A tensor of puone is one of the peer, in the same memory."""
    ours = torch.arange(1024.0, device="puone:0")
    theirs = peer.take(export(ours))
    assert str(theirs.device) == peer.device and theirs.data_ptr() == ours.data_ptr()
    theirs.add_(1)
    assert torch.equal(theirs.cpu(), torch.arange(1024.0) + 1)
    assert torch.equal(ours.cpu(), torch.arange(1024.0) + 1)


def theirs_is_ours(peer: Peer) -> None:
    """A tensor of the peer is one of puone, in the same memory."""
    theirs = torch.arange(1024.0, device=peer.device)
    ours = from_dlpack(peer.give(theirs))
    assert str(ours.device) == "puone:0" and theirs.data_ptr() == ours.data_ptr()
    ours.add_(1)
    assert torch.equal(ours.cpu(), torch.arange(1024.0) + 1)
    assert torch.equal(theirs.cpu(), torch.arange(1024.0) + 1)


def views_keep_their_geometry(peer: Peer) -> None:
    """Types, strides and offsets are the same on both sides."""
    for dtype in (torch.bool, torch.int64, torch.bfloat16, torch.float32, torch.complex64):
        host = torch.arange(48).reshape(6, 8).to(dtype)
        ours = host.to("puone:0").t()[1:, ::2]
        theirs = peer.take(export(ours))
        back = from_dlpack(peer.give(theirs))
        for tensor in (theirs, back):
            assert (tensor.dtype, tensor.stride()) == (dtype, ours.stride())
            assert torch.equal(tensor.cpu(), host.t()[1:, ::2])


def they_wait_for_us(peer: Peer) -> None:
    """What is queued on puone before the exchange is seen by the peer's stream."""
    ours = torch.zeros(4096, device="puone:0")
    torch_puone._sleep_ms(peer.delay_ms)
    ours.fill_(7)
    with peer.stream():
        seen = peer.take(export(ours)) + 1
        assert torch.equal(seen.cpu(), torch.full((4096,), 8.0))


def we_wait_for_them(peer: Peer) -> None:
    """What is queued on the peer's stream before the exchange is seen by puone."""
    with peer.stream():
        theirs = torch.zeros(4096, device=peer.device)
        peer.delay(peer.delay_ms)
        theirs.fill_(7)
        given = peer.give(theirs)
        with peer.ours():
            seen = from_dlpack(given) + 1
            assert torch.equal(seen.cpu(), torch.full((4096,), 8.0))


def memory_is_let_go(peer: Peer) -> None:
    """Memory lives as long as the last tensor on either side, and no longer."""
    torch.accelerator.synchronize()
    before = torch_puone.memory_allocated(0)
    theirs = peer.take(export(torch.ones(1 << 20, device="puone:0")))
    gc.collect()
    assert torch_puone.memory_allocated(0) > before
    assert torch.equal(theirs.cpu(), torch.ones(1 << 20))
    del theirs
    gc.collect()
    assert torch_puone.memory_allocated(0) == before


def both_compute(peer: Peer) -> None:
    """Both backends compute in turns, on the same memory and on their own."""
    host = torch.arange(64.0 * 64).reshape(64, 64) / 4096
    ours = host.to("puone:0")
    theirs = peer.take(export(ours))
    expected = host
    for _ in range(4):
        expected = torch.tanh(expected @ host)
        theirs = torch.tanh(theirs @ host.to(peer.device))
        ours = from_dlpack(peer.give(theirs))
        assert torch.allclose(ours.cpu(), expected, rtol=1e-3, atol=1e-3)
        expected = torch.tanh(expected @ host)
        ours = torch.tanh(ours @ host.to("puone:0"))
        theirs = peer.take(export(ours))
        assert torch.allclose(theirs.cpu(), expected, rtol=1e-3, atol=1e-3)


EXCHANGES = (
    ours_is_theirs,
    theirs_is_ours,
    views_keep_their_geometry,
    they_wait_for_us,
    we_wait_for_them,
    memory_is_let_go,
    both_compute,
)


def _absent(name: str) -> str:
    """Why nothing can be exchanged, "" if it can."""
    if name == "cuda" and not torch.cuda.is_available():
        return "torch.cuda is not available"
    try:
        export(torch.ones(1, device="puone:0"))
    except NotImplementedError as error:
        return str(error).splitlines()[0]
    return ""


def _take(exchange: Callable[[Peer], None], peer: Peer) -> str:
    try:
        torch.accelerator.synchronize()  # one that failed left what it had queued
        exchange(peer)
    except Exception as error:
        traceback.print_exc()
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return "good"


def main(arguments: list[str]) -> int:
    """The command line; see above. The status is ABSENT if there is nobody to exchange with."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=tuple(PEERS), default="cuda")
    parser.add_argument("--delay", type=float, default=DELAY_MS, help="ms by which a side is late")
    options = parser.parse_args(arguments)
    why = _absent(options.peer)
    if why:
        print(why)
        return ABSENT
    peer = PEERS[options.peer](options.delay)
    found = {exchange.__name__: _take(exchange, peer) for exchange in EXCHANGES}
    print(json.dumps(found))
    return int(set(found.values()) != {"good"})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
