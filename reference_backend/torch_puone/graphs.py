# SPDX-License-Identifier: BSD-3-Clause
"""Graphs: device work that is captured once and replayed as one piece. As torch.cuda.graphs."""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from . import _C
from ._lazy import _lazy_init, is_initialized
from .devices import current_device, synchronize
from .memory import empty_cache
from .streams import Stream, StreamContext, _dedicated_stream

# The id of a memory pool.
_POOL_HANDLE = tuple[int, int]
_ERROR_MODES = ("global", "thread_local", "relaxed")


def is_current_stream_capturing() -> bool:
    """Whether work queued on the current stream becomes part of a graph now."""
    return is_initialized() and _C.is_current_stream_capturing()


def graph_pool_handle() -> _POOL_HANDLE:
    """The id of a new memory pool, for graphs that are to share their memory."""
    return _C.graph_pool_handle()


def _require_capturable(optimizer: torch.optim.Optimizer, *_: object) -> None:
    """Refuse a captured step that counts on the host, where a replay would not count.

    torch.optim itself looks only where the accelerator is CUDA or XPU
    (Optimizer._accelerator_graph_capture_health_check, torch 2.13).
    """
    if torch.compiler.is_compiling() or not is_current_stream_capturing():
        return
    if any(group.get("capturable") is False for group in optimizer.param_groups):
        raise RuntimeError(
            f"puone: a step of {type(optimizer).__name__} cannot be captured with "
            "capturable=False: make the optimizer with capturable=True"
        )


register_optimizer_step_pre_hook(_require_capturable)


class PUONEGraph(_C.Graph):
    """Work captured from a stream, to be replayed as one piece any number of times.

    `capture_begin()` and `capture_end()` capture what is queued on the current stream in between;
    the context manager `graph` calls them. `replay()` queues all of it on the current stream, with
    the addresses it was captured with: inputs are changed in place, and results appear where the
    capture put them. Random operators draw new numbers at each replay. `reset()` gives up what was
    captured. `pool()` is the memory pool, which the capture of another graph may be given.

    A graph is not thread-safe, and there is one capture at a time in a process.

    Args:
        keep_graph: the graph is made ready by `instantiate()` or the first `replay()`, not by
            `capture_end()`.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        _lazy_init()
        super().__init__(keep_graph)

    def capture_begin(
        self, pool: _POOL_HANDLE | None = None, capture_error_mode: str = "global"
    ) -> None:
        """Capture what is queued on the current stream, which must not be the default stream.

        Memory allocated meanwhile comes from `pool`, a new one if None, and stays reserved until
        the pool's last graph is reset. `capture_error_mode`: as torch.cuda's, "global",
        "thread_local" or "relaxed". All are alike here: only calls that concern captured work are
        refused, on whichever thread; what other threads do elsewhere disturbs no capture.
        """
        if capture_error_mode not in _ERROR_MODES:
            known = ", ".join(_ERROR_MODES)
            raise ValueError(f"capture_error_mode is {capture_error_mode!r}, not one of {known}")
        super().capture_begin((0, 0) if pool is None else pool)


class graph:  # noqa: N801 - the name of the field
    """Context manager that captures what its block queues.

    An exception in the block ends the capture and resets the graph.

    Args:
        puone_graph: holds what was captured afterwards.
        pool: of `graph_pool_handle()` or another graph's `pool()`, to share its memory. Graphs of
            one pool must be replayed in the order of their captures and not at the same time.
        stream: to capture on; if None, one that all captures on the current device share.
        capture_error_mode: as for `PUONEGraph.capture_begin`.
    """

    default_capture_streams: ClassVar[dict[int, Stream]] = {}

    def __init__(
        self,
        puone_graph: PUONEGraph,
        pool: _POOL_HANDLE | None = None,
        stream: torch.Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        if stream is None:
            device = current_device()
            if device not in self.default_capture_streams:
                # Nobody else's work on it, which would be captured.
                self.default_capture_streams[device] = _dedicated_stream(device)
            stream = self.default_capture_streams[device]
        self.puone_graph = puone_graph
        self.pool = pool
        self.capture_error_mode = capture_error_mode
        self.capture_stream = stream
        self._stream_context = StreamContext(self.capture_stream)

    def __enter__(self) -> None:
        # What is in flight or unused would hold memory that the capture may need.
        synchronize()
        empty_cache()
        self._stream_context.__enter__()
        try:
            self.puone_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self._stream_context.__exit__(None, None, None)
            raise

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if exc_type is None:
                self.puone_graph.capture_end()
            else:
                self.puone_graph.reset()
        finally:
            self._stream_context.__exit__(exc_type, exc, traceback)
