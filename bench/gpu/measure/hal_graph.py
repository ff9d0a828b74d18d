# SPDX-License-Identifier: BSD-3-Clause
"""A graph of the HAL's kernels, through the driver that the backend runs on (csrc/hal/hal.h)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, byref, c_int, c_int32, c_uint32, c_void_p

from bench.gpu.measure.case import NotThere
from conformance.hal.abi import Status
from conformance.hal.driver import Driver

EXTENSION, VERSION = b"graph", 1
ENTRIES: dict[str, tuple[type, ...]] = {
    "capture_begin": (c_void_p,),
    "capture_end": (c_void_p, POINTER(c_void_p)),
    "is_capturing": (c_void_p, POINTER(c_int32)),
    "instantiate": (c_void_p,),
    "launch": (c_void_p, c_void_p),
    "destroy": (c_void_p,),
}


class GraphApi(ctypes.Structure):
    """puone_graph_api: the optional table of graphs."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("version", c_uint32),
        *((name, ctypes.CFUNCTYPE(c_int, *arguments)) for name, arguments in ENTRIES.items()),
    ]


class HalGraph:
    """What `queue` queues on a stream of its own, captured; the graph lives as long as this."""

    def __init__(self, path: str, queue: Callable[[Driver, int], None]) -> None:
        # The very library that the backend has loaded: one driver, which init() does not mind.
        self._driver = Driver(path)
        self._driver.ok(self._driver.api.init())
        table = c_void_p()
        status = self._driver.api.get_extension(EXTENSION, VERSION, byref(table))
        if status == Status.UNSUPPORTED or not table.value:
            raise NotThere("the driver has no graph extension")
        self._driver.ok(status)
        self._api = GraphApi.from_address(table.value)
        self._stream = self._driver.stream()
        self._graph = c_void_p()
        self._driver.ok(self._api.capture_begin(self._stream))
        try:
            queue(self._driver, self._stream)
        finally:
            ended = self._api.capture_end(self._stream, byref(self._graph))
        self._driver.ok(ended)
        self._driver.ok(self._api.instantiate(self._graph))

    def replay(self) -> None:
        """Queue the whole graph."""
        self._driver.ok(self._api.launch(self._graph, self._stream))

    def __del__(self) -> None:
        if getattr(self, "_graph", None):
            self._driver.synchronize(self._stream)
            self._api.destroy(self._graph)
            self._driver.api.stream_destroy(self._stream)
