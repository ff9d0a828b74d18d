# SPDX-License-Identifier: BSD-3-Clause
"""The extension "module": kernels that are compiled while the program runs."""

from __future__ import annotations

import ctypes
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, byref, c_size_t, c_uint64, c_void_p

import pytest

from hal_conformance import abi, modules
from hal_conformance.abi import Status
from hal_conformance.covers import covers
from hal_conformance.driver import Driver
from hal_conformance.modules import (
    KERNELS,
    SOURCE,
    args,
    compiled,
    declaration,
    found,
    kernel_of,
    launch,
    loaded,
    read_floats,
    try_compile,
    try_find,
    try_load,
)
from hal_conformance.test_graph import Capture, capturing
from hal_conformance.test_graph import launch as launch_graph

COUNT = 1000
COMPILES = 8  # the patience of tests that compile
ONES = modules.floats([1.0] * COUNT)
REFUSED = Status.INVALID_ARGUMENT


def written(hal: Driver, data: bytes, stream: int, device: int = 0) -> int:
    """A block that holds `data` when the stream gets there."""
    block = hal.malloc(len(data), device)
    hal.write(block, data, stream)
    return block


@covers("HAL-200")
def test_the_module_table_is_whole(hal: Driver) -> None:
    module = hal.module()
    assert module.version >= abi.MODULE_VERSION
    assert module.struct_size >= ctypes.sizeof(abi.ModuleApi)
    assert [name for name in abi.MODULE_ENTRIES if not getattr(module, name)] == []


@covers("HAL-200", patience=COMPILES)
def test_a_target_has_a_name_and_an_identity(hal: Driver) -> None:
    targets = [abi.ModuleTarget() for _ in range(2)]
    for target in targets:
        hal.ok(hal.module().target(-1, byref(target)))
        assert target.name and target.flavour in (b"host", b"simt")
        assert re.fullmatch(rb"[0-9a-f]{16,}", target.identity)
    assert targets[0].identity == targets[1].identity
    named = abi.ModuleOptions(target=targets[0].name)
    assert try_compile(hal, SOURCE, named)[0] is Status.OK


@covers("HAL-200")
def test_an_unknown_target_is_refused(hal: Driver) -> None:
    status, image = try_compile(hal, SOURCE, abi.ModuleOptions(target=b"no_such_target"))
    assert (status, image) == (REFUSED, None)


@covers("HAL-200", patience=COMPILES)
def test_a_source_that_does_not_compile_comes_back_as_the_compilers_text(hal: Driver) -> None:
    image, size = c_void_p(0x5A5A), c_size_t(0x5A5A)
    source = SOURCE + b"\nPUONE_MODULE_MAP(wrong, Args) { args.out[i] = no_such_name; }\n"
    status = Status(hal.module().compile(source, None, byref(image), byref(size)))
    text = hal.message()
    assert (status, image.value, size.value) == (REFUSED, 0x5A5A, 0x5A5A)
    line = SOURCE.count(b"\n") + 2
    assert "no_such_name" in text and re.search(rf"source[:(]{line}\b", text), text


@covers("HAL-200", "HAL-201", patience=COMPILES)
def test_threads_compile_at_once(hal: Driver) -> None:
    """Different sources, and twice the same."""
    sources = [SOURCE.replace(b"* 2", b"* %d" % factor) for factor in (2, 3, 4, 3)]
    with ThreadPoolExecutor(len(sources)) as pool:
        images = list(pool.map(lambda source: compiled(hal, source), sources))
    stream = hal.stream()
    a, out = written(hal, ONES, stream), hal.malloc(len(ONES))
    for factor, image in zip((2, 3, 4, 3), images, strict=True):
        launch(hal, found(hal, loaded(hal, image), "scale"), args(COUNT, a, out), stream)
        assert read_floats(hal, out, COUNT, stream) == [factor + 1.0] * COUNT


@covers("HAL-201", patience=COMPILES)
@pytest.mark.parametrize("count", [1, 31, 257, 100_000])
def test_a_map_computes_every_element_and_no_other(hal: Driver, count: int) -> None:
    stream, values = hal.stream(), [float(i % 1000) for i in range(count)]
    a, out = written(hal, modules.floats(values), stream), hal.malloc(4 * (count + 8))
    hal.memset(out, 0, 4 * (count + 8), stream)
    launch(hal, kernel_of(hal, "scale"), args(count, a, out), stream)
    assert read_floats(hal, out, count + 8, stream) == [x * 2 + 1 for x in values] + [0.0] * 8


