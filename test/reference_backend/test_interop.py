# SPDX-License-Identifier: BSD-3-Clause
"""Sharing memory by DLPack, on a driver that pretends to sit on a runtime others use as well.

The odd driver wraps sim and gives its memory and streams a name of a native device. What another
library would do is played by Python through ctypes: it reads the C structures of the capsules,
makes capsules of its own, and uses streams by their addresses.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from interpreter import Python
from suites import odd

Run = Callable[[str], None]

PRELUDE = """
import ctypes, gc, torch, torch_puone
from ctypes import POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64
from ctypes import c_void_p
from torch_puone.interop import export, from_dlpack

NATIVE, FIRST_ID, HOST = 2, 4, 1

class DLTensor(Structure):
    _fields_ = [("data", c_uint64), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]

Delete = ctypes.CFUNCTYPE(None, c_void_p)

class Unversioned(Structure):
    name = b"dltensor"
    _fields_ = [("tensor", DLTensor), ("context", c_void_p), ("deleter", Delete)]

class Versioned(Structure):
    name = b"dltensor_versioned"
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p),
                ("deleter", Delete), ("flags", c_uint64), ("tensor", DLTensor)]

api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [c_void_p, ctypes.c_char_p, c_void_p]

def managed(capsule, kind=Versioned):
    return kind.from_address(api.PyCapsule_GetPointer(capsule, kind.name))

class Foreign:
    '''Memory of another library on the native device: here, a block that `owner` keeps alive.'''
    def __init__(self, owner, shape, strides=None, kind=Versioned, byte_offset=0, major=1):
        self.owner, self.deleted, self.streams, self.kind = owner, 0, [], kind
        self.shape = (c_int64 * len(shape))(*shape)
        self.strides = (c_int64 * len(shape))(*strides) if strides else None
        self.managed = kind()
        self.managed.deleter = self.delete = Delete(self.forget)
        if kind is Versioned:
            self.managed.major = major
        self.managed.tensor = DLTensor(
            owner.data_ptr(), NATIVE, FIRST_ID + owner.device.index, len(shape), 2, 32, 1,
            self.shape, self.strides, byte_offset)
    def forget(self, address):
        assert address == ctypes.addressof(self.managed)
        self.deleted += 1
    def __dlpack_device__(self):
        return self.managed.tensor.device_type, self.managed.tensor.device_id
    def __dlpack__(self, *, stream, max_version=None):
        if max_version is not None and self.kind is Unversioned:
            raise TypeError("max_version")
        self.streams.append(stream)
        return api.PyCapsule_New(ctypes.addressof(self.managed), self.kind.name, None)

def raised(kind, text, act):
    try:
        act()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")

x = torch.arange(24.0, device="puone:1").reshape(4, 6)
"""


@pytest.fixture(scope="module")
def shared(python: Python) -> Run:
    """Runs code, after the prelude, on the driver with a native runtime."""
    env = {**odd("native_runtime"), "PUONE_SIM_DEVICES": "2"}

    def run(code: str) -> None:
        done = python(PRELUDE + code, env=env)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""

    return run


def test_an_exported_tensor_has_the_name_of_the_native_device(shared: Run) -> None:
    shared("""
theirs = export(x)
assert theirs.__dlpack_device__() == (NATIVE, FIRST_ID + 1)
capsule = theirs.__dlpack__(stream=-1, max_version=(1, 0))
found = managed(capsule)
assert (found.major, found.flags) == (1, 0)
assert (found.tensor.device_type, found.tensor.device_id) == (NATIVE, FIRST_ID + 1)
""")


@pytest.mark.parametrize("kind", ["Versioned", "Unversioned"])
def test_an_exported_view_says_where_it_lies(shared: Run, kind: str) -> None:
    shared(f"""
