# SPDX-License-Identifier: BSD-3-Clause
"""A graph of the HAL's kernels, through the driver that the backend runs on (csrc/hal/hal.h)."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_void_p
from functools import partial

from bench.gpu.measure.case import NotThere
from hal_conformance import abi
from hal_conformance.driver import Driver


class HalGraph:
    """What `queue` queues on a stream of its own, captured; the graph lives as long as this."""

    def __init__(self, path: str, queue: Callable[[Driver, int], None]) -> None:
        # The very library that the backend has loaded: one driver, which init() does not mind.
        self._driver = Driver(path)
        self._driver.ok(self._driver.api.init())
        table = c_void_p()
        status = self._driver.api.get_extension(
            abi.GRAPH_EXTENSION, abi.GRAPH_VERSION, byref(table)
        )
        if status == abi.Status.UNSUPPORTED or not table.value:
            raise NotThere("the driver has no graph extension")
        self._driver.ok(status)
        self._api = abi.GraphApi.from_address(table.value)
        stream = self._driver.stream()
        self._stream = c_void_p(stream)
        self._graph = c_void_p()
        # At hand: looking them up anew would count as time of the replay.
        self._launch = partial(self._api.launch, self._graph, self._stream)
        self._driver.ok(self._api.capture_begin(self._stream))
        try:
            queue(self._driver, stream)
        finally:
            ended = self._api.capture_end(self._stream, byref(self._graph))
        self._driver.ok(ended)
        self._driver.ok(self._api.instantiate(self._graph))

    def replay(self) -> None:
        """Queue the whole graph."""
        status = self._launch()
        if status:
            self._driver.ok(status)

    def __del__(self) -> None:
        if getattr(self, "_graph", None):
            self._api.destroy(self._graph)
            self._driver.api.stream_destroy(self._stream)