@covers("HAL-201", patience=COMPILES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (7, 33), (100, 1000), (3, 5000)])
def test_blocks_reduce_rows(hal: Driver, rows: int, columns: int) -> None:
    stream, values = hal.stream(), [float(i % 7) for i in range(rows * columns)]
    a, out = written(hal, modules.floats(values), stream), hal.malloc(4 * rows)
    arguments = args(rows, a, out, n=columns, work=columns)
    launch(hal, kernel_of(hal, "row_sums"), arguments, stream)
    expected = [sum(values[row * columns : (row + 1) * columns]) for row in range(rows)]
    assert read_floats(hal, out, rows, stream) == expected


@covers("HAL-201", patience=COMPILES)
def test_a_launch_of_nothing_does_nothing(hal: Driver) -> None:
    stream = hal.stream()
    for name in KERNELS:
        launch(hal, kernel_of(hal, name), args(0, 0, 0), stream)
    hal.synchronize(stream)


@covers("HAL-201", needs=("multi_device",), patience=COMPILES)
def test_one_image_is_loaded_on_every_device(hal: Driver) -> None:
    image = compiled(hal)
    for device in range(hal.count()):
        stream = hal.stream(device)
        a, out = written(hal, ONES, stream, device), hal.malloc(len(ONES), device)
        kernel = found(hal, loaded(hal, image, device), "scale")
        launch(hal, kernel, args(COUNT, a, out), stream)
        assert read_floats(hal, out, COUNT, stream) == [3.0] * COUNT