kind = {kind}
view = x.t()[1:, ::2]
version = (1, 0) if kind is Versioned else None
capsule = export(view).__dlpack__(stream=-1, max_version=version)
tensor = managed(capsule, kind).tensor
assert tensor.data + tensor.byte_offset == view.data_ptr() != x.data_ptr()
assert tensor.shape[:2] == list(view.shape) and tensor.strides[:2] == list(view.stride())
assert (tensor.ndim, tensor.code, tensor.bits, tensor.lanes) == (2, 2, 32, 1)
""")


def test_exported_numbers_have_their_type(shared: Run) -> None:
    shared("""
TYPES = {torch.bool: (6, 8), torch.uint8: (1, 8), torch.int64: (0, 64), torch.float16: (2, 16),
         torch.bfloat16: (4, 16), torch.float64: (2, 64), torch.complex64: (5, 64)}
for dtype, expected in TYPES.items():
    capsule = export(x.to(dtype)).__dlpack__(stream=-1, max_version=(1, 0))
    tensor = managed(capsule).tensor
    assert (tensor.code, tensor.bits) == expected, dtype
""")


def test_an_exported_tensor_lives_until_the_consumer_lets_go(shared: Run) -> None:
    shared("""
torch.puone.synchronize()
before = torch.puone.memory_allocated(1)
y = torch.empty(1 << 20, device="puone:1")
capsule = export(y).__dlpack__(stream=-1, max_version=(1, 0))
del y
assert torch.puone.memory_allocated(1) > before
del capsule
assert torch.puone.memory_allocated(1) == before

y = from_dlpack(export(torch.empty(1 << 20, device="puone:1")))
gc.collect()
assert torch.puone.memory_allocated(1) > before
kept = y[5:]
del y
assert torch.puone.memory_allocated(1) > before
del kept
assert torch.puone.memory_allocated(1) == before
""")


def test_what_comes_back_is_the_same_memory(shared: Run) -> None:
    shared("""
y = from_dlpack(export(x.t()))
assert (y.device, y.data_ptr()) == (x.device, x.data_ptr())
assert (y.shape, y.stride(), y.dtype) == (x.t().shape, x.t().stride(), x.dtype)
y.mul_(2)
assert torch.equal(x.cpu(), torch.arange(24.0).reshape(4, 6) * 2)
for odd in (torch.ones((), device="puone"), torch.ones(0, 3, device="puone")):
    back = from_dlpack(export(odd))
    assert (back.shape, back.device) == (odd.shape, odd.device)
capsule = export(x).__dlpack__(stream=-1, max_version=(1, 0), copy=True)
assert managed(capsule).tensor.data != x.data_ptr()
""")


@pytest.mark.parametrize("kind", ["Versioned", "Unversioned"])
def test_memory_of_others_is_used_where_it_lies(shared: Run, kind: str) -> None:
    shared(f"""
source = Foreign(x, (3, 4), (1, 6), kind={kind}, byte_offset=8)
y = from_dlpack(source)
assert y.device == x.device and y.data_ptr() == x.data_ptr() + 8
expected = torch.arange(24.0).as_strided((3, 4), (1, 6), 2)
assert torch.equal(y.cpu(), expected)
assert torch.equal((y + 1).cpu(), expected + 1)
without_strides = Foreign(x, (4, 6), kind={kind})
z = from_dlpack(without_strides)
assert z.is_contiguous() and torch.equal(z.cpu(), x.cpu())
del y, z
""")


@pytest.mark.parametrize("kind", ["Versioned", "Unversioned"])
def test_memory_of_others_is_let_go_once(shared: Run, kind: str) -> None:
    shared(f"""
source = Foreign(x, (4, 6), kind={kind})
y = from_dlpack(source)
part = y[2:]
del y
gc.collect()
assert source.deleted == 0
part.record_stream(torch.Stream("puone:1"))
del part
gc.collect()
assert source.deleted == 1
""")


def test_a_stream_of_others_waits_for_the_exported_tensor(shared: Run) -> None:
    shared("""
torch.puone.synchronize(1)
torch.puone.set_device(1)
theirs = torch.Stream("puone:1")
with theirs:
    address = torch_puone._C.native_stream(1)
assert address != torch_puone._C.native_stream(1)
torch.puone._sleep_ms(150)
x.fill_(7)
capsule = export(x).__dlpack__(stream=address, max_version=(1, 0))
assert not torch.puone.current_stream(1).query(), "the export has waited"
with theirs:
    seen = x.clone()
