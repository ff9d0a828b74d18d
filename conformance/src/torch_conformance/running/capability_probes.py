# SPDX-License-Identifier: BSD-3-Clause
"""How to find out what a backend is able to do.

A descriptor declares a capability true or false; one that it leaves open is probed in a worker and
reported as probed. A probe returns True if the capability is present, and False if it is absent.
An exception with which PyTorch or the backend says that it does not support something means absent,
too. Any other exception, a failed assertion, a crash or a hang means that the capability is broken.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from itertools import pairwise
from typing import TYPE_CHECKING

from torch_conformance.authoring import backend
from torch_conformance.authoring.backend import first_line
from torch_conformance.authoring.ranks import Rank, group_name, on_ranks
from torch_conformance.authoring.refusal import refuses
from torch_conformance.spec.capabilities import MEANING, NO_STORAGE

if TYPE_CHECKING:
    from torch_conformance.authoring.device import Device

Body = Callable[["Device"], bool]

#: Why a capability is absent whose probe answers no.
ABSENT = "absent"
#: How often a probe that measures time is tried: on a busy machine the first answer may be wrong.
ATTEMPTS = 3
#: Packages name the backends of torch.distributed that torch 2.15 and later find, under this.
GROUP_BACKENDS = "torch.distributed.backends"


@dataclass(frozen=True)
class Probe:
    """Finds out whether a backend has one capability."""

    body: Body
    absent_if: tuple[type[Exception], ...] = ()
    """Exceptions that mean absent, besides those of any refusal."""
    refusals: str = ""
    """A pattern of messages that mean absent, besides those of any refusal."""
    attempts: int = 1
    loads: bool = False
    """Whether it starts a process that loads the backend, or loads as much itself: it may take as
    much longer as the descriptor gives to loading."""

    @property
    def file(self) -> str:
        """Where the body is."""
        return inspect.unwrap(self.body).__code__.co_filename

    def __call__(self, dev: Device) -> bool:
        """Whether the capability is present; raises what shows that it is broken."""
        return self.absence(dev) is None

    def absence(self, dev: Device) -> str | None:
        """Why the capability is absent, or None; raises what shows that it is broken."""
        absence: str | None = None
        for _ in range(self.attempts):
            absence = self._once(dev)
            if absence is None:
                break
        return absence

    def _once(self, dev: Device) -> str | None:
        try:
            return None if self.body(dev) else ABSENT
        except Exception as error:
            if not self._refuses(error):
                raise
            return f"{type(error).__name__}: {first_line(error)}"

    def _refuses(self, error: Exception) -> bool:
        return isinstance(error, self.absent_if) or refuses(error, self.file, self.refusals)


PROBES: dict[str, Probe] = {}
#: Capabilities that only the descriptor itself can tell: their probes say what it leaves open.
OF_THE_DESCRIPTOR = frozenset(("fork", "threads", "autoload", "fallback_counter"))


def probe(
    name: str,
    *,
    absent_if: tuple[type[Exception], ...] = (),
    refusals: str = "",
    attempts: int = 1,
    loads: bool = False,
) -> Callable[[Body], Probe]:
    """Register the function that finds out whether a backend has capability `name`."""
    if name not in MEANING:
        raise ValueError(f"unknown capability {name!r}")

    def register(body: Body) -> Probe:
        PROBES[name] = Probe(body, absent_if, refusals, attempts, loads)
        return PROBES[name]

    return register


@probe("accelerator")
def _accelerator(dev: Device) -> bool:
    return dev.is_accelerator


@probe("privateuse1")
def _privateuse1(dev: Device) -> bool:
    import torch

    return torch._C._get_privateuse1_backend_name() == dev.type


@probe("multi_device")
def _multi_device(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator or dev.count < 2:
        return False
    values = torch.ones(2, device=dev.device(1)).cpu().tolist()
    assert values == [1.0, 1.0], f"ones on device 1 are {values}"
    return True


@probe("streams")
def _streams(dev: Device) -> bool:
    if not dev.is_accelerator:
        return False
    before, stream = dev.current_stream(), dev.stream()
    if stream == before:
        return False  # A guard made in Python knows the default stream only.
    with stream:
        stream.synchronize()
    assert dev.current_stream() == before, "the former stream is not current after a `with` block"
    return True


@probe("stream_priorities", refusals="priorit")
def _stream_priorities(dev: Device) -> bool:
    if not dev.is_accelerator:
        return False
    dev.stream(priority=-1).synchronize()
    return _streams(dev)


@probe("events")
def _events(dev: Device) -> bool:
    if not dev.is_accelerator:
        return False
    event = dev.event()
    event.record(dev.current_stream())
    event.synchronize()
    assert event.query(), "an event is not complete after synchronize()"
    return True


@probe("event_timing", refusals="timing")
def _event_timing(dev: Device) -> bool:
    if not dev.is_accelerator:
        return False
    start, end = dev.event(timing=True), dev.event(timing=True)
    start.record(dev.current_stream())
    end.record(dev.current_stream())
    end.synchronize()
    elapsed = start.elapsed_time(end)
    assert elapsed >= 0.0, f"{elapsed} ms elapsed between an event and a later one"
    return True


@probe("delay", attempts=ATTEMPTS)
def _delay(dev: Device) -> bool:
    if not dev.is_accelerator:
        return False
    stream = dev.stream()
    with stream:
        dev.delay(50.0)
        busy = not stream.query()
    stream.synchronize()
    return busy


@probe("async_copy", refusals="pin_memory allocator", attempts=ATTEMPTS)
def _async_copy(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    source = torch.ones(4).pin_memory()
    target = torch.empty(4, device=dev.device())
    stream = dev.stream()
    with stream:
        dev.delay(100.0)
        begin = time.monotonic()
        target.copy_(source, non_blocking=True)
        waited = time.monotonic() - begin
    stream.synchronize()
    copied = target.cpu().tolist()
    assert copied == [1.0] * 4, f"the copy of ones is {copied}"
    return waited < 0.05


@probe("pinned_memory", refusals="pin_memory allocator")
def _pinned_memory(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    pinned = torch.empty(1, pin_memory=not dev.factories_pin_for_cuda())
    assert pinned.pin_memory().is_pinned(), "a pinned tensor says that it is not pinned"
    return True


@probe("record_stream")
def _record_stream(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    torch.empty(1, device=dev.device()).record_stream(dev.stream())
    return True


@probe("memory_stats")
def _memory_stats(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    before = torch.accelerator.memory_allocated(0)
    kept = torch.empty(1 << 20, dtype=torch.uint8, device=dev.device(0))
    if not torch.accelerator.memory_stats(0):
        return False
    grown = torch.accelerator.memory_allocated(0) - before
    assert grown >= kept.numel(), f"memory_allocated grew by {grown} for {kept.numel()} bytes"
    return True


@probe("memory_info")
def _memory_info(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    free, total = torch.accelerator.get_memory_info(0)
    assert 0 <= free <= total > 0, f"{free} bytes of {total} are free"
    return True


@probe("empty_cache")
def _empty_cache(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    torch.accelerator.empty_cache()
    return True


@probe("allocator_settings")
def _allocator_settings(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    torch._C._accelerator_setAllocatorSettings("")
    return True


@probe("memory_protected", refusals=NO_STORAGE)
def _memory_protected(dev: Device) -> bool:
    import torch

    from torch_conformance.authoring.device import run_forked

    if not dev.is_accelerator or not hasattr(os, "fork") or not _addresses(dev):
        return False
    address = torch.zeros(16, device=dev.device()).data_ptr()

    def dereference() -> None:
        for fatal in (signal.SIGSEGV, signal.SIGBUS):
            signal.signal(fatal, signal.SIG_DFL)
        ctypes.string_at(address, 1)

    status, value = run_forked(dereference)
    if -status in (signal.SIGSEGV, signal.SIGBUS):
        return address != 0
    assert status == 0, f"a process that reads device memory ended with status {status}: {value}"
    return False


@probe("device_guard")
def _device_guard(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    index = torch.accelerator.current_device_index()
    torch.accelerator.set_device_index(index)
    now = torch.accelerator.current_device_index()
    assert now == index, f"device {index} was set, and device {now} is current"
    try:
        torch.accelerator.set_device_index(dev.count)
    except Exception:
        return True
    # A guard that takes any index, as that of backends in Python does, sets nothing.
    torch.accelerator.set_device_index(index)
    return False


@probe("synchronize")
def _synchronize(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    torch.accelerator.synchronize(0)
    return True


@probe("storages", refusals=NO_STORAGE)
def _storages(dev: Device) -> bool:
    import torch

    storage = torch.zeros(4, device=dev.device()).untyped_storage()
    assert storage.nbytes() >= 16, f"the storage of 16 bytes has {storage.nbytes()}"
    storage.data_ptr()  # Raises for the empty storage of a tensor that wraps others.
    return True


@probe("plain_tensors")
def _plain_tensors(dev: Device) -> bool:
    import torch

    # PyTorch prints, formats and exports tensors of its own class only.
    return type(torch.zeros(2).to(dev.device())) is torch.Tensor


@probe("addresses", refusals=NO_STORAGE)
def _addresses(dev: Device) -> bool:
    import torch

    # Objects on the heap may be farther apart than small blocks are long; handles say nothing of
    # the size of what they stand for.
    size = 1 << 20
    alive = [torch.zeros(size, dtype=torch.uint8, device=dev.device()) for _ in range(4)]
    pointers = sorted(x.data_ptr() for x in alive)
    return all(high - low >= size for low, high in pairwise(pointers))


#: c10::DeviceType::PrivateUse1, and c10::GetAllocator(const DeviceType&) as g++ and clang name it.
_PRIVATEUSE1 = 20
_GET_ALLOCATOR = "_ZN3c1012GetAllocatorERKNS_10DeviceTypeE"


def _has_allocator(dev: Device) -> bool:
    """Whether the backend has registered a c10::Allocator; True where that cannot be found out.

    A backend in Python has none. To make a storage on it ends the process: PyTorch does not ask.
    """
    import torch

    if not _privateuse1(dev):
        return True
    get = getattr(ctypes.CDLL(torch._C.__file__), _GET_ALLOCATOR, None)
    if get is None:
        return True
    get.restype = ctypes.c_void_p
    return get(ctypes.byref(ctypes.c_int8(_PRIVATEUSE1))) is not None


@probe("storage_allocation", refusals="device not recognized")
def _storage_allocation(dev: Device) -> bool:
    import torch

    if not _has_allocator(dev):
        return False
    size = torch.UntypedStorage(8, device=dev.device()).nbytes()
    assert size == 8, f"a storage of 8 bytes has {size}"
    return True


@probe("storage_resize", refusals=f"{NO_STORAGE}|got unexpected device type")
def _storage_resize(dev: Device) -> bool:
    import torch

    storage = torch.zeros(8, dtype=torch.uint8, device=dev.device()).untyped_storage()
    storage.resize_(1 << 16)
    size = storage.nbytes()
    assert size == 1 << 16, f"a storage resized to {1 << 16} bytes has {size}"
    return True


@probe("generator", refusals="please register a generator")
def _generator(dev: Device) -> bool:
    import torch

    seed = torch.Generator(device=dev.device()).manual_seed(7).initial_seed()
    assert seed == 7, f"a generator with seed 7 has initial_seed() {seed}"
    return True


@probe("generator_offset", refusals="please register a generator|does not use offset")
def _generator_offset(dev: Device) -> bool:
    import torch

    generator = torch.Generator(device=dev.device())
    generator.set_offset(8)
    offset = generator.get_offset()
    assert offset == 8, f"a generator with offset 8 has get_offset() {offset}"
    return True


@probe("capability_query")
def _capability_query(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    assert torch.accelerator.get_device_capability(0), "get_device_capability(0) is empty"
    return True


@probe("autocast", refusals="has not registered a module")
def _autocast(dev: Device) -> bool:
    import torch

    # is_autocast_available is true of every PrivateUse1; the context raises where there is nothing.
    with torch.autocast(dev.type):
        enabled = torch.is_autocast_enabled(dev.type)
    assert enabled, "autocast is off within torch.autocast: its default data type is not supported"
    return True


_NO_LOCATION = "don't know how to (determine|restore) data location"


@probe("serialization", refusals=f"{NO_STORAGE}|{_NO_LOCATION}")
def _serialization(dev: Device) -> bool:
    import io

    import torch

    if not _has_allocator(dev):
        return False
    buffer = io.BytesIO()
    torch.save(torch.ones(2, device=dev.device()), buffer)
    buffer.seek(0)
    loaded = torch.load(buffer)
    assert loaded.device.type == dev.type, f"a saved tensor was loaded on {loaded.device}"
    assert loaded.cpu().tolist() == [1.0, 1.0], f"saved ones were loaded as {loaded.cpu().tolist()}"
    return True


#: The parent ends a child that hangs, perhaps in a handler of the fork.
_FORK = """
import os, signal, time, torch
child = os.fork()
if child == 0:
    right = (torch.ones(4).to({device!r}) + 1).cpu().tolist() == [2.0] * 4
    os._exit(0 if right else 1)