@covers("HAL-201", patience=COMPILES)
def test_an_image_of_another_process_is_loaded(hal: Driver) -> None:
    """The driver must not have been used yet: a process may fork until then."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(compiled(hal))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        image = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    stream = hal.stream()
    a, out = written(hal, ONES, stream), hal.malloc(len(ONES))
    launch(hal, found(hal, loaded(hal, image), "scale"), args(COUNT, a, out), stream)
    assert read_floats(hal, out, COUNT, stream) == [3.0] * COUNT


@covers("HAL-202", patience=COMPILES)
def test_a_damaged_image_is_refused(hal: Driver) -> None:
    image = compiled(hal)
    middle = len(image) // 2
    damaged = {
        "changed": image[:middle] + bytes([image[middle] ^ 1]) + image[middle + 1 :],
        "its end changed": image[:-1] + bytes([image[-1] ^ 1]),
        "cut off": image[:middle],
        "its last byte missing": image[:-1],
        "longer": image + b"\0",
        "its start only": image[:8],
        "empty": b"",
        "zeros": bytes(len(image)),
        "a text": b"no image",
    }
    answers = {what: try_load(hal, given) for what, given in damaged.items()}
    assert answers == dict.fromkeys(damaged, (REFUSED, None))
    loaded(hal, image)


@covers("HAL-203", patience=COMPILES)
def test_only_the_kernels_of_the_source_are_found(hal: Driver) -> None:
    module = loaded(hal, compiled(hal))
    for name in ("no_such_kernel", "", "scal", "scale ", "SCALE", "scale_body"):
        assert try_find(hal, module, declaration(name)) == (Status.UNSUPPORTED, None)
    for name in KERNELS:
        assert try_find(hal, module, declaration(name))[0] is Status.OK


@covers("HAL-203", patience=COMPILES)
@pytest.mark.parametrize("more", [-8, 8, 4096])
def test_arguments_of_another_size_than_the_sources_are_refused(hal: Driver, more: int) -> None:
    module = loaded(hal, compiled(hal))
    kernel = declaration("scale", ctypes.sizeof(modules.Args) + more)
    kernel.access_count = 0
    assert try_find(hal, module, kernel) == (REFUSED, None)
    assert "scale" in hal.message()


@covers("HAL-203", patience=COMPILES)
def test_a_declaration_comes_back_as_it_was_given(hal: Driver) -> None:
    given = declaration("gather")
    status, kernel = try_find(hal, loaded(hal, compiled(hal)), given)
    assert status is Status.OK and kernel is not None
    said = [_said(given)]
    ctypes.memset(given.accesses, 0, ctypes.sizeof(abi.ModuleAccess))  # a copy was made of it
    said.append(_said(modules.declared(hal, kernel)))
    assert said[0] == said[1]


def _said(kernel: abi.ModuleKernel) -> tuple[object, ...]:
    accesses = [kernel.accesses[i] for i in range(kernel.access_count)]
    steps = [access.steps[i] for access in accesses for i in range(access.step_count)]
    return (
        (kernel.name, kernel.args_size),
        [(a.name, a.pointer, a.flags, a.element, a.step_count) for a in accesses],
        [(s.size.value, s.size.argument, s.stride.value, s.stride.argument) for s in steps],
        [kernel.errors[i] for i in range(kernel.error_count)],
    )


@covers("HAL-203", needs=("kernel_delay",), patience=COMPILES)
def test_other_kernels_have_no_declaration(hal: Driver) -> None:
    out = POINTER(abi.ModuleKernel)()
    status = hal.module().declaration(hal.kernel("delay"), byref(out))
    assert (status, bool(out)) == (Status.UNSUPPORTED, False)


@covers("HAL-204", patience=COMPILES)
def test_a_launch_is_in_its_streams_order(hal: Driver) -> None:
    kernel, stream, other = kernel_of(hal, "scale"), hal.stream(), hal.stream()
    a, out = hal.malloc(len(ONES)), hal.malloc(len(ONES))
    hal.memset(a, 0, len(ONES), stream)
    hal.memset(out, 0, len(ONES), stream)
    hal.synchronize(stream)
    with hal.held(stream):
        hal.write(a, ONES, stream)
        arguments = args(COUNT, a, out)
        launch(hal, kernel, arguments, stream)
        ctypes.memset(byref(arguments), 0xFF, ctypes.sizeof(arguments))
        launch(hal, kernel, args(COUNT, out, a), stream)
        assert hal.query(stream) == Status.NOT_READY
        assert read_floats(hal, out, COUNT, other) == [0.0] * COUNT
    assert read_floats(hal, a, COUNT, stream) == [7.0] * COUNT


@covers("HAL-204", needs=("trace",), patience=COMPILES)
def test_a_launch_is_traced_by_its_name_after_its_module_is_gone(hal: Driver) -> None:
    module = loaded(hal, compiled(hal))
    kernel, stream, block = found(hal, module, "scale"), hal.stream(), hal.malloc(len(ONES))
    hal.write(block, ONES, stream)
    hal.synchronize(stream)
    hal.ok(hal.trace().start())
    launch(hal, kernel, args(COUNT, block, block), stream)
    hal.ok(hal.module().unload(module))
    records, count = POINTER(abi.TraceRecord)(), c_uint64()
    hal.ok(hal.trace().stop(byref(records), byref(count)))
    assert [records[i].name for i in range(count.value)] == [b"scale"]


def raise_an_error(hal: Driver, kernel: int, stream: int) -> int:
    """Queue a kernel of which one index is out of bounds; where its results go."""
    index = (ctypes.c_int64 * 4)(2, 99, 0, 1)
    a = written(hal, modules.floats([5.0, 6.0, 7.0]), stream)
    out = written(hal, modules.floats([0.0] * 4), stream)
    launch(hal, kernel, args(4, a, out, index=written(hal, bytes(index), stream), n=3), stream)
    return out


@covers("HAL-205", patience=COMPILES)
@pytest.mark.parametrize("by", ["stream_synchronize", "device_synchronize"])
def test_an_error_of_a_kernel_is_reported_once_by_name(hal: Driver, by: str) -> None:
    stream = hal.stream()
    out = raise_an_error(hal, kernel_of(hal, "gather"), stream)
    argument = 0 if by == "device_synchronize" else stream
    assert getattr(hal.api, by)(argument) == Status.INTERNAL
    text = hal.message()
    assert "gather" in text and modules.OUT_OF_BOUNDS.format(99, 3) in text
    hal.synchronize(stream)
    hal.ok(hal.api.device_synchronize(0))
    assert read_floats(hal, out, 4, stream) == [7.0, 0.0, 5.0, 6.0]


@covers("HAL-205", patience=COMPILES)
def test_a_kernel_without_an_error_reports_none(hal: Driver) -> None:
    kernel, bad, good = kernel_of(hal, "gather"), hal.stream(), hal.stream()
    raise_an_error(hal, kernel, bad)
    a, index = written(hal, ONES, good), written(hal, bytes(8 * COUNT), good)
    out = hal.malloc(len(ONES))
    launch(hal, kernel, args(COUNT, a, out, index=index, n=COUNT), good)
    assert read_floats(hal, out, COUNT, good) == [1.0] * COUNT
    assert hal.api.stream_synchronize(bad) == Status.INTERNAL


def captured(hal: Driver, kernel: int, stream: int, a: int, out: int) -> Capture:
    """A graph that launches `scale`."""
    arguments = args(COUNT, a, out)
    with capturing(hal, stream) as capture:
        launch(hal, kernel, arguments, stream)
    ctypes.memset(byref(arguments), 0xFF, ctypes.sizeof(arguments))
    return capture


@covers("HAL-206", patience=COMPILES)
def test_a_captured_launch_runs_at_each_launch_of_the_graph(hal: Driver) -> None:
    stream = hal.stream()
    block = written(hal, ONES, stream)
    capture = captured(hal, kernel_of(hal, "scale"), stream, block, block)
    assert read_floats(hal, block, COUNT, stream) == [1.0] * COUNT
    for expected in (3.0, 7.0, 15.0):
        launch_graph(hal, capture, stream)
        assert read_floats(hal, block, COUNT, stream) == [expected] * COUNT


@covers("HAL-206", patience=COMPILES)
def test_a_module_stays_while_a_graph_uses_it(hal: Driver) -> None:
    stream, module = hal.stream(), loaded(hal, compiled(hal))
    block, kernel = written(hal, ONES, stream), found(hal, module, "scale")
    capture = captured(hal, kernel, stream, block, block)
    assert hal.module().unload(module) == REFUSED
    launch_graph(hal, capture, stream)
    launch(hal, kernel, args(COUNT, block, block), stream)
    assert read_floats(hal, block, COUNT, stream) == [7.0] * COUNT
    hal.ok(hal.graph().destroy(capture.handle))
    hal.ok(hal.module().unload(module))


@covers("HAL-207", patience=COMPILES)
def test_unloading_waits_for_queued_launches(hal: Driver) -> None:
    stream, image = hal.stream(), compiled(hal)
    module, other = loaded(hal, image), loaded(hal, image)
    kernel, block = found(hal, module, "scale"), written(hal, bytes(len(ONES)), stream)
    with ThreadPoolExecutor(1) as pool:
        with hal.held(stream):
            for _ in range(20):
                launch(hal, kernel, args(COUNT, block, block), stream)
            unloading = pool.submit(hal.module().unload, module)
            time.sleep(0.2)
            assert not unloading.done()
        hal.ok(unloading.result())
    assert read_floats(hal, block, COUNT, stream) == [2.0**20 - 1] * COUNT
    launch(hal, found(hal, other, "scale"), args(COUNT, block, block), stream)
    assert read_floats(hal, block, COUNT, stream) == [2.0**21 - 1] * COUNT


@covers("HAL-207", needs=("graph",), patience=COMPILES)
def test_unloading_waits_for_queued_launches_of_a_destroyed_graph(hal: Driver) -> None:
    stream, module = hal.stream(), loaded(hal, compiled(hal))
    block, kernel = written(hal, ONES, stream), found(hal, module, "scale")
    capture = captured(hal, kernel, stream, block, block)
    with ThreadPoolExecutor(1) as pool:
        with hal.held(stream):
            launch_graph(hal, capture, stream)
            launch_graph(hal, capture, stream)
            hal.ok(hal.graph().destroy(capture.handle))
            unloading = pool.submit(hal.module().unload, module)
            time.sleep(0.2)
            assert not unloading.done()
        hal.ok(unloading.result())
    assert read_floats(hal, block, COUNT, stream) == [7.0] * COUNT


@covers("HAL-207", patience=COMPILES)
def test_modules_are_loaded_and_unloaded_many_times(hal: Driver) -> None:
    """Each has its own code, though they come and go at the same addresses."""
    stream, block = hal.stream(), hal.malloc(len(ONES))
    images = [compiled(hal, SOURCE.replace(b"* 2", b"* %d" % factor)) for factor in (2, 3)]
    for _ in range(20):
        for factor, image in zip((2, 3), images, strict=True):
            module = loaded(hal, image)
            hal.write(block, ONES, stream)
            launch(hal, found(hal, module, "scale"), args(COUNT, block, block), stream)
            assert read_floats(hal, block, COUNT, stream) == [factor + 1.0] * COUNT
            hal.ok(hal.module().unload(module))
    hal.ok(hal.module().unload(None))
