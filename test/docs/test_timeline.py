# SPDX-License-Identifier: BSD-3-Clause
"""The picture of a timeline shows what the trace says."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import timeline

SVG = "{http://www.w3.org/2000/svg}"


def event(category: str, name: str, stream: int, begin: float, duration: float) -> dict[str, Any]:
    args = {"External id": 1 if category == "kernel" else 2}
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "tid": stream,
        "ts": begin,
        "dur": duration,
        "args": args,
    }


EVENTS = [
    event("cpu_op", "aten::mm", 99, 0, 5) | {"args": {"External id": 1}},
    event("kernel", "gemm", 0, 100, 800),
    event("gpu_memcpy", "memcpy_async", 1, 300, 400),
    event("gpu_user_annotation", "batch 1", 0, 100, 800),
]


def boxes(picture: str) -> dict[str, tuple[float, float, float]]:
    """(x, y, width) of each bar, by its tooltip."""
    found = {}
    for rectangle in ET.fromstring(picture).iter(f"{SVG}rect"):
        title = rectangle.find(f"{SVG}title")
        if title is not None and title.text is not None:
            x, y, width = (float(rectangle.attrib[name]) for name in ("x", "y", "width"))
            found[title.text] = (x, y, width)
    return found


def test_bars_are_where_the_work_was() -> None:
    found = boxes(timeline.drawn(list(timeline.bars_of(EVENTS))))
    kernel = found["gemm, queued by aten::mm: 800 us"]
    copy = found["memcpy_async: 400 us"]
    assert kernel[0] < copy[0] < copy[0] + copy[2] < kernel[0] + kernel[2]
    assert abs(kernel[2] - 2 * copy[2]) < 0.2
    assert copy[1] > kernel[1]
    assert found["batch 1: 800 us"][:1] == kernel[:1]


def test_the_picture_in_the_documents_shows_copies_beside_kernels() -> None:
    found = boxes(timeline.PICTURE.read_text())
    kernels = [box for text, box in found.items() if text.startswith("gemm")]
    copies = [box for text, box in found.items() if text.startswith("memcpy_async")]
    overlapping = [
        (kernel, copy)
        for kernel in kernels
        for copy in copies
        if kernel[1] != copy[1]
        and kernel[0] < copy[0] + copy[2]
        and copy[0] < kernel[0] + kernel[2]
    ]
    assert overlapping