end, ended = time.monotonic() + 8, (0, 0)
while not ended[0] and time.monotonic() < end:
    time.sleep(0.01)
    ended = os.waitpid(child, os.WNOHANG)
if not ended[0]:
    os.kill(child, signal.SIGKILL)
print("used:", ended[0] != 0 and ended[1] == 0)
"""


@probe("fork", loads=True)
def _fork(dev: Device) -> bool:
    # In a process of its own, whose device nobody has used: only its threads can be in the way.
    if not hasattr(os, "fork") or dev.descriptor.start_method != "fork":
        return False
    return "used: True" in dev.python(_FORK.format(device=str(dev.device()))).stdout


@probe("threads")
def _threads(dev: Device) -> bool:
    """PyTorch itself uses threads; a backend that does not bear them has to say so."""
    return True


@probe("autoload")
def _autoload(dev: Device) -> bool:
    return dev.is_accelerator and dev.descriptor.autoload


_RECOVERY = """
import torch
x, beyond = torch.ones(4).to({device!r}), torch.tensor([4]).to({device!r})
try:
    x.index_select(0, beyond).cpu()
    print("no error")
except (RuntimeError, IndexError):
    print("raised", flush=True)
    print("goes on:", (torch.ones(4).to({device!r}) + x).cpu().tolist() == [2.0] * 4)
