# SPDX-License-Identifier: BSD-3-Clause
"""A source in the dialect of modules, and what the suite does with its kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int64, c_size_t, c_void_p

from hal_conformance import abi
from hal_conformance.abi import ModuleAccessFlags, Status
from hal_conformance.driver import Driver

SOURCE = b"""\
struct Args {
  Arguments arguments;
  const float* a;
  const int64_t* index;
  float* out;
  int64_t n;
};

PUONE_MODULE_MAP(scale, Args) {
  args.out[i] = args.a[i] * 2 + 1;
}

PUONE_MODULE_BLOCKS(row_sums, Args) {
  const float* const row = args.a + index * args.n;
  const float sum = block.reduce(
      args.n, 0.0f, [=](int64_t j) { return row[j]; }, [](float x, float y) { return x + y; });
  block.once([&] { args.out[index] = sum; });
}

PUONE_MODULE_MAP(gather, Args) {
  const int64_t at = args.index[i];
  if (args.arguments.check(0, at, args.n)) args.out[i] = args.a[at];
}
"""
KERNELS = ("scale", "row_sums", "gather")
OUT_OF_BOUNDS = "index {} is not in a tensor of {} elements"


class Args(ctypes.Structure):
    """The arguments of each kernel of SOURCE."""

    _fields_ = [
        ("arguments", abi.ModuleArguments),
        ("a", c_void_p),
        ("index", c_void_p),
        ("out", c_void_p),
        ("n", c_int64),
    ]


def args(count: int, a: int, out: int, *, index: int = 0, n: int = 0, work: int = 0) -> Args:
    """Arguments for `count` indices or rows; device addresses, 0 for none."""
    return Args(abi.ModuleArguments(count=count, work=work), a, index, out, n)


def dense(
    name: str,
    field: str,
    flags: ModuleAccessFlags,
    element: int,
    struct: type[ctypes.Structure] | None = None,
) -> abi.ModuleAccess:
    """An access to as many dense elements as the launch has indices."""
    count = abi.ModuleArguments.count.offset
    step = abi.ModuleStep(abi.ModuleNumber(argument=count), abi.ModuleNumber(value=element))
    place = getattr(struct or Args, field).offset
    return abi.ModuleAccess(name.encode(), place, flags, element, 1, (abi.ModuleStep * 1)(step))


def declaration(name: str, size: int = ctypes.sizeof(Args)) -> abi.ModuleKernel:
    """What the suite says of a kernel of SOURCE."""
    read, write = ModuleAccessFlags.READ, ModuleAccessFlags.WRITE
    accesses = (
        dense("out", "out", write, 4),
        dense("a", "a", read | ModuleAccessFlags.PARTIAL, 4),
        dense("index", "index", read, 8),
    )
    return abi.ModuleKernel(
        name=name.encode(),
        args_size=size,
        access_count=len(accesses),
        accesses=(abi.ModuleAccess * len(accesses))(*accesses),
        error_count=1,
        errors=(c_char_p * 1)(OUT_OF_BOUNDS.encode()),
    )


def try_compile(
    hal: Driver, source: bytes, options: abi.ModuleOptions | None = None
) -> tuple[Status, bytes | None]:
    """What compile() answers, and the image, if it gave one."""
    image, size = c_void_p(), c_size_t()
    given = byref(options) if options is not None else None
    status = Status(hal.module().compile(source, given, byref(image), byref(size)))
    if not image.value:
        return status, None
    made = ctypes.string_at(image.value, size.value)
    hal.ok(hal.module().free_image(image))
    return status, made


def compiled(hal: Driver, source: bytes = SOURCE) -> bytes:
    """The image of a source that compiles."""
    status, image = try_compile(hal, source)
    hal.ok(status)
    assert image, "compile returned OK and no image"
    return image


def try_load(hal: Driver, image: bytes, device: int = 0) -> tuple[Status, int | None]:
    out = c_void_p()
    return Status(hal.module().load(device, image, len(image), byref(out))), out.value


def loaded(hal: Driver, image: bytes, device: int = 0) -> int:
    status, module = try_load(hal, image, device)
    hal.ok(status)
    assert module, "load returned OK and NULL"
    return module


def try_find(hal: Driver, module: int, kernel: abi.ModuleKernel) -> tuple[Status, int | None]:
    out = c_void_p()
    return Status(hal.module().find(module, byref(kernel), byref(out))), out.value


def found(hal: Driver, module: int, name: str) -> int:
    """A kernel of SOURCE."""
    status, kernel = try_find(hal, module, declaration(name))
    hal.ok(status)
    assert kernel, "find returned OK and NULL"
    return kernel


def kernel_of(hal: Driver, name: str, device: int = 0) -> int:
    """A kernel of SOURCE, compiled and loaded."""
    return found(hal, loaded(hal, compiled(hal), device), name)


def declared(hal: Driver, kernel: int) -> abi.ModuleKernel:
    out = POINTER(abi.ModuleKernel)()
    hal.ok(hal.module().declaration(kernel, byref(out)))
    return out.contents


def launch(hal: Driver, kernel: int, arguments: Args, stream: int) -> None:
    size = ctypes.sizeof(arguments)
    hal.ok(hal.api.kernel_launch(kernel, byref(arguments), size, stream, None))


def floats(values: Sequence[float]) -> bytes:
    return bytes((ctypes.c_float * len(values))(*values))


def read_floats(hal: Driver, address: int, count: int, stream: int) -> list[float]:
    """Elements of device memory when the stream is done. Waits."""
    data = hal.read(address, 4 * count, stream)
    return list((ctypes.c_float * count).from_buffer_copy(data))