theirs.synchronize()
assert torch.equal(seen.cpu(), torch.full((4, 6), 7.0))
""")


def test_the_sanitizer_sees_the_wait_of_an_export(shared: Run) -> None:
    shared("""
torch.puone.set_device(1)
theirs = torch.Stream("puone:1")
with theirs:
    address = torch_puone._C.native_stream(1)
for stream, kinds in ((address, []), (-1, ["race"])):
    torch.puone.synchronize(1)
    with torch.puone.sanitizer.watch("collect") as reports:
        x.fill_(7)
        capsule = export(x).__dlpack__(stream=stream, max_version=(1, 0))
        with theirs:
            x.sum()
    assert [report.kind for report in reports] == kinds, [str(report) for report in reports]
""")


def test_without_a_stream_the_default_stream_waits(shared: Run) -> None:
    """The odd driver's default stream is the calling thread, so that it can be seen to wait."""
    shared("""
torch.puone.set_device(1)
for stream, waits in ((None, True), (1, True), (-1, False)):
    torch.puone._sleep_ms(150)
    export(x).__dlpack__(stream=stream, max_version=(1, 0))
    assert torch.puone.current_stream(1).query() == waits, stream
    torch.puone.synchronize(1)
raised(RuntimeError, "native_stream_wait_event", lambda: export(x).__dlpack__(stream=0))
""")


def test_the_producer_is_told_the_stream_that_will_use_its_memory(shared: Run) -> None:
    shared("""
source = Foreign(x, (4, 6))
stream = torch.Stream("puone:1")
with stream:
    from_dlpack(source)
    assert source.streams == [torch_puone._C.native_stream(1)]
assert source.streams != [torch_puone._C.native_stream(1)]
""")


#: Arguments of the prelude's raised().
REFUSED = (
    "BufferError, 'require gradient', lambda: export(x.clone().requires_grad_())",
    "BufferError, 'conjugate', lambda: export(x.to(torch.complex64).conj())",
    "BufferError, 'negative', lambda: export(x.to(torch.complex64).conj().imag)",
    "ValueError, 'not of cpu', lambda: export(x.cpu())",
    "BufferError, 'not (1, 0)', lambda: export(x).__dlpack__(dl_device=(HOST, 0))",
    "BufferError, '(1, 0), which is no device', lambda: from_dlpack(x.cpu())",
    "BufferError, 'is not of puone:0', lambda: from_dlpack(moved)",
    "BufferError, 'is not of puone:1', lambda: from_dlpack(lost)",
    "ValueError, 'consumed before', lambda: from_dlpack(Consumed(x, (4, 6)))",
    "BufferError, 'DLPack 2', lambda: from_dlpack(Foreign(x, (4, 6), major=2))",
)


def test_what_cannot_be_shared_is_refused(shared: Run) -> None:
    attempts = "\n".join(f"raised({arguments})" for arguments in REFUSED)
    shared(f"""
class Consumed(Foreign):
    def __dlpack__(self, **options):
        capsule = super().__dlpack__(**options)
        assert api.PyCapsule_SetName(ctypes.py_object(capsule), b"used_dltensor_versioned") == 0
        return capsule

moved, lost = Foreign(x, (4, 6)), Foreign(x, (4, 6))
moved.managed.tensor.device_id = FIRST_ID
lost.managed.tensor.data = 4096
{attempts}
""")


def test_a_driver_without_a_native_runtime_says_so(python: Python) -> None:
    done = python(
        """
import torch, torch_puone
from torch_puone.interop import export, from_dlpack
for act in (lambda: export(torch.ones(2, device="puone")), lambda: from_dlpack(torch.ones(2))):
    try:
        act()
    except NotImplementedError as error:
        assert "dlpack" in str(error) and "driver sim does not support it" in str(error), error
    else:
        raise AssertionError("nothing was raised")
""",
        env={"PUONE_DRIVER": "sim"},
    )
    assert done.returncode == 0, done.stderr