"""


@probe("error_recovery", loads=True)
def _error_recovery(dev: Device) -> bool:
    # In a process of its own: the error may be the end of the one that has it.
    done = dev.python(_RECOVERY.format(device=str(dev.device())))
    assert "raised" in done.stdout or "no error" in done.stdout, (
        f"a process with a bad index ended with status {done.returncode} and no exception for it"
    )
    return "goes on: True" in done.stdout


@probe("peer_copy")
def _peer_copy(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator or dev.count < 2:
        return False
    values = torch.ones(2, device=dev.device(0)).to(dev.device(1)).cpu().tolist()
    assert values == [1.0, 1.0], f"ones copied from device 0 to device 1 are {values}"
    return True


@probe("native_handle")
def _native_handle(dev: Device) -> bool:
    return dev.is_accelerator and getattr(dev.stream(), "native_handle", None) is not None


@probe("backend_meta")
def _backend_meta(dev: Device) -> bool:
    import torch

    from torch_conformance.authoring.observe import backend_meta

    if not dev.descriptor.backend_meta:
        return False
    tensor = torch.ones(2, device=dev.device())
    dev.attach_backend_meta(tensor)
    assert backend_meta(tensor), "a tensor has no metadata after attaching it"
    return True


@probe("collectives", loads=True)
def _collectives(dev: Device) -> bool:
    import torch.distributed as dist

    name = group_name(dev.descriptor, dev.type)
    if dev.descriptor.single_process or name is None:
        return False
    known = {*dist.Backend.backend_list, *(e.name for e in entry_points(group=GROUP_BACKENDS))}
    known -= {dist.Backend.UNDEFINED}
    for part in name.lower().split(","):  # cpu:gloo,puone:pccl
        assert part.rpartition(":")[2] in known, (
            f"torch.distributed has no backend {part!r}, which the descriptor's process_group"
            f" names; it has {', '.join(sorted(known))}: correct the name, or import the package"
            " that registers it"
        )
    found = on_ranks(dev, _sum_of_ranks, limit=dev.descriptor.deadlines.startup)
    assert found == [3.0, 3.0], f"1.0 of rank 0 and 2.0 of rank 1 are added to {found}"
    return True


def _sum_of_ranks(rank: Rank) -> float:
    import torch
    import torch.distributed as dist

    with rank.group():
        tensor = torch.full((1,), rank.index + 1.0, device=rank.device)
        dist.all_reduce(tensor)
        return tensor.item()


@probe("ipc", refusals=r"_share_fd_: only available on CPU", loads=True)
def _ipc(dev: Device) -> bool:
    if dev.descriptor.single_process:
        return False
    found = on_ranks(dev, _shared_by_ranks, limit=dev.descriptor.deadlines.startup)
    assert found == [4.0, 4.0], f"rank 1 set rank 0's tensor to 4.0, and the ranks read {found}"
    return True


def _shared_by_ranks(rank: Rank) -> float:
    import torch

    with rank.channel() as channel:
        if rank.index == 0:
            tensor = torch.ones(1, device=rank.dev.device())
            channel.send(tensor)
            channel.recv()
            return tensor.item()
        tensor = channel.recv()
        tensor.fill_(4.0)
        value = tensor.item()
        channel.send(None)
        return value


@probe("profiler")
def _profiler(dev: Device) -> bool:
    import torch
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    if not dev.is_accelerator:
        return False
    x = torch.ones(1024, device=dev.device())
    own = {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA", "hpu": "HPU"}.get(dev.type, "PrivateUse1")
    activity = getattr(ProfilerActivity, own)
    if activity not in torch.profiler.supported_activities():
        return False
    with profile(activities=[ProfilerActivity.CPU, activity], acc_events=True) as watched:
        (x * 2).cpu()
    return any(event.device_type == getattr(DeviceType, own) for event in watched.events())


@probe("memory_history")
def _memory_history(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    memory = getattr(torch.get_device_module(dev.type), "memory", None)
    if memory is None or not hasattr(memory, "_record_memory_history"):
        return False
    memory._record_memory_history(stacks="python")
    torch.empty(1024, device=dev.device())
    entries = memory._snapshot()["device_traces"][0]
    memory._record_memory_history(None)
    return any(entry["action"] == "alloc" for entry in entries)


@probe("graphs", refusals="Graph is not supported on device type")
def _graphs(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator or not hasattr(torch.accelerator, "Graph"):
        return False
    x = torch.zeros(1, device=dev.device())
    graph = torch.accelerator.Graph()
    with dev.stream(), graph:
        x += 1
    for _ in range(2):
        graph.replay()
    dev.synchronize()
    assert x.item() == 2, f"a graph that adds 1 was replayed twice, and 0 became {x.item()}"
    return True


# Inductor asks a table for the device type; what a backend raises instead names a reason.
@probe("compile", refusals=r"KeyError: '\w+'|NotImplementedError: ", loads=True)
def _compile(dev: Device) -> bool:
    import torch

    if not dev.is_accelerator:
        return False
    x = torch.ones(8, device=dev.device())
    value = torch.compile(lambda x: (x * 2).sum())(x).item()
    assert value == 16.0, f"a compiled sum is {value}, not 16"
    return True


@probe("sparse")
def _sparse(dev: Device) -> bool:
    import torch

    matrix = torch.eye(2)
    there = matrix.to_sparse().to(dev.device())
    assert there.layout is torch.sparse_coo, f"a sparse tensor has layout {there.layout} there"
    values = there.to_dense().cpu().tolist()
    assert values == matrix.tolist(), f"a sparse unit matrix is {values}"
    return True


def dtype_probe(name: str) -> Probe:
    """Whether tensors of a dtype come back from the device as they went."""

    def has_dtype(dev: Device) -> bool:
        import torch

        if name in dev.descriptor.dtypes.unsupported:
            return False
        dtype = getattr(torch, name)
        value = torch.ones((), dtype=dtype)
        if dtype.is_floating_point or dtype.is_complex:
            # 1 + eps tells a dtype from a narrower one that silently took its place.
            value += torch.finfo(dtype).eps
        back = value.to(dev.device()).cpu()
        assert back.dtype == dtype, f"a tensor of {name} came back as {back.dtype}"
        assert back == value, f"{value.item()} of {name} came back as {back.item()}"
        return True

    # A device that does not know the type says so with a TypeError, as PyTorch's MPS does.
    return Probe(has_dtype, absent_if=(TypeError,))


for _name in ("float64", "float16", "bfloat16", "complex64", "complex128"):
    PROBES[_name] = dtype_probe(_name)


@probe("fallback_counter")
def _fallback_counter(dev: Device) -> bool:
    return bool(dev.descriptor.fallback_counts)


@probe("fault_injection")
def _fault_injection(dev: Device) -> bool:
    if not dev.descriptor.fault:
        return False
    # A driver of real hardware refuses it: it cannot inject any.
    backend.resolve(str(dev.descriptor.fault)).reset()
    return True
